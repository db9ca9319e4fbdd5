package engine_test

// Hard edges against a real server: a power loss that takes the log's end, and
// gives its sequences away again.

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/subjects"
)

// A power loss on a server that syncs at intervals loses acknowledged events, and
// their sequences are reused. A host that survives drops the states in memory, no
// snapshot of lost events is used, and sessions go on from what the log has. Only a
// session that opens an effect with other bytes than REFOLD_FX has stops.
func TestEdgePowerLoss(t *testing.T) {
	t.Parallel()
	for name, keepsEffects := range map[string]bool{"all streams lose their ends": false, "the log alone loses its end": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, bustest.Interval)
			_, js := testbus.JS(t, w.node)
			w.host(engine.Options{SnapshotEach: 1})
			w.run("old", "hi")
			w.run("calm", "hi")
			w.asked(session.ClassLLM, "openai", "old", "r1t1")
			w.asked(session.ClassLLM, "openai", "calm", "r1t1")
			lose := w.node.Synced()
			old, fresh := w.doWhatIsLost()
			lost := w.state(js, "REFOLD_LOG").LastSeq
			if keepsEffects {
				lose("REFOLD_LOG")
			} else {
				lose()
			}

			// Other events take the sequences, in another order.
			w.run("new", "hi")
			w.answer("old", "r1t1", "found")
			w.run("old", "again")
			w.run("lost", "hi")
			if got := w.state(js, "REFOLD_LOG").LastSeq; got > lost+1 {
				t.Fatalf("the log's end is %d, was %d: no sequence was used again", got, lost)
			}
			w.asked(session.ClassLLM, "openai", "new", "r1t1")
			if keepsEffects {
				w.wantStopped("old", oldAsked, old)
				w.wantStopped("lost", lostAsked, fresh)
			} else {
				w.asked(session.ClassLLM, "openai", "old", "r2t1")
				w.asked(session.ClassLLM, "openai", "lost", "r1t1")
				w.wantGoesOn("old")
				w.wantGoesOn("lost")
			}
			for _, sid := range []string{"new", "calm"} {
				w.answer(sid, "r1t1", "done")
				if got, want := w.notices(sid, 3), "SessionOpened RunStarted RunFinished"; got != want {
					t.Errorf("notices of %s: got %q, want %q", sid, got, want)
				}
				w.wantGoesOn(sid)
			}
			w.done(w.lanes(js, "old", "lost", "new", "calm"))
		})
	}
}

// What is asked before the loss, and under the same names after it.
const (
	oldAsked  = "refold.fx.llm.openai.old.r2t1"
	lostAsked = "refold.fx.llm.openai.lost.r1t1"
)

// doWhatIsLost has a session answered and asked again, and another one begin,
// which then was never there. It returns what they asked for.
func (w *world) doWhatIsLost() (old, fresh []byte) {
	w.t.Helper()
	w.answer("old", "r1t1", "lost")
	w.run("lost", "hi")
	w.run("old", "lost")
	if got, want := w.notices("old", 4), "SessionOpened RunStarted RunFinished RunStarted"; got != want {
		w.t.Fatalf("notices: got %q, want %q", got, want)
	}
	for _, sid := range []string{"old", "lost"} {
		bustest.Until(w.t, "a snapshot of "+sid, func() bool {
			_, found, err := w.bus.GetSnapshot(w.ctx, sid)
			return err == nil && found
		})
	}
	return w.effect(oldAsked), w.effect(lostAsked)
}

// wantView waits until the view of a session is what its log says.
func (w *world) wantView(sid string) {
	w.t.Helper()
	want := w.folded(sid).Hash().String()
	bustest.Until(w.t, "the view of "+sid+" is of its log", func() bool { return w.view(sid).Hash == want })
}

// wantGoesOn is wantView of a session that is not stopped.
func (w *world) wantGoesOn(sid string) {
	w.t.Helper()
	w.wantView(sid)
	if stop, found, err := w.bus.GetQuarantine(w.ctx, sid); found || err != nil {
		w.t.Errorf("%s is stopped: %s %v", sid, stop, err)
	}
}

// wantStopped waits until a session is stopped, since the bytes that it asks for
// an effect with are not those of before the loss, and these are still stored.
func (w *world) wantStopped(sid, subject string, before []byte) {
	w.t.Helper()
	var stop []byte
	bustest.Until(w.t, sid+" is stopped", func() (found bool) {
		var err error
		stop, found, err = w.bus.GetQuarantine(w.ctx, sid)
		return err == nil && found
	})
	if !strings.Contains(string(stop), subject+": expected the ") {
		w.t.Errorf("%s is stopped with %q, want that %s holds other bytes", sid, stop, subject)
	}
	if after := w.effect(subject); !bytes.Equal(after, before) {
		w.t.Errorf("%s: got %q, want what was asked first: %q", subject, after, before)
	}
}

// The file of an effect is damaged, and its session publishes that name again. Only
// this session is quarantined, with instructions in the reason; the other sessions
// of its lane go on. After a release with a new stream of effects it goes on too.
func TestEdgeNameThatCantBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bustest.Interval)
	_, js := testbus.JS(t, w.node)
	const name = "refold.fx.llm.openai.bad.r1t1"
	if _, err := js.Publish(w.ctx, name, []byte("what can't be read")); err != nil {
		t.Fatal(err)
	}
	w.node.Damage("REFOLD_FX", "what can't be read")
	w.host(engine.Options{})
	others := sameLane("bad", 3)
	w.run("bad", "hi")
	for _, sid := range others {
		w.run(sid, "hi")
	}
	stop := w.stopReason("bad")
	for _, want := range []string{name, "delete REFOLD_FX", "release the session"} {
		if !strings.Contains(stop.Reason, want) {
			t.Errorf("it is stopped with %q, want %q in it", stop.Reason, want)
		}
	}
	for _, sid := range others {
		w.asked(session.ClassLLM, "openai", sid, "r1t1")
		w.wantGoesOn(sid)
	}
	w.done(w.lanes(js, append(others, "bad")...))

	if err := js.DeleteStream(w.ctx, "REFOLD_FX"); err != nil {
		t.Fatal(err)
	}
	w.provisioned(engine.Options{})
	if err := w.bus.PutQuarantine(w.ctx, "bad", nil); err != nil {
		t.Fatal(err)
	}
	w.asked(session.ClassLLM, "openai", "bad", "r1t1")
	w.answer("bad", "r1t1", "done")
	w.wantGoesOn("bad")
}

// sameLane returns sessions of the lane that has sid.
func sameLane(sid string, n int) (all []string) {
	lane := subjects.LaneOf(subjects.Partition(sid), subjects.LanesDefault)
	for i := 0; len(all) < n; i++ {
		if other := fmt.Sprint("s", i); subjects.LaneOf(subjects.Partition(other), subjects.LanesDefault) == lane {
			all = append(all, other)
		}
	}
	return all
}
