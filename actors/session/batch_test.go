package session_test

// Batches and settlements at the edges that a scenario file has no room for.

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// made is a list of n calls.
func made(n int, name, arguments string) []any {
	calls := make([]any, n)
	for i := range calls {
		calls[i] = map[string]any{"tool_name": name, "arguments": arguments}
	}
	return calls
}

// ready is a session with a host session and a run that waits for its model.
func ready(t testing.TB) *told {
	t.Helper()
	w := newTold(t)
	w.must(w.tell(session.DoorCtl, session.TypeHostSessionUpdated, map[string]any{"status": "ready"}))
	w.run(nil)
	return w
}

func (w *told) calls(effect string, calls []any) {
	w.t.Helper()
	w.must(w.tell(session.DoorLLM, session.TypeToolCallsObserved, map[string]any{"effect": effect, "calls": calls}))
}

func (w *told) settled(effect string) {
	w.t.Helper()
	w.must(w.tell(session.DoorTool, session.TypeToolCallSettled, map[string]any{"effect": effect, "status": "succeeded"}))
}

// The first 64 calls may run, the others get results at once, and the model sees
// one result for each, in order.
func TestCallsBeyondTheBatch(t *testing.T) {
	t.Parallel()
	for _, n := range []int{session.CallsMax, session.CallsMax + 1, session.CallsSeenMax} {
		w := ready(t)
		w.calls("r1t1", made(n, "stat", `{"path":"a"}`))
		if got, want := len(w.state.Open()), session.CallsMax+1; got != want {
			t.Fatalf("%d calls: %d effects are open, want %d and a wake", n, got, session.CallsMax)
		}
		if got, want := w.state.Turn.Batch.Excess, n-session.CallsMax; got != want {
			t.Errorf("%d calls: %d are in excess, want %d", n, got, want)
		}
		for i := range session.CallsMax {
			w.settled(fmt.Sprintf("r1t1c%d", i))
		}
		results := w.state.Items[2:]
		if len(results) != n {
			t.Fatalf("%d calls have %d results", n, len(results))
		}
		for i, it := range results {
			excess := i >= session.CallsMax
			if refused := fmt.Sprintf("; %d of %d were refused", n-session.CallsMax, n); excess && !strings.HasSuffix(it.Detail.String(), refused) {
				t.Errorf("%d calls: result %d says %q, want how many were refused", n, i, it.Detail.String())
			}
			if excess && it.Seq != 4 {
				t.Errorf("%d calls: result %d is of event %d, want that of the answer", n, i, it.Seq)
			}
			if it.Role != session.RoleTool || int(it.Call) != i || (it.Code == session.CodeLimitExceeded) != excess || (it.Detail.String() != "") != excess {
				t.Errorf("%d calls: result %d is %+v", n, i, it)
			}
		}
		if _, err := w.tell(session.DoorTool, session.TypeToolCallSettled, map[string]any{
			"effect": fmt.Sprintf("r1t1c%d", session.CallsMax), "status": "succeeded",
		}); !errors.Is(err, session.RejectUnknownEffect) {
			t.Errorf("a call in excess was settled: %v, want %v", err, session.RejectUnknownEffect)
		}
	}
}

