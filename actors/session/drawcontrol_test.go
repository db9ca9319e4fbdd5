package session_test

// Random control of runs, approvals, budgets and retries for random histories.

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/refold/refold/actors/session"
)

// drawEnds adds to a config what a run ends or stops by, seldom with a fault.
func drawEnds(t *rapid.T, config map[string]any) {
	if rapid.IntRange(0, 3).Draw(t, "with completion") == 0 {
		config["completion"] = rapid.SampledFrom([]string{"explicit", "explicit", "text", "odd"}).Draw(t, "completion")
	}
	if rapid.IntRange(0, 2).Draw(t, "with retry") == 0 {
		retry := map[string]any{"attempts": rapid.SampledFrom([]int{2, 3, 10, 1}).Draw(t, "attempts")}
		if rapid.Bool().Draw(t, "with backoff") {
			retry["backoff_ms"] = rapid.SampledFrom([]int{1, 1000, 400_000}).Draw(t, "backoff_ms")
		}
		if rapid.Bool().Draw(t, "with codes") {
			retry["codes"] = rapid.SampledFrom([][]string{{}, {"overloaded"}, {"bad_settlement", "deadline_exceeded"}}).Draw(t, "codes")
		}
		config["retry"] = retry
	}
	if rapid.IntRange(0, 2).Draw(t, "with fallback") == 0 {
		config["fallback"] = rapid.SampledFrom([][]any{
			{map[string]any{"provider": "p2", "model": "m2"}},
			{map[string]any{"provider": "p2", "model": "m", "on": []string{"overloaded"}, "sticky": "turn", "after_ms": 1000}, map[string]any{"provider": "p", "model": "m3", "params": map[string]any{"a": 1}}},
			{map[string]any{"provider": "p2", "model": "m2", "context": map[string]any{"tokens": 300, "keep_turns": 1}}},
			{map[string]any{"provider": "no.token", "model": "m2"}},
		}).Draw(t, "fallback")
	}
	if rapid.IntRange(0, 1).Draw(t, "with tools_mode") == 0 {
		config["tools_mode"] = rapid.SampledFrom([]string{"masked", "masked", "masked", "exact", "odd"}).Draw(t, "tools_mode")
	}
	if rapid.IntRange(0, 3).Draw(t, "with cache_ttl") == 0 {
		config["cache_ttl"] = rapid.SampledFrom([]string{"5m", "1h", "off", "odd"}).Draw(t, "cache_ttl")
	}
	if rapid.IntRange(0, 2).Draw(t, "with prices") == 0 {
		config["prices"] = map[string]any{"models": []any{map[string]any{"model": "m", "input": 2_000_000}}, "input": 1_000_000, "cache_read": 500_000, "cache_write": 1_250_000, "output": rapid.SampledFrom([]int{0, 3_000_000}).Draw(t, "output")}
	}
	if rapid.IntRange(0, 2).Draw(t, "with context") == 0 {
		context := map[string]any{}
		if rapid.IntRange(0, 3).Draw(t, "with tokens") > 0 {
			context["tokens"] = rapid.SampledFrom([]int{256, 300, 1000, 2000}).Draw(t, "tokens")
			context["keep_turns"] = rapid.SampledFrom([]int{1, 2, 6}).Draw(t, "keep_turns")
			context["compact_at"] = rapid.SampledFrom([]int{30, 80, 100}).Draw(t, "compact_at")
			context["clear_at"] = rapid.SampledFrom([]int{1, 60, 100}).Draw(t, "clear_at")
		}
		if rapid.IntRange(0, 1).Draw(t, "with summary") == 0 {
			context["summary"] = rapid.SampledFrom([]map[string]any{{"off": true}, {"provider": "p2", "model": "m2"}, {"tokens_max": 100, "prompt": "sum up"}}).Draw(t, "summary")
		}
		config["context"] = context
	}
	if rapid.IntRange(0, 2).Draw(t, "with budget") == 0 {
		config["budget"] = drawBudget(t)
	}
}

// drawBudget draws a budget of the size that runs use.
func drawBudget(t *rapid.T) map[string]any {
	budget := map[string]any{"on_breach": rapid.SampledFrom([]string{"pause", "pause", "fail"}).Draw(t, "on_breach")}
	kind := rapid.SampledFrom([]string{"tokens", "cost", "session_tokens", "session_cost"}).Draw(t, "budget")
	budget[kind] = rapid.SampledFrom([]int{1, 9, 10, 30, 1000}).Draw(t, "limit")
	return budget
}

// drawPolicy draws the rules of a policy, mostly none.
func drawPolicy(t *rapid.T, names []string) []any {
	rules := make([]any, rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "policy"))
	for i := range rules {
		rule := map[string]any{"decision": rapid.SampledFrom([]string{"ask", "ask", "deny", "allow"}).Draw(t, "decision")}
		if rapid.Bool().Draw(t, "of tools") {
			rule["tools"] = rapid.SliceOfN(rapid.SampledFrom(names), 1, 2).Draw(t, "tools")
		}
		if rapid.Bool().Draw(t, "under a condition") {
			rule["when"] = rapid.SampledFrom([]string{"args.a == '1'", "step > 0", "tool == 'x.t1'", "fact('a') == 'x'", "has(args.a)"}).Draw(t, "when")
		}
		rules[i] = rule
	}
	return rules
}

func drawDoor(t *rapid.T) session.Door {
	return rapid.SampledFrom([]session.Door{session.DoorIn, session.DoorCtl}).Draw(t, "door")
}

