package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
)

// Wakes are the times in which sessions that are not in memory answer.
type Wakes struct {
	Sessions, Events, Behind int
	P50, P99                 time.Duration
}

// behind is the number of a session's events after its snapshot. apart is the
// number of another session's events between two of them. busyMost sessions are
// read while the others sleep, one every busyEvery: a round takes longer than the
// server holds a block.
const (
	behind    = 64
	apart     = 100
	busyMost  = 60
	busyEvery = 200 * time.Millisecond
)

// WakeOptions describe the sleeping sessions and how they are woken.
type WakeOptions struct {
	Sessions, Events int           // woken sessions, and events of each
	Asleep           time.Duration // idle time before the first wake
	Every            time.Duration // from the start of one wake to the next
}

// Wake gives each of some sessions a number of events, and a snapshot of all
// except the latest 64. Then it starts a run in one after the other. It measures
// the time from the request to the notice that the run has started. Before that
// they are idle for Asleep: the server drops a block of the log from memory after 10
// seconds, and the block's subjects after two minutes. Meanwhile other sessions
// are read, as on a server whose sessions don't all sleep: else its process
// returns unused memory to the system, and gets it back a page at a time. Wakes
// start at intervals: the server holds what it loaded for 10 seconds, and without
// a pause each load takes memory that is new to the process, which costs as much
// as reading the block. The system is made to keep the log's files in memory.
func Wake(ctx context.Context, o Options, what WakeOptions) (w Wakes, err error) {
	w = Wakes{Sessions: what.Sessions, Events: what.Events, Behind: min(behind, what.Events)}
	history, err := longHistory(w.Events)
	if err != nil {
		return w, err
	}
	busy := min(busyMost, w.Sessions)
	all := busy + w.Sessions
	err = onStage(ctx, o, func(ctx context.Context, g *stage) error {
		begun := time.Now()
		if err := g.fillSleeping(ctx, all, history, w.Behind); err != nil {
			return err
		}
		g.step(begun, "stored %d sessions of %d events", all, w.Events)
		begun = time.Now()
		if err := g.snapshots(ctx, w.Events-w.Behind); err != nil {
			return err
		}
		g.step(begun, "stored their snapshots")
		if err := g.skipEvents(ctx); err != nil {
			return err
		}
		defer g.keepFiles(ctx)()
		if err := g.passBusy(ctx, what.Asleep, busy, w.Behind); err != nil {
			return err
		}
		g.hostOnly = true
		y, err := startSystem(ctx, g.servers, g.row, g.fail)
		if err != nil {
			return err
		}
		defer y.stop()
		took, err := g.wakes(ctx, busy, all, what.Every)
		slices.Sort(took)
		w.P50, w.P99 = part(took, 0.5), part(took, 0.99)
		return err
	})
	return w, err
}

// passBusy waits for d and meanwhile reads the first sessions, one every busyEvery.
func (g *stage) passBusy(ctx context.Context, d time.Duration, busy, late int) error {
	begun := time.Now()
	for n := 0; time.Since(begun) < d; n++ {
		if err := g.readAlone(ctx, sessionID(n%busy), late); err != nil {
			return err
		}
		if err := sleep(ctx, busyEvery); err != nil {
			return err
		}
	}
	return nil
}

const keepEvery = 15 * time.Second // one pass over all files

// keepFiles makes the system keep the log's files in its memory until stop is
// called, by reading them repeatedly. A system without other demand keeps them
// anyway. One that pages out what was not used for a minute has dropped a log
// that slept for two, and a load would measure the disk.
func (g *stage) keepFiles(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var reading sync.WaitGroup
	reading.Go(func() {
		for ctx.Err() == nil {
			files, _ := filepath.Glob(filepath.Join(g.servers.dir, "*/jetstream/*/streams/*/msgs/*")) // the pattern is valid
			for _, name := range files {
				_ = touch(name) // the server may have removed it
				_ = sleep(ctx, keepEvery/time.Duration(len(files)))
			}
			_ = sleep(ctx, foldedTick)
		}
	})
	return func() {
		cancel()
		reading.Wait()
	}
}

// touch reads a file.
func touch(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(io.Discard, f)
	return err
}

