package bridge

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
)

// A retry-safe call is not claimed, so no claim says that its run was cancelled
// before a bridge served it. The bridge checks the view of a call that has
// waited.
func TestRetrySafeCallCancelledBeforeABridgeServesDoesNotStart(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	asked := time.Now().Add(-time.Minute)
	for _, name := range []string{"r1t1c0", "r1t1c1"} {
		c := callAsked(name, true)
		c.At = asked.UnixMilli()
		a.ask(t, session.ClassTool, "host", name, c)
	}
	view, err := json.Marshal(session.View{Shown: session.Shown{Session: "s1", Seq: 9, Clock: asked.Add(time.Second).UnixMilli()}, Open: []session.ViewEffect{{Effect: "r1t1c1"}}})
	if err != nil {
		t.Fatal(err)
	}
	a.serveView(t, view)
	var starts startLog
	b := a.bridge(t, "late")
	if err := b.Tool("host", toolFunc(func(_ context.Context, c executor.Call) (executor.Result, error) {
		starts.add(c.Effect)
		return executor.Result{}, nil
	})); err != nil {
		t.Fatal(err)
	}
	run(t, b)
	a.allAcked(t, "tool-host")
	if got := starts.all(); len(got) != 1 || got[0] != "r1t1c1" {
		t.Errorf("started %q, want the call that is still open", got)
	}
}
