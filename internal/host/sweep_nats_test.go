package host_test

// Sweeps against a real server: the next host finds who waits, on a lane that
// nobody owns, and what a sweep costs.

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	refold "github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/host"
	"github.com/refold/refold/subjects"
)

// sweeper starts a host that sweeps soon.
func (w *world) sweeper(opts host.Options) *running {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	r := &running{bus: w.connect(), cancel: cancel, done: make(chan error, 1)}
	h := host.New(r.bus, slog.New(slog.DiscardHandler), opts)
	h.SweepFirst(50 * time.Millisecond)
	go func() { r.done <- h.Run(ctx) }()
	w.t.Cleanup(func() { r.stop(w) })
	return r
}

// waiting returns who waits by the snapshots, and until when.
func (w *world) waiting() map[string]int64 {
	w.t.Helper()
	all := map[string]int64{}
	for one, err := range w.bus.ListWaiting(w.ctx, 0) {
		if err != nil {
			w.t.Fatal(err)
		}
		all[one.Session] = one.Due
	}
	return all
}

// waits asks for a run whose turn is open for so long.
func (w *world) waits(sid string, open time.Duration) {
	w.publish(session.DoorCtl, sid, session.TypeRunRequested, map[string]any{
		"input": map[string]any{"text": "hi"}, "config": map[string]any{
			"provider": "openai", "model": "m", "deadlines_ms": map[string]any{"turn": open.Milliseconds()},
		},
	})
}

// unowned waits until nobody owns the lane of a session.
func (w *world) unowned(sid string) {
	w.t.Helper()
	lane := w.bus.Lane(subjects.LaneOf(subjects.Partition(sid), subjects.LanesDefault))
	bustest.Until(w.t, "nobody owns the lane of "+sid, func() bool {
		unowned, err := lane.Unowned(w.ctx)
		return err == nil && unowned
	})
}

// A host is killed while it has sessions that wait: one for long, one that left
// memory. No event comes, no timer bridge runs, and the next host wakes what is
// due.
func TestTheNextHostWakesWhoWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.begin(host.Options{SessionsMax: 1})
	w.waits("long", 40*time.Minute)
	w.asked(session.ClassWake, "-", "long", "w1")
	w.waits("s1", time.Second)
	w.asked(session.ClassWake, "-", "s1", "w1")
	w.waits("s9", time.Hour/3) // of the same lane: s1 leaves memory
	w.asked(session.ClassWake, "-", "s9", "w1")
	var all map[string]int64
	bustest.Until(t, "three sessions are known to wait", func() bool {
		all = w.waiting()
		return len(all) == 3
	})
	first.bus.Close() // its lanes are not handed over
	bustest.Until(t, "s1 is overdue", func() bool { return time.Since(time.UnixMilli(all["s1"])) > host.WakeGrace })
	if ahead := time.UnixMilli(all["long"]).Sub(time.UnixMilli(all["s1"])); ahead < 38*time.Minute {
		t.Errorf("long waits %v longer than s1, want about 40 minutes", ahead)
	}
	w.unowned("s1") // what another owns is not swept, and where nothing arrives nobody takes over
	w.sweeper(host.Options{})
	if got, want := w.notices("s1", 3), "SessionOpened RunStarted RunFinished"; got != want {
		t.Errorf("s1: got %q, want %q", got, want)
	}
	if state := w.folded("long"); state.Run == nil || len(state.Wakes) != 1 {
		t.Errorf("long: the run or its wake is over: %+v", state.Wakes)
	}
}

func TestALaneOnWhichNothingArrivesIsUnowned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.host(host.Options{})
	lane := w.bus.Lane(0)
	if unowned, err := lane.Unowned(w.ctx); err != nil || !unowned {
		t.Errorf("before an event: unowned is %v (%v), want true", unowned, err)
	}
	if _, _, err := w.bus.PublishInstall(w.ctx, session.BuiltinInstall(), false); err != nil {
		t.Fatal(err)
	}
	bustest.Until(t, "the lane has an owner", func() bool {
		unowned, err := lane.Unowned(w.ctx)
		return err == nil && !unowned
	})
}

// BenchmarkSweep puts snapshots of 10,000 sessions that wait, and measures what
// it takes to list them, to look after one, whose wake is asked or not, and how
// long a sweep takes at its pace.
func BenchmarkSweep(b *testing.B) {
	ctx, conn := b.Context(), benchBus(b)
	const sessions = 10_000
	install, err := session.ParseInstall(session.BuiltinInstall())
	if err != nil {
		b.Fatal(err)
	}
	size := 0
	for i := range sessions {
		sid := fmt.Sprintf("s%d", i)
		state := session.New(install, sid)
		payload := fmt.Appendf(nil, `{"type":"RunRequested","data":{"input":{"text":"hi"},"config":{"provider":"openai","model":"m","deadlines_ms":{"turn":2400000}}}}`)
		if _, err := state.Evolve(session.Event{Session: sid, Door: session.DoorCtl, Seq: 2, Time: time.Now().UnixMilli(), Payload: payload}); err != nil {
			b.Fatal(err)
		}
		data := state.Snapshot().Bytes()
		if err := conn.PutWaiting(ctx, sid, state.Seq, data, state.Wakes[0].Due); err != nil {
			b.Fatal(err)
		}
		size = len(data)
	}
	for b.Loop() {
		var all []bus.Waiting
		began := time.Now()
		for one, err := range conn.ListWaiting(ctx, 0) {
			if err != nil {
				b.Fatal(err)
			}
			all = append(all, one)
		}
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms/list")
		for _, what := range []string{"µs/fresh", "µs/again"} {
			began = time.Now()
			for _, one := range all[:1000] {
				if err := host.LookAfter(ctx, conn, one); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(time.Since(began).Microseconds())/1000, what)
		}
		began = time.Now()
		if n, err := host.SweepLanes(ctx, conn); err != nil || n != sessions {
			b.Fatalf("swept %d sessions (%v), want %d", n, err, sessions)
		}
		b.ReportMetric(time.Since(began).Seconds(), "s/sweep")
		b.ReportMetric(float64(size), "bytes/snapshot")
	}
}

func benchBus(b *testing.B) *bus.Bus {
	b.Helper()
	node := bustest.Server(b)
	conn, err := bus.Connect(b.Context(), bus.Options{URL: node.URL(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(conn.Close)
	conf, err := bus.ParseConf(refold.StreamsConf, conn.Names())
	if err == nil {
		err = conn.Provision(b.Context(), conf, 1)
	}
	if err != nil {
		b.Fatal(err)
	}
	return conn
}
