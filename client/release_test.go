package client_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/journal"
)

func TestReleasedSessionContinuesAtTheEventItStoppedAt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	of := w.story("s1", "s2")
	if _, err := w.Quarantined(w.ctx, "s1"); !errors.Is(err, client.ErrNotQuarantined) {
		t.Errorf("not stopped: got %v, want ErrNotQuarantined", err)
	}
	if err := w.Release(w.ctx, "s1", &client.Quarantined{}); !errors.Is(err, client.ErrNotQuarantined) {
		t.Errorf("release of what is not stopped: got %v, want ErrNotQuarantined", err)
	}
	at := of["s1"][3] + 1
	bustest.OK(t, w.bus.PutQuarantine(w.ctx, "s1", fmt.Appendf(nil, `{"seq":%d,"reason":"a test"}`, at)))
	w.hosted(1)
	seq := w.ask("s1", "are you there?")
	w.asksOn("s2", 3) // behind it, on whichever lane: the stopped one asks nothing
	if w.asks("s1", "r3t1") {
		t.Error("the stopped session asks for what comes next")
	}
	seen, err := w.Quarantined(w.ctx, "s1")
	if err != nil || seen.Seq != at || seen.Reason != "a test" {
		t.Fatalf("got %+v (%v), want the quarantine from %d on", seen, err, at)
	}
	other := *seen
	other.Seq++
	if err := w.Release(w.ctx, "s1", &other); !errors.Is(err, client.ErrOtherQuarantine) {
		t.Errorf("release of another quarantine: got %v, want ErrOtherQuarantine", err)
	}
	bustest.OK(t, w.Release(w.ctx, "s1", seen))
	bustest.Until(t, "the released session asks for its run", func() bool { return w.asks("s1", "r3t1") })
	w.answer("s1", 3, "yes")
	w.end("s1", seq)
	if r := w.replay("s1", 0); !r.Identical() || r.Events != 6 {
		t.Errorf("got %d events, %v; want 6, and no difference", r.Events, r.Differences)
	}
}

// asks reports whether a session's effect is stored.
func (w *world) asks(sid, effect string) bool {
	w.t.Helper()
	all, err := w.bus.ListEffects(w.ctx, sid)
	bustest.OK(w.t, err)
	return slices.ContainsFunc(all, func(e journal.StoredEffect) bool { return e.Name.Effect == effect })
}
