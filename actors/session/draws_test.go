package session_test

// What random histories are drawn from.

import (
	"encoding/json"
	"fmt"

	"pgregory.net/rapid"

	"github.com/refold/refold/actors/session"
)

func allDoors() []session.Door {
	return []session.Door{
		session.DoorIn, session.DoorCtl, session.DoorApprove, session.DoorLLM, session.DoorTool, session.DoorWake, session.DoorStep, session.DoorSpace, session.DoorChild,
	}
}

func say(door session.Door, typ string, data any) (session.Door, []byte) {
	payload, err := json.Marshal(map[string]any{"type": typ, "data": data})
	if err != nil {
		panic(err)
	}
	return door, payload
}

// draw makes the next event: mostly what the state waits for.
func (l *laws) draw() (session.Door, []byte) {
	open := l.state.Open()
	switch rapid.IntRange(0, 25).Draw(l.t, "kind") {
	case 0:
		return l.drawRun()
	case 1, 5:
		return drawSetting(l.t)
	case 18, 19, 20, 21:
		return l.drawControl()
	case 22, 23:
		return l.drawSteer()
	case 24:
		return l.drawDecision()
	case 6:
		return l.drawOverrides()
	case 7:
		return l.drawRegistrySet()
	case 8, 9:
		if t := l.state.Turn; t != nil {
			return l.drawBatchSettled(fmt.Sprintf("r%dt%d", t.Run, t.Number))
		}
	case 2:
		return rapid.SampledFrom(allDoors()).Draw(l.t, "door"), rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(l.t, "garbage")
	case 3:
		if len(l.history) > 0 { // the same again
			e := rapid.SampledFrom(l.history).Draw(l.t, "repeat")
			return e.Door, e.Payload
		}
	case 4:
		r, t, c := rapid.IntRange(0, 3).Draw(l.t, "r"), rapid.IntRange(0, 3).Draw(l.t, "t"), rapid.IntRange(0, 3).Draw(l.t, "c")
		switch rapid.IntRange(0, 2).Draw(l.t, "stray") {
		case 0:
			return l.drawPrepared(fmt.Sprintf("r%dt%ds", r, t))
		case 1:
			return l.drawBatchSettled(fmt.Sprintf("r%dt%d", r, t))
		}
		return drawCallSettlement(l.t, fmt.Sprintf("r%dt%dc%d", r, t, c))
	}
	if l.state.View().WaitsFor == "approval" || rapid.IntRange(0, 4).Draw(l.t, "approvals") == 0 && len(l.awaiting()) > 0 {
		return l.drawDecision()
	}
	if calls := l.hostLoopCalls(); len(calls) > 0 && rapid.IntRange(0, 2).Draw(l.t, "host loop") > 0 {
		return drawCallSettlement(l.t, rapid.SampledFrom(calls).Draw(l.t, "call"))
	}
	if calls := l.replies(); len(calls) > 0 && rapid.IntRange(0, 2).Draw(l.t, "replies") > 0 {
		return drawReply(l.t, rapid.SampledFrom(calls).Draw(l.t, "call"))
	}
	if len(open) == 0 && l.state.Run != nil {
		return l.drawControl()
	}
	if len(open) == 0 || l.state.Run == nil && rapid.Bool().Draw(l.t, "go on") {
		return l.drawRun()
	}
	return l.settle(rapid.SampledFrom(open).Draw(l.t, "open"))
}

// settle draws a settlement of an open effect.
func (l *laws) settle(e session.Effect) (session.Door, []byte) {
	switch e.Class {
	case session.ClassLLM:
		return l.drawTurn(e.Name)
	case session.ClassTool:
		return drawCallSettlement(l.t, e.Name)
	case session.ClassStep:
		return l.drawPrepared(e.Name)
	}
	return say(session.DoorWake, session.TypeWakeSettled, map[string]any{"effect": e.Name})
}

