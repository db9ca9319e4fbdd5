package session_test

// What a client's config may do: the operator's run, which has no config of its
// own, is the oracle.

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/refold/refold/actors/session"
)

// drawLimits draws the fields of a config of which the smaller value holds.
func drawLimits(t *rapid.T, config map[string]any) {
	number := func(label string) int { return rapid.SampledFrom([]int{100, 1000, 5000}).Draw(t, label) }
	if rapid.Bool().Draw(t, "with turns_max") {
		config["turns_max"] = rapid.IntRange(1, 9).Draw(t, "turns_max")
	}
	if rapid.Bool().Draw(t, "with budget") {
		config["budget"] = map[string]any{
			rapid.SampledFrom([]string{"tokens", "session_tokens"}).Draw(t, "budget"): number("tokens"), "on_breach": rapid.SampledFrom([]string{"pause", "fail"}).Draw(t, "on_breach"),
		}
	}
	if rapid.Bool().Draw(t, "with deadlines") {
		config["deadlines_ms"] = map[string]any{rapid.SampledFrom([]string{"turn", "call", "run", "approval"}).Draw(t, "deadline"): number("ms")}
	}
}

func drawNames(t *rapid.T, label string, names []string) []string {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, len(names), rapid.ID).Draw(t, label)
}

// TestClientsOnlyNarrow: whatever a client's config names, its run is offered no
// tool, and has no limit, that a run of the operator's config would not have; and
// it keeps the operator's hook and rules.
func TestClientsOnlyNarrow(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c", "d"}
	tools := []any{}
	for _, name := range names {
		tools = append(tools, map[string]any{
			"tool_id": "t." + name, "tool_name": name, "args_schema": map[string]any{"type": "object"}, "executor": map[string]any{"kind": "effect", "target": "t"},
		})
	}
	record := map[string]any{
		"v": 1, "rules": 1, "tools": tools, "default_profile": "p", "profiles": []any{map[string]any{"profile": "p", "tools": []string{"a", "b"}}},
		"policy": map[string]any{"ingress": []string{"active_tools", "budget", "deadlines_ms", "disable", "enable", "model", "turns_max"}},
	}
	install, err := session.ParseInstall(asJSON(t, record))
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		set := map[string]any{"provider": "p", "model": "m"}
		drawLimits(rt, set)
		for _, field := range []string{"active_tools", "enable", "disable", "force"} {
			if rapid.Bool().Draw(rt, "operator's "+field) {
				set[field] = drawNames(rt, field, names)
			}
		}
		own := map[string]any{"model": "m2"}
		drawLimits(rt, own)
		for _, field := range []string{"active_tools", "enable", "disable"} {
			if rapid.Bool().Draw(rt, "client's "+field) {
				own[field] = drawNames(rt, field, names)
			}
		}
		run := func(config map[string]any) (*session.Run, []string) {
			w := toldUnder(t, install)
			w.must(w.tell(session.DoorCtl, session.TypeSessionConfigured, set))
			data := map[string]any{"input": map[string]any{"text": "go"}}
			if config != nil {
				data["config"] = config
			}
			w.must(w.tell(session.DoorIn, session.TypeRunRequested, data))
			var offered []string
			for _, tool := range w.state.View().Tools {
				if tool.Offered {
					offered = append(offered, tool.ToolName)
				}
			}
			return w.state.Run, offered
		}
		held, may := run(nil)
		client, offered := run(own)
		for _, tool := range offered {
			if !slices.Contains(may, tool) {
				rt.Fatalf("the client is offered %s, the operator's config offers %v", tool, may)
			}
		}
		h, c := &held.Config, &client.Config
		if !atMost(int64(c.TurnsMax), int64(h.TurnsMax)) {
			rt.Fatalf("turns_max is %d, the operator's is %d", c.TurnsMax, h.TurnsMax)
		}
		if b := h.Budget; b != nil && (!atMost(c.Budget.Tokens, b.Tokens) || !atMost(c.Budget.SessionTokens, b.SessionTokens) || c.Budget.OnBreach != b.OnBreach) {
			rt.Fatalf("the budget is %+v, the operator's is %+v", c.Budget, b)
		}
		if d := h.DeadlinesMS; d != nil && (!atMost(c.DeadlinesMS.Run, d.Run) || !atMost(c.DeadlinesMS.Turn, d.Turn) || !atMost(c.DeadlinesMS.Call, d.Call) || !atMost(c.DeadlinesMS.Approval, d.Approval)) {
			rt.Fatalf("the deadlines are %+v, the operator's are %+v", c.DeadlinesMS, d)
		}
	})
}

// atMost reports whether a limit holds where the operator's does; 0 is none.
func atMost(limit, operators int64) bool {
	return operators == 0 || limit > 0 && limit <= operators
}
