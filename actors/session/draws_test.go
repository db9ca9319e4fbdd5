package session_test

// What random histories are drawn from.

import (
	"encoding/json"

	"pgregory.net/rapid"

	"github.com/refold/refold/actors/session"
)

func allDoors() []session.Door {
	return []session.Door{
		session.DoorIn, session.DoorCtl, session.DoorLLM, session.DoorTool, session.DoorWake, session.DoorStep, session.DoorSpace,
	}
}

func say(door session.Door, typ string, data any) (session.Door, []byte) {
	payload, err := json.Marshal(map[string]any{"type": typ, "data": data})
	if err != nil {
		panic(err)
	}
	return door, payload
}

func drawRun(t *rapid.T) (session.Door, []byte) {
	config := map[string]any{"provider": "openai", "model": "m"}
	if rapid.Bool().Draw(t, "few turns") {
		config["turns_max"] = rapid.IntRange(1, 3).Draw(t, "turns_max")
	}
	switch rapid.IntRange(0, 5).Draw(t, "tools") {
	case 0:
		config["active_tools"] = []string{}
	case 1:
		config["active_tools"] = []string{"shell", "stat", "open_session"}
	case 2:
		config["disable"] = []string{"shell"}
	case 3:
		config["force"] = []string{"edit_file"}
	}
	data := map[string]any{"input": map[string]any{"text": rapid.SampledFrom([]string{"hi", "", "go on"}).Draw(t, "input")}, "config": config}
	if rapid.IntRange(0, 4).Draw(t, "with submission") == 0 {
		data["submission"] = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "submission")
	}
	if rapid.IntRange(0, 4).Draw(t, "with when_busy") == 0 {
		data["when_busy"] = rapid.SampledFrom([]string{"queue", "reject", "panic"}).Draw(t, "when_busy")
	}
	return say(rapid.SampledFrom([]session.Door{session.DoorIn, session.DoorCtl}).Draw(t, "door"), session.TypeRunRequested, data)
}

func drawControl(t *rapid.T) (session.Door, []byte) {
	switch rapid.IntRange(0, 3).Draw(t, "control") {
	case 0:
		return say(session.DoorCtl, session.TypeHostSessionUpdated, map[string]any{
			"id": "h1", "status": rapid.SampledFrom([]string{"ready", "closed", "expired", "error", "none", "?"}).Draw(t, "status"),
		})
	case 1:
		return say(session.DoorCtl, session.TypeFactsSet, map[string]any{"facts": map[string]any{
			rapid.SampledFrom([]string{"a", "b", ""}).Draw(t, "fact"): rapid.SampledFrom([]any{"x", "y", nil, 7}).Draw(t, "value"),
		}})
	case 2:
		return say(session.DoorCtl, session.TypeToolProfileSelected, map[string]any{
			"profile": rapid.SampledFrom([]string{"openai", "gemini", "nosuch"}).Draw(t, "profile"),
		})
	}
	return say(session.DoorCtl, session.TypeSessionConfigured, map[string]any{
		"provider": "anthropic", "model": "m", "queue_max": rapid.IntRange(0, 3).Draw(t, "queue_max"),
		"deadlines_ms": map[string]any{"turn": rapid.SampledFrom([]int{0, 100, 60_000}).Draw(t, "turn")},
	})
}

func drawTurn(t *rapid.T, name string) (session.Door, []byte) {
	switch rapid.IntRange(0, 9).Draw(t, "turn") {
	case 0:
		return say(session.DoorLLM, session.TypeGenerationSettled, map[string]any{"effect": name, "status": "ok", "text": map[string]any{"text": "done"}})
	case 1:
		return say(session.DoorLLM, session.TypeGenerationSettled, map[string]any{"effect": name, "status": "ok"})
	case 2:
		return say(session.DoorLLM, session.TypeGenerationSettled, map[string]any{
			"effect": name, "status": "failed", "error": map[string]any{"code": "overloaded", "detail": "later"},
		})
	case 3:
		return say(session.DoorLLM, session.TypeGenerationSettled, map[string]any{"effect": name, "status": "odd"})
	}
	n := rapid.SampledFrom([]int{0, 1, 2, 3, 5, 63, 64, 65, 200}).Draw(t, "calls")
	calls := make([]any, n)
	for i := range calls {
		calls[i] = drawCall(t)
	}
	return say(session.DoorLLM, session.TypeToolCallsObserved, map[string]any{"effect": name, "calls": calls, "usage": map[string]any{"input_tokens": 7}})
}

func drawCall(t *rapid.T) map[string]any {
	name := rapid.SampledFrom([]string{
		"open_session", "close_session", "shell", "read_file", "stat", "write_file", "list_dir", "edit_file", "nosuch", "", "host.exec",
	}).Draw(t, "tool")
	arguments := rapid.SampledFrom([]string{
		`{}`, ``, `{"path":"a"}`, `{"path":"b"}`, `{"path":"a","content":"c"}`, `{"command":"ls"}`, `{"path":7}`, `{`, `[]`,
	}).Draw(t, "arguments")
	return map[string]any{"tool_name": name, "arguments": arguments, "provider_call_id": "dup"}
}

func drawCallSettlement(t *rapid.T, name string) (session.Door, []byte) {
	data := map[string]any{
		"effect": name,
		"status": rapid.SampledFrom([]string{"succeeded", "failed", "cancelled", "outcome_unknown", "odd"}).Draw(t, "status"),
	}
	if rapid.Bool().Draw(t, "with output") {
		data["output"] = map[string]any{"text": "out"}
	}
	if rapid.IntRange(0, 5).Draw(t, "with host") == 0 {
		data["host_session"] = map[string]any{"id": "h1", "status": rapid.SampledFrom([]string{"ready", "closed"}).Draw(t, "host")}
	}
	return say(session.DoorTool, session.TypeToolCallSettled, data)
}