func (l *laws) drawRun() (session.Door, []byte) {
	t := l.t
	data := map[string]any{"input": map[string]any{"text": rapid.SampledFrom([]string{"hi", "", "go on"}).Draw(t, "input")}}
	if rapid.IntRange(0, 4).Draw(t, "with config") > 0 {
		data["config"] = l.drawConfig()
	}
	if rapid.IntRange(0, 4).Draw(t, "with submission") == 0 {
		data["submission"] = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "submission")
	}
	if rapid.IntRange(0, 3).Draw(t, "with roles") == 0 {
		data["roles"] = rapid.SliceOfN(rapid.SampledFrom([]string{"admin", "user", "admin", ""}), 0, 2).Draw(t, "roles")
	}
	if rapid.IntRange(0, 2).Draw(t, "with when_busy") == 0 {
		data["when_busy"] = rapid.SampledFrom([]string{"queue", "reject", "steer", "interrupt", "interrupt", "panic"}).Draw(t, "when_busy")
	}
	return say(rapid.SampledFrom([]session.Door{session.DoorCtl, session.DoorCtl, session.DoorIn}).Draw(t, "door"), session.TypeRunRequested, data)
}

// drawConfig draws a run's config, seldom with a fault.
func (l *laws) drawConfig() map[string]any {
	t := l.t
	config := map[string]any{"provider": rapid.SampledFrom([]string{"openai", "gemini", "p"}).Draw(t, "provider"), "model": "m"}
	if rapid.IntRange(0, 2).Draw(t, "few turns") == 0 {
		config["turns_max"] = rapid.IntRange(1, 3).Draw(t, "turns_max")
	}
	if rapid.IntRange(0, 2).Draw(t, "with deadlines") == 0 {
		config["deadlines_ms"] = map[string]any{
			"turn":     rapid.SampledFrom([]int{0, 100, 101, 60_000, session.DeadlineMaxMS}).Draw(t, "turn"),
			"call":     rapid.SampledFrom([]int{0, 100, 101, 60_000, session.DeadlineMaxMS}).Draw(t, "call"),
			"run":      rapid.SampledFrom([]int{0, 0, 100, 500_000, session.LongMaxMS}).Draw(t, "run"),
			"approval": rapid.SampledFrom([]int{0, 100, 500_000, session.LongMaxMS}).Draw(t, "approval"),
		}
	}
	drawEnds(t, config)
	list := rapid.SampledFrom([]string{"", "active_tools", "disable", "enable", "force"}).Draw(t, "list")
	if list != "" {
		config[list] = rapid.SliceOfN(rapid.SampledFrom(l.tools.names), 0, 2).Draw(t, "names")
	}
	l.drawStepsOf(config)
	return config
}

// drawSetting draws what operators set.
func drawSetting(t *rapid.T) (session.Door, []byte) {
	switch rapid.IntRange(0, 3).Draw(t, "setting") {
	case 0:
		return say(session.DoorCtl, session.TypeHostSessionUpdated, map[string]any{
			"id": "h1", "status": rapid.SampledFrom([]string{"ready", "closed", "expired", "error", "none", "?"}).Draw(t, "status"),
		})
	case 1:
		facts := map[string]any{}
		for range rapid.IntRange(0, 3).Draw(t, "facts") {
			facts[rapid.SampledFrom([]string{"a", "a", "b", "c", ""}).Draw(t, "fact")] = rapid.SampledFrom([]any{"x", "x", "y", nil, nil, 7}).Draw(t, "value")
		}
		return say(session.DoorCtl, session.TypeFactsSet, map[string]any{"facts": facts})
	case 2:
		return say(session.DoorCtl, session.TypeToolProfileSelected, map[string]any{
			"profile": rapid.SampledFrom([]string{"openai", "gemini", "nosuch"}).Draw(t, "profile"),
		})
	}
	return say(session.DoorCtl, session.TypeSessionConfigured, map[string]any{
		"provider": "anthropic", "model": "m", "queue_max": rapid.IntRange(0, 3).Draw(t, "queue_max"),
		"deadlines_ms": map[string]any{"turn": rapid.SampledFrom([]int{0, 100, 60_000}).Draw(t, "turn")},
		"completion":   rapid.SampledFrom([]string{"text", "explicit"}).Draw(t, "completion"),
	})
}