// An unusable answer ends the run, so that a fault of a bridge never hangs a
// session, and changes nothing else.
func TestUnusableAnswers(t *testing.T) {
	t.Parallel()
	call := made(1, "stat", `{"path":"a"}`)
	for name, c := range map[string]struct {
		typ   string
		data  map[string]any
		place string
	}{
		"more calls than are seen": {session.TypeToolCallsObserved, map[string]any{"calls": made(session.CallsSeenMax+1, "stat", "")}, "calls"},
		"a long model":             {session.TypeToolCallsObserved, map[string]any{"calls": call, "model": long("m", 129)}, "model"},
		"a long provider id": {session.TypeToolCallsObserved, map[string]any{"calls": []any{map[string]any{
			"tool_name": "stat", "arguments": "", "provider_call_id": long("i", 257),
		}}}, "calls[0].provider_call_id"},
		"negative usage":       {session.TypeToolCallsObserved, map[string]any{"calls": call, "usage": map[string]any{"input_tokens": -1}}, "usage.input_tokens"},
		"endless usage":        {session.TypeGenerationSettled, map[string]any{"status": "ok", "usage": map[string]any{"output_tokens": 1<<40 + 1}}, "usage.output_tokens"},
		"a long text":          {session.TypeToolCallsObserved, map[string]any{"calls": call, "text": map[string]any{"text": long("t", session.TextBytesMax+1)}}, "text.text"},
		"an answer too long":   {session.TypeGenerationSettled, map[string]any{"status": "ok", "text": map[string]any{"text": long("t", session.TextBytesMax+1)}}, "text.text"},
		"an answer in pieces":  {session.TypeGenerationSettled, map[string]any{"status": "ok", "text": map[string]any{"text": "a", "parts": []any{map[string]any{"text": "b"}}}}, "text"},
		"an error that is ok":  {session.TypeGenerationSettled, map[string]any{"status": "ok", "error": map[string]any{"code": "x"}}, "error"},
		"a failure of nothing": {session.TypeGenerationSettled, map[string]any{"status": "failed"}, "error"},
		"an error of no code":  {session.TypeGenerationSettled, map[string]any{"status": "failed", "error": map[string]any{"code": ""}}, "error.code"},
		"an error's long code": {session.TypeGenerationSettled, map[string]any{"status": "failed", "error": map[string]any{"code": long("c", 65)}}, "error.code"},
		"a long finish reason": {session.TypeGenerationSettled, map[string]any{"status": "ok", "finish_reason": long("f", 129)}, "finish_reason"},
		"an unknown field":     {session.TypeGenerationSettled, map[string]any{"status": "ok", "wings": 2}, "wings"},
		"a wrong type":         {session.TypeGenerationSettled, map[string]any{"status": 7}, "status"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := ready(t)
			c.data["effect"] = "r1t1"
			w.must(w.tell(session.DoorLLM, c.typ, c.data))
			last := w.state.Last
			if w.state.Run != nil || last.Code != session.CodeBadSettlement || last.Lifecycle != session.Failed || !strings.HasSuffix(last.Detail.String(), " at "+c.place) {
				t.Errorf("the run ended %+v, want %s: %s", last, session.CodeBadSettlement, c.place)
			}
			if len(w.state.Items) != 1 || w.state.Turn.Batch != nil || w.state.Usage != (session.UsageTotal{}) {
				t.Errorf("it left %d items, a batch %v, usage %+v", len(w.state.Items), w.state.Turn.Batch != nil, w.state.Usage)
			}
			w.must(w.tell(session.DoorLLM, c.typ, c.data)) // the same again: a silent no-op
		})
	}
}

// An unusable result is a failed call, and the model is told; the host session
// stays as it was.
func TestUnusableResults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		data  map[string]any
		place string
	}{
		"a success with an error": {map[string]any{"status": "succeeded", "error": map[string]any{"code": "x"}}, "error"},
		"an error of no code":     {map[string]any{"status": "failed", "error": map[string]any{"code": ""}}, "error.code"},
		"a long output":           {map[string]any{"status": "succeeded", "output": map[string]any{"text": long("t", session.TextBytesMax+1)}}, "output.text"},
		"an odd host session":     {map[string]any{"status": "succeeded", "host_session": map[string]any{"status": "odd"}}, "host_session.status"},
		"a long host session":     {map[string]any{"status": "succeeded", "host_session": map[string]any{"status": "closed", "id": long("h", 129)}}, "host_session.id"},
		"a long route":            {map[string]any{"status": "succeeded", "host_session": map[string]any{"status": "closed", "route": long("h", 129)}}, "host_session.route"},
		"a relative root":         {map[string]any{"status": "succeeded", "host_session": map[string]any{"status": "ready", "root": "w/s1"}}, "host_session.root"},
		"a long root":             {map[string]any{"status": "succeeded", "host_session": map[string]any{"status": "ready", "root": "/" + long("r", 1024)}}, "host_session.root"},
		"another plan's hash":     {map[string]any{"status": "succeeded", "plan_hash": "x"}, "plan_hash"},
		"an unknown status":       {map[string]any{"status": "waiting"}, "status"},
		"no status":               {map[string]any{}, "status"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := ready(t)
			w.calls("r1t1", made(1, "stat", `{"path":"a"}`))
			c.data["effect"] = "r1t1c0"
			w.must(w.tell(session.DoorTool, session.TypeToolCallSettled, c.data))
			got := w.state.Turn
			if got.Number != 2 || w.state.Host == nil || w.state.Host.Status != "ready" {
				t.Fatalf("turn %d, host session %+v", got.Number, w.state.Host)
			}
			it := w.state.Items[len(w.state.Items)-1]
			if it.Code != session.CodeBadSettlement || !strings.HasSuffix(it.Detail.String(), " at "+c.place) || len(it.Detail.String()) > session.DetailBytesMax {
				t.Errorf("the result is %+v, want %s: %s", it, session.CodeBadSettlement, c.place)
			}
		})
	}
}

