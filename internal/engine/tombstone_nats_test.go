package engine_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/internal/journal"
)

// awaitTombstone waits for a tombstone of the session after an event, and returns it.
func (w *world) awaitTombstone(sid string, after uint64) session.Event {
	w.t.Helper()
	var e session.Event
	bustest.Until(w.t, "a tombstone of "+sid, func() bool {
		var found bool
		var err error
		e, found, err = w.bus.LastOf(w.ctx, session.DoorWake, sid)
		env, bad := session.ReadEnvelope(e.Payload)
		return err == nil && found && bad == nil && env.Type == session.TypeSessionTombstone && e.Seq > after
	})
	return e
}

// awaitSnapshot waits for a snapshot at an event, and returns its bytes.
func (w *world) awaitSnapshot(sid string, seq uint64) (data []byte) {
	w.t.Helper()
	bustest.Until(w.t, "a snapshot of "+sid, func() bool {
		var found bool
		var err error
		data, found, err = w.bus.GetSnapshot(w.ctx, sid)
		snap, bad := session.ParseSnapshot(data)
		return err == nil && found && bad == nil && snap.Seq == seq
	})
	return data
}

// TestErasedSessionGetsItsTombstone: the owner stores a tombstone after SessionErased, and
// a snapshot without text takes the place of the former one. A later SessionErased gets
// another tombstone, over what came meanwhile. The tombstone alone is the session.
func TestErasedSessionGetsItsTombstone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.host(engine.Options{SnapshotEach: 1})
	w.run("s1", "the marker")
	erased := w.publish(session.DoorCtl, "s1", session.TypeSessionErased, map[string]any{})
	first := w.awaitTombstone("s1", erased)
	if data := w.awaitSnapshot("s1", first.Seq); bytes.Contains(data, []byte("marker")) {
		t.Errorf("the snapshot of the erased session has its text: %q", data)
	}

	late := w.publish(session.DoorIn, "s1", session.TypeRunRequested, map[string]any{"input": map[string]any{"text": "the marker"}})
	w.publish(session.DoorCtl, "s1", session.TypeSessionErased, map[string]any{})
	second := w.awaitTombstone("s1", late)
	w.awaitSnapshot("s1", second.Seq)

	whole := w.folded("s1")
	alone := session.New(whole.InstallRecord(), "s1")
	if _, err := alone.Evolve(second); err != nil || !bytes.Equal(alone.Bytes(), whole.Bytes()) || !whole.IsErased() {
		t.Errorf("the tombstone alone: %v, another state than the whole session: %+v", err, alone.View())
	}
	if v := w.view("s1"); v.Status != "erased" || v.Seq != second.Seq || v.Count != whole.Count {
		t.Errorf("the view is %s at %d after %d events, want erased at %d after %d", v.Status, v.Seq, v.Count, second.Seq, whole.Count)
	}
}

// TestPublishAfter: an event that is not the session's next one is not stored.
func TestPublishAfter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	last := w.publish(session.DoorIn, "s1", "Any", map[string]any{})
	w.publish(session.DoorIn, "s2", "Any", map[string]any{})
	seq, err := w.bus.PublishAfter(w.ctx, session.DoorWake, "s1", []byte("{}"), last)
	if err != nil || seq <= last {
		t.Fatalf("right after event %d: got %d, %v", last, seq, err)
	}
	for _, after := range []uint64{last, seq + 1} {
		if seq, err := w.bus.PublishAfter(w.ctx, session.DoorWake, "s1", []byte("{}"), after); !errors.Is(err, journal.ErrOvertaken) {
			t.Errorf("after event %d: got %d, %v, want ErrOvertaken", after, seq, err)
		}
	}
}
