package bench

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/subjects"
)

// Wakes are how long sessions that nobody has in memory take to answer.
type Wakes struct {
	Sessions, Events, Behind int
	P50, P99                 time.Duration

	// How long it takes to read what such a session is loaded from, and nothing
	// else: of as many other sessions, by turns with these. A block of the log that
	// the server has to load is in both.
	ReadP50, ReadP99 time.Duration
}

// behind is how many events a session has that its snapshot does not know.
const behind = 64

// Wake gives each of some sessions so many events, and a snapshot of all but
// the latest 64 of them. Then it asks one after the other for a run, and takes
// the time from the request to the notice that the run has started; and after
// each the time that the reads for another one take by themselves.
func Wake(ctx context.Context, o Options, sessions, events int) (w Wakes, err error) {
	w = Wakes{Sessions: sessions, Events: events, Behind: behind}
	history, err := longHistory(events)
	if err != nil {
		return w, err
	}
	err = onStage(ctx, o, func(ctx context.Context, g *stage) error {
		begun := time.Now()
		// All snapshots' events first, then those behind of all, so that these
		// don't lie side by side in the log.
		if err := g.fill(ctx, 0, 2*sessions, history[:max(events-behind, 0)]); err != nil {
			return err
		}
		for i := max(events-behind, 0); i < events; i++ {
			if err := g.fill(ctx, 0, 2*sessions, history[i:i+1]); err != nil {
				return err
			}
		}
		g.step(begun, "stored %d sessions of %d events", 2*sessions, events)
		begun = time.Now()
		if err := g.snapshots(ctx, 2*sessions, events-behind); err != nil {
			return err
		}
		g.step(begun, "stored their snapshots")
		if err := g.pass(ctx); err != nil {
			return err
		}
		g.hostOnly = true
		y, err := startSystem(ctx, g.servers, g.row, g.failure.fail)
		if err != nil {
			return err
		}
		defer y.stop()
		took, read, err := g.wakes(ctx, sessions)
		slices.Sort(took)
		slices.Sort(read)
		w.P50, w.P99 = part(took, 0.5), part(took, 0.99)
		w.ReadP50, w.ReadP99 = part(read, 0.5), part(read, 0.99)
		return err
	})
	return w, err
}

// longHistory returns the events of runs in which the model says one thing.
func longHistory(n int) (history []said, err error) {
	for run := 1; len(history) < n; run++ {
		asked, err := envelope(session.TypeRunRequested, session.RunRequested{Input: session.Content{Text: question}}, fmt.Sprint("run-", run))
		if err != nil {
			return nil, err
		}
		answer, err := envelope(session.TypeGenerationSettled, session.GenerationSettled{
			Effect: fmt.Sprintf("r%dt1", run), FinishReason: "stop", Model: "instant", Status: "ok", Text: &session.Content{Text: answered},
		}, "")
		if err != nil {
			return nil, err
		}
		history = append(history, said{session.DoorIn, asked}, said{session.DoorLLM, answer})
	}
	return history[:n], nil
}

func envelope(typ string, body any, id string) ([]byte, error) {
	data, err := codec.Marshal(body)
	if err != nil {
		return nil, err
	}
	return codec.Marshal(session.Envelope{By: "refold-bench", Data: data, ID: id, Type: typ, V: session.Version})
}

// snapshots stores a snapshot of each session after so many events.
func (g *stage) snapshots(ctx context.Context, sessions, events int) error {
	record, err := session.ParseInstall([]byte(install))
	if err != nil {
		return err
	}
	states := make(map[string]*session.State, sessions)
	_, err = g.bus.ReadAll(ctx, 1, func(e session.Event) error {
		if e.Session == "" {
			return nil
		}
		state := states[e.Session]
		if state == nil {
			state = session.New(record, e.Session)
			states[e.Session] = state
		}
		if state.Count >= uint64(events) {
			return nil
		}
		if _, err := state.Evolve(e); err != nil {
			return fmt.Errorf("event %d of %s: %w", state.Count, e.Session, err)
		}
		return nil
	})
	for sid, state := range states {
		if err != nil {
			return err
		}
		if state.Count > 0 {
			err = g.bus.PutSnapshot(ctx, sid, state.Seq, state.Snapshot().Bytes())
		}
	}
	return err
}

const wakeWithin = 30 * time.Second

// wakes asks each session for a run, when the one before has answered, and
// between them reads what as many others would be loaded from.
func (g *stage) wakes(ctx context.Context, sessions int) (took, read []time.Duration, err error) {
	requests, err := newRequests()
	if err != nil {
		return nil, nil, err
	}
	heard := make(chan string, 16)
	started := []byte(`"` + session.NoticeRunStarted + `"`)
	notices, err := g.js.OrderedConsumer(ctx, g.bus.Names().NoticesStream(), jetstream.OrderedConsumerConfig{})
	if err != nil {
		return nil, nil, err
	}
	reading, err := notices.Consume(func(m jetstream.Msg) {
		if bytes.Contains(m.Data(), started) {
			heard <- m.Subject()
		}
	})
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		reading.Stop()
		<-reading.Closed()
	}()
	if err := g.warm(ctx, requests, heard, 2*sessions); err != nil {
		return nil, nil, err
	}
	for n := range sessions {
		begun := time.Now()
		if err := g.ask(ctx, requests, heard, n); err != nil {
			return took, read, err
		}
		took = append(took, time.Since(begun))
		begun = time.Now()
		if err := g.readAlone(ctx, sessionID(sessions+n)); err != nil {
			return took, read, err
		}
		read = append(read, time.Since(begun))
	}
	return took, read, nil
}

// readAlone reads what a session is loaded from: its snapshot, the event that
// this names, and those behind it.
func (g *stage) readAlone(ctx context.Context, sid string) error {
	data, found, err := g.bus.GetSnapshot(ctx, sid)
	if err != nil {
		return err
	}
	from := uint64(1)
	if found {
		seq, ok := session.SnapshotSeq(data)
		if !ok {
			return fmt.Errorf("the snapshot of %s names no event", sid)
		}
		if _, err := g.bus.EventAt(ctx, seq); err != nil {
			return err
		}
		from = seq + 1
	}
	for _, err := range g.bus.ReadSession(ctx, sid, from, 0, false) {
		if err != nil {
			return err
		}
	}
	return nil
}

// warm asks a new session of each lane for a run: it waits until the lane is
// taken.
func (g *stage) warm(ctx context.Context, r requests, heard <-chan string, from int) error {
	warmed := map[int]bool{}
	for n := from; len(warmed) < subjects.LanesDefault; n++ {
		if lane := subjects.Lane(subjects.Partition(sessionID(n))); !warmed[lane] {
			warmed[lane] = true
			if err := g.ask(ctx, r, heard, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// ask asks a session for a run and waits until that has started.
func (g *stage) ask(ctx context.Context, r requests, heard <-chan string, n int) error {
	sid := sessionID(n)
	subject, err := g.bus.Names().Out(sid)
	if err != nil {
		return err
	}
	payload, id := r.of(sid)
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
