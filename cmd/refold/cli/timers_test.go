package cli

import (
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	streamconf "github.com/refold/refold/internal/streams"
)

// TestTimersRestore: the stream of timers is lost while a session-actor runs.
// Open wakes are scheduled again from the log, and a missed deadline fires.
func TestTimersRestore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.says(session.DoorCtl, "far", session.TypeRunRequested, `{"input":{"text":"hi"}}`)
	w.ended("over", "hi", "hello") // its wake is open, too
	w.waits("far", 1)
	w.says(session.DoorCtl, "late", session.TypeRunRequested, `{"input":{"text":"hi"},"config":{"provider":"p","model":"m","deadlines_ms":{"turn":10000}}}`)
	_, js := testbus.JS(t, w.node)
	kept := func() uint64 {
		stream, err := js.Stream(w.ctx, "REFOLD_TIMERS")
		bustest.OK(t, err)
		return stream.CachedInfo().State.Msgs
	}
	bustest.Until(t, "all wakes are scheduled", func() bool { return kept() == 3 })
	bustest.OK(t, js.DeleteStream(w.ctx, "REFOLD_TIMERS"))
	if _, errOut := w.does(1, "timers", "restore"); !strings.Contains(errOut, "REFOLD_TIMERS") && !strings.Contains(errOut, "the stream does not exist") {
		t.Errorf("without the stream: got %q", errOut)
	}
	conf, err := streamconf.ParseConf(streamconf.File, w.bus.Names())
	bustest.OK(t, err)
	if err := w.bus.Provision(w.ctx, conf, 1); err != nil { // as a session-actor does that is started again
		t.Fatal(err)
	}
	w.prints(0, `^3 wakes scheduled, of 3 sessions, in `, "timers", "restore")
	w.reaches("late", "the end of its run", func(v session.View) bool { return v.Last != nil && v.Last.Code == session.CodeDeadlineExceeded })
	bustest.Until(t, "those that lie ahead are left", func() bool { return kept() == 2 })
	w.prints(0, `^{"scheduled":2,"sessions":3,"took_ms":\d+}\n$`, "timers", "restore", "--json")
	if n := kept(); n != 2 {
		t.Errorf("%d schedules after a second restore, want 2", n)
	}
	w.prints(0, `^verify: identical`, "verify", "--all")
}