// drawNumber adds which run is meant: mostly the active one.
func (l *laws) drawNumber(data map[string]any) map[string]any {
	if rapid.IntRange(0, 2).Draw(l.t, "by number") == 0 {
		data["run"] = rapid.IntRange(0, int(l.state.Runs)+1).Draw(l.t, "run")
	}
	return data
}

func (l *laws) drawSteer() (session.Door, []byte) {
	t := l.t
	data := map[string]any{"input": map[string]any{"text": rapid.SampledFrom([]string{"also", "and", ""}).Draw(t, "input")}}
	if len(l.waiting) > 0 && rapid.IntRange(0, 2).Draw(t, "edit") == 0 {
		data["run"] = rapid.SampledFrom(l.waiting).Draw(t, "run")
		return say(drawDoor(t), session.TypeRunEdited, data)
	}
	return say(drawDoor(t), rapid.SampledFrom([]string{session.TypeSteerRequested, session.TypeSteerRequested, session.TypeRunEdited}).Draw(t, "type"), l.drawNumber(data))
}

// drawControl draws what is said to a run. What a run waits for is said more
// often than what ends it.
func (l *laws) drawControl() (session.Door, []byte) {
	t := l.t
	lifecycle := session.Lifecycle("")
	if l.state.Run != nil {
		lifecycle = l.state.Run.Lifecycle
	}
	data := l.drawNumber(map[string]any{})
	types := []string{
		session.TypeRunCancelRequested, session.TypeRunInterrupt, session.TypeRunPauseRequested, session.TypeRunPauseRequested,
		session.TypeRunResumeRequested, session.TypeRunCompleted, session.TypeRunFailed, session.TypeCompactRequested,
	}
	switch lifecycle {
	case session.Paused:
		types = append(types, session.TypeRunResumeRequested, session.TypeRunResumeRequested, session.TypeRunResumeRequested)
	case session.WaitingInput:
		types = append(types, session.TypeRunCompleted, session.TypeRunFailed)
	}
	typ := rapid.SampledFrom(types).Draw(t, "control")
	switch typ {
	case session.TypeCompactRequested:
		return say(session.DoorCtl, typ, map[string]any{
			"keep_turns": rapid.IntRange(0, 2).Draw(t, "keep_turns"), "instructions": rapid.SampledFrom([]string{"", "names", strings.Repeat("x", session.InstructionsBytesMax+1)}).Draw(t, "instructions"),
		})
	case session.TypeRunResumeRequested:
		if rapid.Bool().Draw(t, "with budget") {
			data["budget"] = drawBudget(t)
		}
	case session.TypeRunCompleted, session.TypeRunFailed:
		data["code"] = rapid.SampledFrom([]string{"", "", "done", strings.Repeat("x", session.CodeBytesMax+1)}).Draw(t, "code")
	case session.TypeRunCancelRequested:
		if rapid.IntRange(0, 20).Draw(t, "close") == 0 {
			return say(session.DoorCtl, rapid.SampledFrom([]string{session.TypeSessionClosed, session.TypeSessionErased}).Draw(t, "end"), map[string]any{})
		}
	}
	if typ != session.TypeRunCompleted && typ != session.TypeRunFailed {
		data["reason"] = rapid.SampledFrom([]string{"", "because", strings.Repeat("x", session.DetailBytesMax+1)}).Draw(t, "reason")
	}
	return say(drawDoor(t), typ, data)
}

// awaiting returns the calls that wait for a person.
func (l *laws) awaiting() []int {
	var calls []int
	if t := l.state.Turn; t != nil && t.Batch != nil {
		for i := range t.Batch.Calls {
			if t.Batch.Calls[i].Status == session.CallAwaiting {
				calls = append(calls, i)
			}
		}
	}
	return calls
}

// drawDecision decides over a call that waits for it, or over another.
func (l *laws) drawDecision() (session.Door, []byte) {
	t, turn := l.t, l.state.Turn
	data := map[string]any{
		"decision":  rapid.SampledFrom([]string{"approve", "approve", "approve", "deny", "deny", "odd"}).Draw(t, "decision"),
		"args_hash": noRef[len("sha256-"):],
	}
	calls := l.awaiting()
	if len(calls) == 0 || rapid.IntRange(0, 5).Draw(t, "stale") == 0 {
		data["call"] = fmt.Sprintf("r%dt%dc%d", rapid.IntRange(0, 3).Draw(t, "r"), rapid.IntRange(0, 3).Draw(t, "t"), rapid.IntRange(0, 3).Draw(t, "c"))
	} else {
		i := rapid.SampledFrom(calls).Draw(t, "call")
		data["call"] = fmt.Sprintf("r%dt%dc%d", turn.Run, turn.Number, i)
		if rapid.IntRange(0, 5).Draw(t, "wrong hash") > 0 {
			data["args_hash"] = turn.Batch.Calls[i].Approval.ArgsHash.String()
			if pack := turn.Batch.Calls[i].Pack; pack != nil {
				data["manifest"] = pack.Pin.Hash.String()
			}
		}
	}
	if rapid.IntRange(0, 2).Draw(t, "with arguments") == 0 {
		data["arguments"] = rapid.SampledFrom(l.tools.arguments).Draw(t, "arguments")
	}
	if rapid.Bool().Draw(t, "with reason") {
		data["reason"] = "no reason"
	}
	return say(rapid.SampledFrom([]session.Door{session.DoorApprove, session.DoorApprove, session.DoorApprove, session.DoorCtl, session.DoorIn}).Draw(t, "door"), session.TypeApprovalDecided, data)
}