// These results look odd and are valid.
func TestUsableResults(t *testing.T) {
	t.Parallel()
	w := ready(t)
	w.calls("r1t1", made(1, "stat", `{"path":"a"}`))
	for turn, more := range []map[string]any{
		{"status": "succeeded", "plan_hash": w.state.LastPlan.String()},
		{"status": "succeeded", "output": map[string]any{"text": long("t", session.TextBytesMax)}},
		{"status": "succeeded", "output": map[string]any{"text": ""}},
		{"status": "failed"},
		{"status": "failed", "error": map[string]any{"code": long("c", 64), "detail": long("d", 10_000), "retryable": true}},
		{"status": "cancelled", "error": map[string]any{"code": "cancelled"}},
		{"status": "outcome_unknown"},
		{"status": "succeeded", "host_session": map[string]any{"status": "none"}},
	} {
		more["effect"] = fmt.Sprintf("r1t%dc0", turn+1)
		w.must(w.tell(session.DoorTool, session.TypeToolCallSettled, more))
		if it := w.state.Items[len(w.state.Items)-1]; it.Role != session.RoleTool || it.Seq != w.seq || it.Code != "" {
			t.Errorf("%v: the result is %+v", more, it)
		}
		if turn < 7 {
			w.calls(fmt.Sprintf("r1t%d", turn+2), made(1, "stat", `{"path":"a"}`))
		}
	}
	if w.state.Host != nil {
		t.Errorf("the host session is %+v, want none", w.state.Host)
	}
}

// Arguments of up to 256 KiB are passed on unchanged; if they are larger, the model
// is told.
func TestArguments(t *testing.T) {
	t.Parallel()
	w := ready(t)
	pad := planner.ArgumentsBytesMax - len(`{"path":"a","x":""}`)
	fits := `{"path":"a","content":"` + strings.Repeat("x", planner.ArgumentsBytesMax-len(`{"path":"a","content":""}`)) + `"}`
	w.calls("r1t1", []any{
		map[string]any{"tool_name": "write_file", "arguments": fits, "provider_call_id": long("p", session.ByBytesMax)},
		map[string]any{"tool_name": "write_file", "arguments": `{"path":"a","x":"` + strings.Repeat("x", pad+1) + `"}`},
	})
	e := w.open("r1t1c0")
	if len(e.Payload) > session.EffectBytesMax {
		t.Errorf("the effect has %d bytes, want at most %d", len(e.Payload), session.EffectBytesMax)
	}
	var c session.ToolCall
	if err := codec.Unmarshal(e.Payload, &c); err != nil {
		t.Fatal(err)
	}
	if c.Arguments != fits {
		t.Errorf("%d bytes of arguments went out as %d", len(fits), len(c.Arguments))
	}
	refused := w.state.Turn.Batch.Calls[1]
	if refused.Code != string(planner.InvalidArguments) || refused.Status != session.CallFailed || refused.Arguments != "" {
		t.Errorf("arguments of 262145 bytes: %s %s %s", refused.Status, refused.Code, refused.Detail)
	}
}

// A model's error keeps its whole code and the beginning of its detail.
func TestLongFailure(t *testing.T) {
	t.Parallel()
	w := ready(t)
	w.must(w.tell(session.DoorLLM, session.TypeGenerationSettled, map[string]any{
		"effect": "r1t1", "status": "failed", "error": map[string]any{"code": long("c", session.CodeBytesMax), "detail": strings.Repeat("é", 1000)},
	}))
	want := session.Ended{Code: long("c", session.CodeBytesMax), Detail: sentence.Own(strings.Repeat("é", session.DetailBytesMax/2)), Lifecycle: session.Failed, Number: 1}
	if *w.state.Last != want {
		t.Errorf("the run ended %+v, want %+v", *w.state.Last, want)
	}
}

// Usage adds up over the turns of a run and the runs of a session, including failed
// ones.
func TestUsageAddsUp(t *testing.T) {
	t.Parallel()
	w := ready(t)
	usage := map[string]any{"input_tokens": 10, "output_tokens": 3, "cached_tokens": 2, "reasoning_tokens": 1}
	w.must(w.tell(session.DoorLLM, session.TypeToolCallsObserved, map[string]any{"effect": "r1t1", "calls": made(1, "nosuch", ""), "usage": usage}))
	finished := func(notices []session.Notice, err error) session.UsageTotal {
		t.Helper()
		w.must(notices, err)
		return notices[0].Data.(session.RunFinished).Usage
	}
	got := finished(w.tell(session.DoorLLM, session.TypeGenerationSettled, map[string]any{"effect": "r1t2", "status": "ok", "usage": usage}))
	if want := (session.UsageTotal{CachedTokens: 4, InputTokens: 20, OutputTokens: 6, ReasoningTokens: 2}); got != want {
		t.Errorf("run 1 used %+v, want %+v", got, want)
	}
	w.run(nil)
	got = finished(w.tell(session.DoorLLM, session.TypeGenerationSettled, map[string]any{
		"effect": "r2t1", "status": "failed", "error": map[string]any{"code": "x"}, "usage": usage,
	}))
	if want := (session.UsageTotal{CachedTokens: 2, InputTokens: 10, OutputTokens: 3, ReasoningTokens: 1}); got != want {
		t.Errorf("run 2 used %+v, want %+v", got, want)
	}
	if want := (session.UsageTotal{CachedTokens: 6, InputTokens: 30, OutputTokens: 9, ReasoningTokens: 3}); w.state.Usage != want {
		t.Errorf("the session used %+v, want %+v", w.state.Usage, want)
	}
}
