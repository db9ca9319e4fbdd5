package session_test

// What people are shown: whom a session waits for, how far its run is, and the
// end of a transcript that may be long.

import (
	"fmt"
	"slices"
	"testing"

	"github.com/refold/refold/actors/session"
)

func TestView(t *testing.T) {
	t.Parallel()
	w := newTold(t)
	check := func(waits string, lifecycle session.Lifecycle, run uint32, open ...string) session.View {
		t.Helper()
		v := w.state.View()
		var names []string
		for _, e := range v.Open {
			names = append(names, e.Effect)
		}
		number := uint32(0)
		if v.Run != nil {
			number = v.Run.Number
		}
		if v.WaitsFor != waits || v.Lifecycle != lifecycle || number != run || !slices.Equal(names, open) {
			t.Errorf("at %d: waits for %s, %s, run %d, open %v; want %s, %s, %d, %v", v.Seq, v.WaitsFor, v.Lifecycle, number, names, waits, lifecycle, run, open)
		}
		if v.Session != "s1" || v.Status != "open" || v.Seq != w.state.Seq || v.Count != w.state.Count || v.Hash != w.state.Hash().String() || v.Chain != w.state.Chain.String() {
			t.Errorf("at %d: the head is %+v", w.state.Seq, v)
		}
		return v
	}
	if v := check("nobody", "", 0); v.Tools != nil || v.Batch != nil || v.Items != 0 {
		t.Errorf("a new session shows tools, a batch or items: %+v", v)
	}
	w.must(w.tell(session.DoorCtl, session.TypeHostSessionUpdated, map[string]any{"status": "ready", "id": "h1"}))
	w.run(map[string]any{"turns_max": 7})
	w.run(nil)
	v := check("model", session.Running, 1, "r1t1", "w1")
	if v.Run.TurnsMax != 7 || v.Run.Turns != 1 || len(v.Queue) != 1 || v.Queue[0].TurnsMax != session.TurnsDefault || v.Host.ID != "h1" {
		t.Errorf("run %+v, queue %+v, host %+v", v.Run, v.Queue, v.Host)
	}
	w.calls("r1t1", append(made(2, "stat", `{"path":"a"}`), made(2, "shell", `{"command":"a"}`)...))
	w.settled("r1t1c1")
	v = check("tools", session.Running, 1, "r1t1c0", "w1")
	var calls []session.CallStatus
	for _, c := range v.Batch.Calls {
		calls = append(calls, c.Status)
	}
	if want := []session.CallStatus{session.CallOpen, session.CallSucceeded, session.CallWaiting, session.CallWaiting}; !slices.Equal(calls, want) {
		t.Errorf("the calls are %v, want %v", calls, want)
	}
	if fmt.Sprint(v.Batch.Groups) != "[[0 1] [2] [3]]" || v.Batch.Group != 0 || v.Batch.Batch != "r1t1" {
		t.Errorf("the batch is %+v", v.Batch)
	}
	for _, call := range []int{0, 2, 3} {
		w.settled(fmt.Sprintf("r1t1c%d", call))
	}
	w.must(w.tell(session.DoorLLM, session.TypeGenerationSettled, map[string]any{"effect": "r1t2", "status": "ok", "text": map[string]any{"text": "x"}}))
	v = check("model", session.Running, 2, "r2t1", "w1")
	if v.Last.Number != 1 || v.Last.Lifecycle != session.Completed {
		t.Errorf("the last run is %+v", v.Last)
	}
	for turn := range 3 {
		w.calls(fmt.Sprintf("r2t%d", turn+1), made(64, "nosuch", ""))
	}
	w.must(w.tell(session.DoorLLM, session.TypeGenerationSettled, map[string]any{"effect": "r2t4", "status": "failed", "error": map[string]any{"code": "x"}}))
	v = check("nobody", session.Failed, 0, "w1")
	if len(v.Transcript) != 100 || v.Items != len(w.state.Items) || v.Transcript[99].Call != 63 || v.Transcript[99].Code != "tool_unknown" {
		t.Errorf("%d of %d items are shown, the last %+v", len(v.Transcript), v.Items, v.Transcript[len(v.Transcript)-1])
	}
	for _, tool := range v.Tools {
		if tool.Offered != (tool.Why == "offered") {
			t.Errorf("%s: offered %v, because %s", tool.ToolName, tool.Offered, tool.Why)
		}
	}
}
