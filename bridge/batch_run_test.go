package bridge_test

// A host loop executes the plan itself and settles it as one event; the model is
// shown each result.

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/client"
)

// twice is a model that calls a tool twice and repeats the results.
type twice struct{}

func (twice) Generate(_ context.Context, r executor.Request, _ func(string)) (executor.Answer, error) {
	var a executor.Answer
	if len(r.Messages) == 1 {
		for range 2 {
			a.Calls = append(a.Calls, executor.AnswerCall{ID: "same", Name: "do", Arguments: "{}"})
		}
		return a, nil
	}
	for _, m := range r.Messages[2:] {
		a.Text += fmt.Sprintf("%s %v %s\n", m.CallID, m.Error, m.Text)
	}
	return a, nil
}

const loop = `{
  "v": 1, "rules": 1, "profiles": [],
  "tools": [{"tool_id": "own.do", "tool_name": "do", "description": "Does it.", "args_schema": {"type": "object"},
    "executor": {"kind": "host_loop", "target": "own"}}],
  "config": {"provider": "twice", "model": "any"}
}`

func TestModelIsShownEachResultOfAHostLoop(t *testing.T) {
	t.Parallel()
	end := endOf(t, loop, func(b *bridge.Bridge) error { return b.Model("twice", twice{}) }, func(c *client.Client, n client.Notice) {
		var plan struct {
			Batch string `json:"batch"`
			Hash  string `json:"plan_hash"`
		}
		if n.Type == "EventRejected" {
			t.Errorf("rejected: %s", n.Data)
		}
		if n.Type != "CallsPlanned" {
			return
		}
		if err := json.Unmarshal(n.Data, &plan); err != nil {
			t.Error(err)
			return
		}
		settled := fmt.Sprintf(`{"type":"ToolBatchSettled","data":{"batch":%q,"plan_hash":%q,"results":[
			{"effect":"r1t1c1","status":"failed","error":{"code":"busy","detail":"later"}},
			{"effect":"r1t1c0","status":"succeeded","output":{"parts":[{"text":"did"},{"text":"it"}]}}]}}`, plan.Batch, plan.Hash)
		if _, err := c.Publish(t.Context(), session.DoorTool, "s1", []byte(settled), ""); err != nil {
			t.Error(err)
		}
	})
	want := "r1t1c0 false did\nit\nr1t1c1 true error: busy: later\n"
	if end.Output == nil || strings.TrimSpace(end.Output.Text) != strings.TrimSpace(want) {
		t.Errorf("got %+v with %+v, want %q", end, end.Output, want)
	}
}