// fillSleeping stores the events of sessions, one session after another, except
// that the latest events of each lie between those of the next one: the events
// after a session's snapshot lie apart.
func (g *stage) fillSleeping(ctx context.Context, sessions int, history []storedEvent, late int) error {
	early := len(history) - late
	return g.storeAll(ctx, func(put func(message) error) error {
		for n := range sessions + 1 {
			for i := range max(early, late*apart) {
				var err error
				if n < sessions && i < early {
					err = g.event(put, n, history[i])
				}
				if n > 0 && i%apart == 0 && i/apart < late {
					err = errors.Join(err, g.event(put, n-1, history[early+i/apart]))
				}
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// longHistory returns the events of runs with one answer of the model each.
func longHistory(n int) (history []storedEvent, err error) {
	for run := 1; len(history) < n; run++ {
		request, err := envelope(session.TypeRunRequested, session.RunRequested{Input: session.Content{Text: question}}, fmt.Sprint("run-", run))
		if err != nil {
			return nil, err
		}
		answer, err := envelope(session.TypeGenerationSettled, session.GenerationSettled{
			Effect: fmt.Sprintf("r%dt1", run), FinishReason: "stop", Model: "instant", Status: "ok", Text: &session.Content{Text: answered},
		}, "")
		if err != nil {
			return nil, err
		}
		history = append(history, storedEvent{session.DoorIn, request}, storedEvent{session.DoorLLM, answer})
	}
	return history[:n], nil
}

// snapshots stores a snapshot of each session after a number of events.
func (g *stage) snapshots(ctx context.Context, events int) error {
	record, err := session.ParseInstall([]byte(install))
	if err != nil {
		return err
	}
	states := map[string]*session.State{} // nil: its snapshot is stored
	_, err = g.bus.ReadAll(ctx, 1, func(e session.Event) error {
		state, begun := states[e.Session]
		switch {
		case e.Session == "" || events == 0:
			return nil
		case !begun:
			state = session.New(record, e.Session)
			states[e.Session] = state
		case state == nil:
			return nil
		}
		if _, err := state.Evolve(e); err != nil {
			return fmt.Errorf("event %d of %s: %w", state.Count, e.Session, err)
		}
		if state.Count < uint64(events) {
			return nil
		}
		states[e.Session] = nil
		return g.bus.PutSnapshot(ctx, e.Session, state.Seq, state.Snapshot().Bytes())
	})
	return err
}

const wakeWithin = 30 * time.Second

// wakes starts a run in each of some sessions, at intervals and after the
// previous answer.
func (g *stage) wakes(ctx context.Context, from, to int, every time.Duration) (took []time.Duration, err error) {
	heard := make(chan string, 16)
	started := []byte(`"` + session.NoticeRunStarted + `"`)
	notices, err := g.js.OrderedConsumer(ctx, g.bus.Names().NoticesStream(), jetstream.OrderedConsumerConfig{})
	if err != nil {
		return nil, err
	}
	reading, err := notices.Consume(func(m jetstream.Msg) {
		if bytes.Contains(m.Data(), started) {
			heard <- m.Subject()
		}
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		reading.Stop()
		<-reading.Closed()
	}()
	for _, n := range ofEachLane(to) { // an answer means that the lane is owned
		if err := g.startRun(ctx, heard, n); err != nil {
			return nil, err
		}
	}
	for n, next := from, time.Now(); n < to; n, next = n+1, next.Add(every) {
		if err := sleep(ctx, time.Until(next)); err != nil {
			return took, err
		}
		begun := time.Now()
		if err := g.startRun(ctx, heard, n); err != nil {
			return took, err
		}
		took = append(took, time.Since(begun))
	}
	return took, nil
}

// readAlone reads what a session is loaded from: its snapshot, the event that the
// snapshot names, and the events after it.
func (g *stage) readAlone(ctx context.Context, sid string, late int) error {
	data, found, err := g.bus.GetSnapshot(ctx, sid)
	if err != nil {
		return err
	}
	seq := uint64(0)
	if found {
		snap, err := session.ParseSnapshot(data)
		if err != nil {
			return fmt.Errorf("session %s: %w", sid, err)
		}
		seq = snap.Seq
		if _, err := g.bus.EventAt(ctx, seq); err != nil {
			return err
		}
	}
	for _, err := range g.bus.ReadNext(ctx, sid, seq+1, math.MaxUint64, uint64(late)) {
		if err != nil {
			return err
		}
	}
	return nil
}

// startRun starts a run in a session and waits for the notice of its start.
func (g *stage) startRun(ctx context.Context, heard <-chan string, n int) error {
	sid := sessionID(n)
	subject, err := g.bus.Names().Out(sid)
	if err != nil {
		return err
	}
	payload, id, err := request(sid)
	if err != nil {
		return err
	}
	if _, err := g.bus.Publish(ctx, session.DoorIn, sid, payload, id); err != nil {
		return err
	}
	late := time.NewTimer(wakeWithin)
	defer late.Stop()
	for {
		select {
		case got := <-heard:
			if got == subject {
				return nil
			}
		case <-late.C:
			return fmt.Errorf("session %s did not start its run within %v", sid, wakeWithin)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
