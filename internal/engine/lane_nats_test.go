package engine_test

// The consumers of lanes are deleted while hosts run them: nothing waits for a
// restart, nothing is lost, and nothing is done twice.

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/subjects"
)

// provisioned starts a host as a session-actor does.
func (w *world) provisioned(opts engine.Options) *running {
	w.t.Helper()
	r := w.beginAt(testbus.Provisioned(w.t, w.node), opts)
	w.t.Cleanup(func() { r.stop(w) })
	return r
}

func (w *world) deleteLanes(js jetstream.JetStream, lanes int) {
	w.t.Helper()
	for lane := range lanes {
		if err := js.DeleteConsumer(w.ctx, "REFOLD_LOG", subjects.LaneName(lane)); err != nil {
			w.t.Fatal(err)
		}
	}
}

// areThere waits until there are so many lanes.
func (w *world) areThere(js jetstream.JetStream, lanes int) {
	w.t.Helper()
	bustest.Until(w.t, "the lanes are there", func() bool {
		for lane := range lanes {
			if _, err := js.Consumer(w.ctx, "REFOLD_LOG", subjects.LaneName(lane)); err != nil {
				return false
			}
		}
		return true
	})
}

// One lane, and then all of them, are deleted under load and at rest. Every run
// ends, and acknowledged events are not delivered again: effects whose names are
// forgotten meanwhile are not published again.
func TestLanesAreDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, js := testbus.JS(t, w.node)
	first := w.provisioned(engine.Options{})
	sids := make([]string, 24) // three for each lane, about
	for i := range sids {
		sids[i] = fmt.Sprintf("s%d", i)
	}
	w.turn(1, sids...)
	half := len(sids) / 2
	for i, lanes := range []int{1, subjects.LanesDefault} {
		run := i + 2
		for _, sid := range sids {
			w.run(sid, "question")
		}
		w.deleteLanes(js, lanes)
		w.answers(run, sids[:half]...)
		w.areThere(js, lanes)
		w.deleteLanes(js, lanes)
		w.answers(run, sids[half:]...)
		w.areThere(js, lanes)
	}
	w.areThere(js, subjects.LanesDefault)
	w.done(w.lanes(js, sids...))
	w.deleteLanes(js, subjects.LanesDefault)
	w.areThere(js, subjects.LanesDefault)
	w.done(w.lanes(js, sids...))
	for _, lane := range w.lanes(js, sids...) {
		if is := lane.CachedInfo(); is.Delivered.Consumer != 0 || is.NumPending != 0 {
			t.Errorf("%s was at rest and begins at %d: it delivered %d events again, and %d wait", is.Name, is.Config.OptStartSeq, is.Delivered.Consumer, is.NumPending)
		}
	}
	w.turn(4, sids...)
	first.stop(w)
	// Who starts without lanes knows nothing of them: it makes them, and all that
	// the log has comes again.
	w.deleteLanes(js, subjects.LanesDefault)
	w.provisioned(engine.Options{})
	w.turn(5, sids...)
	w.done(w.lanes(js, sids...))
	for _, sid := range sids {
		if got, want := w.view(sid).Hash, w.folded(sid).Hash().String(); got != want {
			t.Errorf("view of %s: got %s, want %s", sid, got, want)
		}
		if got, want := len(w.events(sid)), 10; got != want {
			t.Errorf("%s has %d events, want the %d of five runs", sid, got, want)
		}
	}
}
