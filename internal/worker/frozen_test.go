package worker

// A bridge that is frozen between its claim and the start: by SIGSTOP, or because
// its machine is suspended.

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/subjects"
)

func TestFrozenBridgeStartsNothingThatOthersAnswered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		frozen time.Duration
		open   bool // after the freeze
		want   []string
	}{
		"answered meanwhile": {frozen: 30 * time.Second},
		"still open":         {frozen: 30 * time.Second, open: true, want: []string{"r1t1c0"}},
		"too late":           {frozen: testStartBy + time.Second, open: true},
		"for a moment":       {frozen: aliveGapMax / 2, want: []string{"r1t1c0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world, q *queue) {
				var starts ledger
				w.claimLost = func(subjects.ClaimName) error {
					w.claimLost = nil
					w.beat("me", false)
					<-time.After(c.frozen)
					v := session.View{Shown: session.Shown{Clock: time.Now().UnixMilli()}}
					if c.open {
						v.Open = []session.ViewEffect{{Effect: "r1t1c0"}}
					}
					w.setView("s1", v)
					w.beat("me", true)
					return nil
				}
				b := startBridge(t, w, "me", q, Target{Class: session.ClassTool, Name: "host", Executor: starts.executor()})
				q.ask(t, session.ClassTool, "host", "s1", "r1t1c0", toolCall("r1t1c0", false))
				pass(c.frozen + time.Minute)
				b.stop()
				if got := starts.all(); !slices.Equal(got, c.want) {
					t.Errorf("started %q, want %q", got, c.want)
				}
			})
		})
	}
}

// The look before the start comes after all that a call waits for, such as secrets.
func TestFrozenBeforeTheStart(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world, _ *queue) {
		w.beat("me", true)
		b := New(w, "me", "test/me", time.Now, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go b.Watch(ctx)
		life, stop := NewLifetimes(ctx, GraceDefault)
		defer stop()
		f := &execution{effect: &effect{startBy: time.Now().Add(time.Hour), runTime: time.Minute, call: &session.ToolCall{}}, life: &life}
		pass(time.Second)
		f.claimRequested(1, b.detector)
		w.beat("me", false)
		<-time.After(3 * time.Second)
		w.beat("me", true)
		pass(time.Second)
		started := false
		got := b.execute(f, func(context.Context, string, *returned) { started = true })
		if got.next != nextGiveBack || started {
			t.Errorf("after 3 s without a heartbeat: got %+v, started %v; want it given back, and no start", got, started)
		}
	})
}

// A suspended machine's monotonic clock stands still; the shown time does not.
func TestSilenceCountsSuspension(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, c := range map[string]struct {
		to   time.Time
		want time.Duration
	}{
		"running":               {now.Add(3 * time.Second), 3 * time.Second},
		"the shown time is all": {now.Round(0).Add(time.Hour), time.Hour},
	} {
		if got := silentFor(now, c.to); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
