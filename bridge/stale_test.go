package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
)

// TestCancelledBeforeAnybodyServed: a retry-safe call is not claimed, so no
// claim says that its run was cancelled before a bridge came. One that has
// waited is looked up first.
func TestCancelledBeforeAnybodyServed(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	asked := time.Now().Add(-time.Minute)
	for _, name := range []string{"r1t1c0", "r1t1c1"} {
		c := toolCall(name, true)
		c.At = asked.UnixMilli()
		a.ask(t, session.ClassTool, "host", name, c)
	}
	view, err := json.Marshal(session.View{Session: "s1", Seq: 9, Clock: asked.Add(time.Second).UnixMilli(), Open: []session.ViewEffect{{Effect: "r1t1c1"}}})
	if err != nil {
		t.Fatal(err)
	}
	a.serveView(t, view)
	var starts ledger
	b := a.bridge(t, "late")
	if err := b.Tool("host", executorFunc(func(_ context.Context, c executor.Call) (executor.Result, error) {
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

// TestStillWanted: who can't be asked, or knows no better, stops nothing.
func TestStillWanted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		view session.View
		err  error
		want next
	}{
		"not open any more":        {session.View{Clock: 101}, nil, nextAck},
		"still open":               {session.View{Clock: 101, Open: []session.ViewEffect{{Effect: "r1t1c0"}}}, nil, nextStart},
		"a view of the moment":     {session.View{Clock: 100}, nil, nextStart},
		"a view from before":       {session.View{Clock: 99}, nil, nextStart},
		"nobody answers":           {session.View{}, errors.New("nobody"), nextStart},
		"open among other effects": {session.View{Clock: 101, Open: []session.ViewEffect{{Effect: "w1"}, {Effect: "r1t1c0"}}}, nil, nextStart},
	} {
		w := &worker{wire: viewOnly{view: c.view, err: c.err}}
		f := &flight{effect: effect{call: &session.ToolCall{At: 100, Effect: "r1t1c0"}}}
		f.name.Session, f.name.Effect = "s1", "r1t1c0"
		if got := w.stillWanted(t.Context(), f); got.next != c.want {
			t.Errorf("%s: got %v, want %v", name, got.next, c.want)
		}
	}
}

// viewOnly is a wire that answers with one view.
type viewOnly struct {
	wire
	view session.View
	err  error
}

func (v viewOnly) View(context.Context, string) (session.View, error) { return v.view, v.err }