func (l *laws) drawTurn(name string) (session.Door, []byte) {
	t := l.t
	switch rapid.IntRange(0, 9).Draw(t, "turn") {
	case 0:
		return say(session.DoorLLM, session.TypeGenerationSettled, map[string]any{"effect": name, "status": "ok", "text": map[string]any{"text": "done"}})
	case 1:
		return say(session.DoorLLM, session.TypeGenerationSettled, map[string]any{"effect": name, "status": "ok"})
	case 2:
		return say(session.DoorLLM, session.TypeGenerationSettled, map[string]any{
			"effect": name, "status": "failed", "error": map[string]any{"code": rapid.SampledFrom([]string{"overloaded", "context_length_exceeded"}).Draw(t, "failure"), "detail": "later", "retryable": rapid.Bool().Draw(t, "retryable")},
		})
	case 3:
		return say(session.DoorLLM, session.TypeGenerationSettled, map[string]any{"effect": name, "status": "odd"})
	}
	n := rapid.SampledFrom([]int{0, 1, 2, 3, 5, 5, 8, 64, 65, 90}).Draw(t, "calls")
	calls := make([]any, n)
	for i := range calls {
		calls[i] = map[string]any{
			"tool_name": rapid.SampledFrom(l.tools.names).Draw(t, "tool"), "provider_call_id": "dup",
			"arguments": rapid.SampledFrom(l.tools.arguments).Draw(t, "arguments"),
		}
		if n < 9 && rapid.IntRange(0, 15).Draw(t, "as a blob") == 0 {
			calls[i] = map[string]any{"tool_name": rapid.SampledFrom(l.tools.names).Draw(t, "tool"), "arguments_blob": noRef, "size": 300_000}
		}
	}
	return say(session.DoorLLM, session.TypeToolCallsObserved, map[string]any{"effect": name, "calls": calls, "usage": map[string]any{"input_tokens": 7, "cached_tokens": 3, "output_tokens": 2}})
}

// toolDraws is what a model may call, and with what.
type toolDraws struct {
	names, arguments []string
}

func builtinTools() toolDraws {
	return toolDraws{
		names: []string{
			"open_session", "close_session", "shell", "read_file", "stat", "write_file", "list_dir", "edit_file", "nosuch", "", "host.exec",
		},
		arguments: []string{
			`{}`, ``, `{"path":"a"}`, `{"path":"b"}`, `{"path":"a","content":"c"}`, `{"command":"ls"}`, `{"path":7}`, `{`, `[]`,
		},
	}
}

func drawCallSettlement(t *rapid.T, name string) (session.Door, []byte) {
	data := map[string]any{
		"effect": name,
		"status": rapid.SampledFrom([]string{"succeeded", "failed", "failed", "failed", "cancelled", "outcome_unknown", "odd"}).Draw(t, "status"),
	}
	if data["status"] != "succeeded" && rapid.IntRange(0, 3).Draw(t, "with error") > 0 {
		data["error"] = drawFault(t)
	}
	if rapid.IntRange(0, 7).Draw(t, "of another plan") == 0 {
		data["plan_hash"] = noRef[len("sha256-"):]
	}
	if rapid.Bool().Draw(t, "with output") {
		data["output"] = map[string]any{"text": "out"}
	}
	if rapid.IntRange(0, 5).Draw(t, "with host") == 0 {
		data["host_session"] = map[string]any{"id": "h1", "status": rapid.SampledFrom([]string{"ready", "closed"}).Draw(t, "host")}
	}
	return say(session.DoorTool, session.TypeToolCallSettled, data)
}
