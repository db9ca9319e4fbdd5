package session_test

// The same fault says the same, always: in the notice, in the state.

import (
	"bytes"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/refold/refold/actors/session"
)

// faultRepeats is how often each fault is folded again.
const faultRepeats = 1000

// Calls that are refused for every possible reason give the same notices and the
// same state, a thousand times, on many threads. (No accepted registry has an
// unbound tool; the planner's tests make one.)
func TestFaultDetailIsDeterministic(t *testing.T) {
	t.Parallel()
	tool := func(name string, more map[string]any) map[string]any { return merged(stepTool(name), more) }
	schema := map[string]any{
		"type": "object", "required": []any{"a", "b", "c"}, "additionalProperties": false,
		"properties": map[string]any{"a": map[string]any{"type": "integer"}, "b": map[string]any{"enum": []any{"x", "y"}}, "c": map[string]any{"minLength": 3}},
	}
	install, err := session.ParseInstall(asJSON(t, map[string]any{
		"v": 1, "rules": 1, "tools": []any{
			tool("off", nil), tool("gated", map[string]any{"availability": []any{
				map[string]any{"kind": "fact", "name": "one", "equals": "1"}, map[string]any{"kind": "fact", "name": "two", "equals": "2"},
			}}),
			tool("denied", map[string]any{"requires": []any{"first", "second", "third"}}), tool("strict", map[string]any{"args_schema": schema}),
			tool("loop", map[string]any{"executor": map[string]any{"kind": "host_loop", "target": "ide"}}),
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	for code, c := range map[string]struct{ tool, arguments string }{
		"tool_unknown":      {"nosuch\u00e9", `{}`},
		"tool_disabled":     {"off", `{}`},
		"tool_unavailable":  {"gated", `{}`},
		"tool_denied":       {"denied", `{}`},
		"invalid_arguments": {"strict", `{"c":"z","b":"z","a":"z","more":1,"other":2}`},
		"limit_exceeded":    {"", ""}, // more calls than a batch may have
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			calls := made(1, c.tool, c.arguments)
			if code == "limit_exceeded" {
				calls = made(session.CallsMax+2, "nosuch", "")
			}
			fold := func() string {
				w := toldUnder(t, install)
				w.must(w.tell(session.DoorCtl, session.TypeRunRequested, map[string]any{
					"input": map[string]any{"text": "go"}, "config": map[string]any{"provider": "p", "model": "m", "disable": []any{"off"}},
				}))
				notices, err := w.tell(session.DoorLLM, session.TypeToolCallsObserved, map[string]any{"effect": "r1t1", "calls": calls})
				if err != nil {
					t.Error(err)
				}
				var said bytes.Buffer
				for _, n := range notices {
					said.Write(n.JSON())
				}
				if it := w.state.Items[len(w.state.Items)-1]; it.Code != code {
					t.Errorf("the last result is %+v, want %s", it, code)
				}
				return fmt.Sprint(w.state.Hash(), said.String())
			}
			repeat(t, fold)
		})
	}
}

// TestRejectionDetailIsDeterministic does the same for rejections of registries,
// rules and host loops.
func TestRejectionDetailIsDeterministic(t *testing.T) {
	t.Parallel()
	for want, event := range map[session.Rejection]struct {
		door session.Door
		typ  string
		data map[string]any
	}{
		session.RejectInvalidRegistry: {session.DoorCtl, session.TypeToolRegistrySet, map[string]any{"tools": []any{stepTool("a"), merged(stepTool("b"), map[string]any{"tool_name": "a"})}}},
		session.RejectRegistryLoosens: {session.DoorCtl, session.TypeToolRegistrySet, map[string]any{"tools": []any{
			stepTool("new"), merged(stepTool("loopn"), map[string]any{"retry_safe": true, "executor": map[string]any{"kind": "effect", "target": "x"}}),
		}}},
		session.RejectInvalidRule: {session.DoorCtl, session.TypeSessionConfigured, map[string]any{
			"provider": "p", "model": "m", "steps": []any{rule(`nosuch == 1 || other == "x" || 7`, nil)},
		}},
		session.RejectBatchMismatch:     {session.DoorTool, batchSettled, map[string]any{"batch": "r1t1", "results": []any{}}},
		session.RejectPlanMismatch:      {session.DoorTool, batchSettled, map[string]any{"batch": "r1t1", "plan_hash": otherHash, "results": []any{}}},
		session.RejectUnknownCall:       {session.DoorTool, batchSettled, map[string]any{"batch": "r1t1", "results": []any{result("r9t9c9", "failed", "")}}},
		session.RejectIllegalTransition: {session.DoorTool, callSettled, result("r1t1c1", "failed", "")},
	} {
		t.Run(string(want), func(t *testing.T) {
			t.Parallel()
			repeat(t, func() string {
				w := looped(t, nil, "loopn", "loopn")
				data := event.data
				if event.typ == batchSettled && data["plan_hash"] == nil {
					data = merged(data, map[string]any{"plan_hash": w.state.LastPlan.String()})
				}
				notices, err := w.tell(event.door, event.typ, data)
				if err != want { //nolint:errorlint // a Rejection is never wrapped
					t.Errorf("got %v, want %v", err, want)
				}
				return fmt.Sprint(w.state.Hash(), string(notices[len(notices)-1].JSON()))
			})
		})
	}
}

// repeat calls fold faultRepeats times, and compares what it leaves.
func repeat(t *testing.T, fold func() string) {
	t.Helper()
	want := fold()
	workers := runtime.GOMAXPROCS(0)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for range faultRepeats / workers {
				if got := fold(); got != want {
					t.Errorf("got %s, want %s", got, want)
					return
				}
			}
		})
	}
	all.Wait()
}
