package e2e_test

// A program that carries tools out itself and knows nothing but NATS: it
// receives CallsPlanned, requests the view, executes group by group and settles
// the whole batch at once. A session-actor that is killed in between changes
// nothing.

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
)

// hostLoop is that program for one session.
type hostLoop struct {
	*system
	sid   string
	heard *ear
	ran   []string // what it carried out, in order
}

func hostLoopRecord() object {
	mine := func(more object) object {
		more["executor"] = object{"kind": "host_loop", "target": "editor"}
		return more
	}
	return object{
		"v": 1, "rules": 1, "tools": list{
			tool("look", mine(object{"access": "read"})), tool("move", mine(object{"parallel_safe": false, "retry_safe": false})), tool("search", nil),
		},
		"config": object{"provider": "scripted", "model": "m"},
	}
}

// hostLoopScript calls two groups, and wants the results.
const hostLoopScript = `
turns:
  - calls: [{tool: look, arguments: {at: a}}, {tool: look, arguments: {at: b}}, {tool: search}, {tool: move, arguments: {to: c}}, {tool: jump}]
  - shown:
      results:
        - {tool: look, error: false, text: 'look {"at":"a"}'}
        - {tool: look, error: false, text: 'look {"at":"b"}'}
        - {tool: search, error: false, text: done}
        - {tool: move, error: true, text: stuck}
        - {tool: jump, error: true, text: tool_unknown}
    say: Moved.
`

// planned waits for the nth CallsPlanned and returns it.
func (h *hostLoop) planned(n int) session.CallsPlanned {
	h.t.Helper()
	until(h.t, endWithin, fmt.Sprintf("CallsPlanned %d", n), func() bool { return h.heard.count(session.NoticeCallsPlanned) >= n })
	var said session.CallsPlanned
	for _, heard := range h.heard.all() {
		if heard.Type != session.NoticeCallsPlanned {
			continue
		}
		if n--; n == 0 {
			if err := json.Unmarshal(heard.Data, &said); err != nil {
				h.t.Fatal(err)
			}
		}
	}
	return said
}

// execute carries one call out. It moves nowhere.
func (h *hostLoop) execute(c session.ViewCall) object {
	h.t.Helper()
	if c.HostLoop != "editor" || c.IdempotencyKey != h.sid+"."+c.Effect || c.RetrySafe != (c.ToolName == "look") {
		h.t.Errorf("the view shows %+v", c)
	}
	h.ran = append(h.ran, c.ToolName+" "+c.Arguments)
	if c.ToolName == "move" {
		return object{"effect": c.Effect, "status": "failed", "error": object{"code": "stuck", "detail": "there is a wall"}}
	}
	return object{"effect": c.Effect, "status": "succeeded", "output": object{"text": c.ToolName + " " + c.Arguments}}
}

func (h *hostLoop) wantRan(want ...string) {
	h.t.Helper()
	if !slices.Equal(h.ran, want) {
		h.t.Errorf("carried out %q, want %q", h.ran, want)
	}
}

// startHostLoop starts a system with a model and one tool that a bridge serves.
func startHostLoop(t *testing.T, sid string, l *lab) *hostLoop {
	t.Helper()
	s := startSystem(t, hostLoopRecord())
	s.models(hostLoopScript, "scripted")
	if l != nil {
		s.tools(l)
	}
	return &hostLoop{system: s, sid: sid, heard: listen(t, s.nc, "refold.out."+sid)}
}

// TestHostLoopSettlesTheBatch in one event, later groups included.
func TestHostLoopSettlesTheBatch(t *testing.T) {
	t.Parallel()
	l := &lab{}
	h := startHostLoop(t, "s1", l)
	h.run(session.DoorIn, "s1", "go", nil)
	p := h.planned(1)
	h.actor.kill()
	// The bridge's call is settled by its bridge, while nobody folds.
	until(t, endWithin, "the bridge's own call", func() bool { return len(logOf(t, h.nc, session.DoorTool, "s1")) == 1 })
	h.actor.start()
	v := h.view("s1", "the bridge's call is settled", func(v session.View) bool {
		return v.Batch != nil && v.Batch.Calls[2].Status == session.CallSucceeded
	})
	b := v.Batch
	settle := func(plan string, results ...object) uint64 {
		return h.say(session.DoorTool, "s1", session.TypeToolBatchSettled, object{"batch": b.Batch, "plan_hash": plan, "results": results})
	}
	var results []object
	for _, group := range p.Groups {
		for _, i := range group {
			if c := b.Calls[i]; c.HostLoop != "" {
				results = append(results, h.execute(c))
			}
		}
	}
	settle(strings.Repeat("0", 64), results...)                                                              // of another plan
	settle(p.PlanHash, results[:2]...)                                                                       // the last group is missing
	settle(p.PlanHash, append(results[:3:3], results[0])...)                                                 // one is named twice
	settle(p.PlanHash, append(results[:3:3], object{"effect": "r1t1c7", "status": "succeeded"})...)          // there is no such call
	settle(p.PlanHash, append(results[:3:3], object{"effect": b.Calls[2].Effect, "status": "succeeded"})...) // has another result
	settle(p.PlanHash, results...)                                                                           // so be it
	settle(p.PlanHash, results...)                                                                           // a repeat is nothing
	settle(p.PlanHash, results[1], results[0], object{"effect": b.Calls[3].Effect, "status": "succeeded"})   // too late to say otherwise
	h.wantEnd("s1", 1, session.Completed, "")
	h.wantRan(`look {"at":"a"}`, `look {"at":"b"}`, `move {"to":"c"}`)
	h.wantCalls("s1", "search")
	h.wantRejections(h.heard, "ToolBatchSettled plan_mismatch", "ToolBatchSettled batch_mismatch", "ToolBatchSettled batch_mismatch",
		"ToolBatchSettled unknown_call", "ToolBatchSettled batch_mismatch", "ToolBatchSettled batch_mismatch")
	if got := l.ran(); got != "search" {
		t.Errorf("the bridge ran %s", got)
	}
	verifyAll(t, h.url)
}
