package cli

// Tools that a turn offers, and that the provider's API can't be sent: refold
// tools, why and tools import say which and why.

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/llm/schema"
)

func TestToolsThatAProviderIsNotSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tools := []any{map[string]any{
		"tool_id": "a.text", "tool_name": "a_text", "args_schema": map[string]any{"type": "string"}, "executor": map[string]any{"kind": "effect", "target": "a"},
	}}
	for i := range 129 {
		tools = append(tools, map[string]any{
			"tool_id": fmt.Sprintf("b.t%03d", i), "tool_name": fmt.Sprintf("t%03d", i), "args_schema": map[string]any{"type": "object"}, "executor": map[string]any{"kind": "effect", "target": "b"},
		})
	}
	record, err := json.Marshal(map[string]any{"v": 1, "rules": 1, "profiles": []any{}, "tools": tools, "config": map[string]any{"provider": "gemini", "model": "m"}})
	bustest.OK(t, err)
	w.does(0, "install", file(t, string(record)))
	for sid, config := range map[string]string{"s1": ``, "s2": `,"config":{"provider":"anthropic","model":"m"}`, "s3": `,"config":{"provider":"scripted","model":"m"}`} {
		w.says(session.DoorIn, sid, session.TypeRunRequested, `{"input":{"text":"hi"}`+config+`}`)
		w.reaches(sid, "the first turn is asked", turnOf("r1t1"))
	}
	out, errOut := w.does(0, "tools", "s1")
	like(t, "tools", out+errOut, `\n  1    a_text  a\.text  but the model does not see it: gemini can't be told of it: its arguments are no object *\n  2    t000 +b\.t000\n(.*\n)*`+
		`  129  t127 +b\.t127\n  130  t128 +b\.t128  but the model does not see it: gemini takes at most 128 tools, and is sent the first ones\n`)
	for want, args := range map[string][]string{
		`t128 \(b\.t128\): offered, 130 of 130, but the model does not see it: gemini takes at most 128 tools`: {"s1", "t128"},
		`t127 \(b\.t127\): offered, 129 of 130\n$`:                                                             {"s1", "t127", "--turn", "r1t1"},
		`t128 \(b\.t128\): offered, 130 of 130\n$`:                                                             {"s2", "t128"},
		`a_text \(a\.text\): offered, 1 of 130, but the model does not see it: anthropic can't be told of it`:  {"s2", "a_text", "--turn", "r1t1"},
		`a_text \(a\.text\): offered, 1 of 130\n$`:                                                             {"s3", "a_text"},
	} {
		out, _ := w.does(0, append([]string{"why"}, args...)...)
		like(t, fmt.Sprint(args), out, want)
	}
}

// TestFormThatAProviderCantHoldTo: refold tools says that the model is only told of the
// schema of its answer.
func TestFormThatAProviderCantHoldTo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.does(0, "install", file(t, `{"v":1,"rules":1,"profiles":[],"tools":[{"tool_id":"a.a","tool_name":"a","args_schema":{"type":"object"},"executor":{"kind":"effect","target":"a"}}]}`))
	for sid, schema := range map[string]string{"s1": `{"type":"object","additionalProperties":{"type":"string"}}`, "s2": `{"type":"object","properties":{"a":{"type":"string","minLength":1}}}`} {
		w.says(session.DoorCtl, sid, session.TypeRunRequested, `{"input":{"text":"hi"},"config":{"provider":"anthropic","model":"m","response_format":{"type":"json_schema","schema":`+schema+`}}}`)
		w.reaches(sid, "the first turn is asked", turnOf("r1t1"))
	}
	const told = "refold: the response_format is sent in a looser form, and answers are checked against its own: anthropic can't hold the model to it: an object of it has any properties, or a value of it may be anything\n"
	for sid, want := range map[string]string{"s1": told, "s2": ""} {
		if _, got := w.does(0, "tools", sid); got != want {
			t.Errorf("%s: got %q, want %q", sid, got, want)
		}
	}
}

// TestTellSchemas: an import says what models are shown instead.
func TestTellSchemas(t *testing.T) {
	t.Parallel()
	var got string
	for _, line := range schema.Tell([]executor.Tool{
		{Name: "7_list", Schema: json.RawMessage(`{"type":"object","properties":{"$filter":{"type":"string"}}}`)},
		{Name: "text", Schema: json.RawMessage(`{"type":"string"}`)},
	}) {
		got += line + "\n"
	}
	like(t, "told", got, `^text is left out for models of anthropic: .*\n7_list: its argument "\$filter" is called _filter for models of anthropic\n(.*\n)*7_list is called x_7_list for models of gemini\n(.*\n)*models are shown some schemas of these 2 tools in another form, .*: anthropic 1, gemini 1, openai-chat 1\n$`)
}
