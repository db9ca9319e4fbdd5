package session_test

// Steers and requests at their limits: what does not fit is refused whole.

import (
	"errors"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
)

// A run holds 64 waiting steers; the next turn takes them all, and then there is
// room again.
func TestSteersMax(t *testing.T) {
	t.Parallel()
	w := toldUnder(t, askInstall(t))
	w.run(nil)
	steer := map[string]any{"input": text("more")}
	for range session.SteersMax - 1 {
		w.in(session.TypeSteerRequested, steer)
	}
	submitted := map[string]any{"input": text("more"), "when_busy": "steer", "submission": "s1"}
	w.in(session.TypeRunRequested, submitted)
	w.refused(session.RejectLimitExceeded, session.DoorIn, session.TypeSteerRequested, steer)
	w.refused(session.RejectLimitExceeded, session.DoorIn, session.TypeRunRequested, merged(submitted, map[string]any{"submission": "s2"}))
	w.silent(session.DoorIn, session.TypeRunRequested, submitted)
	w.answered("r1t1")
	if items := w.generation("r1t2").Items.Seqs; len(items) != 2+session.SteersMax || len(w.state.Run.Steers) != 0 {
		t.Errorf("the next turn has %d items, %d steers wait", len(items), len(w.state.Run.Steers))
	}
	w.in(session.TypeRunRequested, merged(submitted, map[string]any{"submission": "s2"}))
}

// The steers that an ended run left become one run at the head of a full queue, and
// its first turn has all of them.
func TestSteersOfARunThatEnded(t *testing.T) {
	t.Parallel()
	w := toldUnder(t, askInstall(t))
	w.must(w.tell(session.DoorCtl, session.TypeSessionConfigured, map[string]any{"provider": "p", "model": "m", "queue_max": session.QueueMax}))
	w.run(map[string]any{"turns_max": 1})
	for range session.QueueMax {
		w.in(session.TypeRunRequested, map[string]any{"input": text("queued")})
	}
	for range session.SteersMax {
		w.in(session.TypeSteerRequested, map[string]any{"input": text("more")})
	}
	// Nothing is interrupted for a request that has no place.
	w.refused(session.RejectQueueFull, session.DoorIn, session.TypeRunRequested, map[string]any{"input": text("now"), "when_busy": "interrupt"})
	w.in(session.TypeRunInterrupt, nil)
	w.refused(session.RejectQueueFull, session.DoorIn, session.TypeSteerRequested, map[string]any{"input": text("another run")})
	w.answered("r1t1")
	if run := w.state.Run; run.Number != session.QueueMax+2 || len(run.Steers) > 0 || len(w.state.Queue) != session.QueueMax {
		t.Errorf("run %d is active, %d steers wait, %d runs are queued", run.Number, len(run.Steers), len(w.state.Queue))
	}
	if items := w.state.Items; len(items) != 2+session.SteersMax {
		t.Errorf("the transcript has %d items", len(items))
	}
}

// Each steer that a run leaves may be a run that fails before its first turn; all
// of that happens in one event, and ends.
func TestSteersOfImmediatelyFailingRuns(t *testing.T) {
	t.Parallel()
	w := toldUnder(t, askInstall(t))
	budget := map[string]any{"session_tokens": 2000, "on_breach": "fail"}
	w.run(map[string]any{"budget": budget})
	for range session.SteersMax {
		w.in(session.TypeSteerRequested, map[string]any{"input": text("more")})
	}
	notices, err := w.tell(session.DoorLLM, session.TypeGenerationSettled, map[string]any{
		"effect": "r1t1", "status": "ok", "text": text("done"), "usage": map[string]any{"input_tokens": 2000},
	})
	w.must(notices, err)
	if w.state.Run != nil || w.state.Last.Code != session.CodeBudget || w.state.Runs != session.SteersMax+1 {
		t.Errorf("%d runs, the last is %+v", w.state.Runs, w.state.Last)
	}
	if len(notices) != 1+3*session.SteersMax || len(w.state.Items) != 2+session.SteersMax {
		t.Errorf("%d notices, %d items", len(notices), len(w.state.Items))
	}
}

// A text for people is at most 256 bytes, anywhere, and one of that length is
// stored whole.
func TestReasonsAreBounded(t *testing.T) {
	t.Parallel()
	most, more := strings.Repeat("r", session.DetailBytesMax), strings.Repeat("r", session.DetailBytesMax+1)
	for typ, field := range map[string]string{
		session.TypeRunCancelRequested: "reason", session.TypeRunInterrupt: "reason", session.TypeRunPauseRequested: "reason",
		session.TypeRunResumeRequested: "reason", session.TypeRunCompleted: "detail", session.TypeRunFailed: "detail",
		session.TypeApprovalDecided: "reason",
	} {
		t.Run(typ, func(t *testing.T) {
			t.Parallel()
			w := toldUnder(t, askInstall(t))
			w.run(explicit())
			var data map[string]any
			door := session.DoorCtl
			switch typ {
			case session.TypeApprovalDecided:
				door = session.DoorApprove
				w.called("r1t1", "askn")
				data = w.decision("r1t1c0", "deny")
			case session.TypeRunResumeRequested:
				w.pause()
			case session.TypeRunCompleted, session.TypeRunFailed:
				w.answered("r1t1")
			}
			w.refused(session.RejectLimitExceeded, door, typ, merged(data, map[string]any{field: more}))
			w.must(w.tell(door, typ, merged(data, map[string]any{field: most})))
			end := w.state.Last
			if said := typ == session.TypeRunCancelRequested || field == "detail"; said && (end == nil || end.Detail.String() != most) {
				t.Errorf("the run ended %+v", end)
			}
		})
	}
}

// Arguments that no notice can hold are replaced by the sequence of their event,
// and edited ones are bounded like the model's.
func TestLargeApprovals(t *testing.T) {
	t.Parallel()
	w := toldUnder(t, askInstall(t))
	w.run(nil)
	large := `{"a":"` + strings.Repeat(`\u0001`, 40_000) + `"}` // 240,006 bytes, each sixth a backslash
	calls := []any{map[string]any{"tool_name": "askp", "arguments": large}, map[string]any{"tool_name": "askp", "arguments": `{"a":1}`}}
	notices, err := w.tell(session.DoorLLM, session.TypeToolCallsObserved, map[string]any{"effect": "r1t1", "calls": calls})
	w.must(notices, err)
	for i, n := range notices {
		said := n.Data.(session.ApprovalRequested)
		if whole := said.Arguments != ""; whole == (said.ArgumentsSeq > 0) || !whole && said.ArgumentsSeq != w.seq || len(n.JSON()) > session.NoticeBytesMax {
			t.Errorf("call %d: %d bytes of arguments, those of event %d", i, len(said.Arguments), said.ArgumentsSeq)
		}
	}
	edit := w.decision("r1t1c1", "approve")
	w.refused(session.RejectLimitExceeded, session.DoorApprove, session.TypeApprovalDecided, merged(edit, map[string]any{"arguments": `{"a":"` + strings.Repeat("x", 256<<10) + `"}`}))
	w.must(w.tell(session.DoorApprove, session.TypeApprovalDecided, merged(edit, map[string]any{"arguments": large})))
	if got := len(w.open("r1t1c1").Payload); got < len(large) || got > session.EffectBytesMax {
		t.Errorf("the effect has %d bytes", got)
	}
}

// 64 calls wait, and are decided over one by one.
func TestApprovalsOfAFullBatch(t *testing.T) {
	t.Parallel()
	w := toldUnder(t, askInstall(t))
	w.run(nil)
	notices, err := w.tell(session.DoorLLM, session.TypeToolCallsObserved, map[string]any{
		"effect": "r1t1", "calls": made(session.CallsMax+1, "askp", `{"a":1}`),
	})
	w.must(notices, err)
	if len(notices) != session.CallsMax || w.state.View().WaitsFor != "approval" {
		t.Errorf("%d notices, it waits for %s", len(notices), w.state.View().WaitsFor)
	}
	for _, c := range w.state.View().Batch.Calls {
		_, err := w.tell(session.DoorApprove, session.TypeApprovalDecided, w.decision(c.Effect, "deny"))
		if err != nil {
			t.Fatal(err)
		}
	}
	if w.asked() != "r1t2" || len(w.state.Items) != 2+session.CallsMax+1 {
		t.Errorf("asked is %s, after %d items", w.asked(), len(w.state.Items))
	}
}

// TestConfigsOfRuns tries a config's approvals, budgets, prices and retries at
// their limits.
func TestConfigsOfRuns(t *testing.T) {
	t.Parallel()
	deadlines := func(name string, ms int64) map[string]any {
		return map[string]any{"deadlines_ms": map[string]any{name: ms}}
	}
	of := func(name string, fields map[string]any) map[string]any { return map[string]any{name: fields} }
	retry := func(fields map[string]any) map[string]any {
		return of("retry", merged(map[string]any{"attempts": 2}, fields))
	}
	codes := func(n int, code string) map[string]any {
		return retry(map[string]any{"codes": strings.Split(strings.Repeat(code+",", n)+code, ",")})
	}
	for name, c := range map[string]struct {
		config map[string]any
		want   error
	}{
		"approval":             {deadlines("approval", session.LongMaxMS), nil},
		"approval, more":       {deadlines("approval", session.LongMaxMS+1), session.RejectInvalidData},
		"run":                  {deadlines("run", session.LongMaxMS), nil},
		"run, less":            {deadlines("run", session.DeadlineMinMS-1), session.RejectInvalidData},
		"completion":           {map[string]any{"completion": "soon"}, session.RejectInvalidData},
		"tokens":               {of("budget", map[string]any{"tokens": session.TokensMax, "session_tokens": session.TokensMax}), nil},
		"tokens, more":         {of("budget", map[string]any{"tokens": session.TokensMax + 1}), session.RejectInvalidData},
		"session_tokens, less": {of("budget", map[string]any{"session_tokens": -1}), session.RejectInvalidData},
		"cost":                 {of("budget", map[string]any{"cost": session.CostMax, "session_cost": session.CostMax}), nil},
		"session_cost, more":   {of("budget", map[string]any{"session_cost": session.CostMax + 1}), session.RejectInvalidData},
		"price":                {of("prices", map[string]any{"input": session.PriceMax, "cache_read": session.PriceMax, "cache_write": session.PriceMax, "output": session.PriceMax}), nil},
		"price, more":          {of("prices", map[string]any{"cache_write": session.PriceMax + 1}), session.RejectInvalidData},
		"price, less":          {of("prices", map[string]any{"output": -1}), session.RejectInvalidData},
		"attempts, one":        {retry(map[string]any{"attempts": 1}), session.RejectInvalidData},
		"attempts":             {retry(map[string]any{"attempts": session.AttemptsMax}), nil},
		"attempts, more":       {retry(map[string]any{"attempts": session.AttemptsMax + 1}), session.RejectInvalidData},
		"backoff_ms, less":     {retry(map[string]any{"backoff_ms": -1}), session.RejectInvalidData},
		"backoff_max_ms, more": {retry(map[string]any{"backoff_max_ms": session.DeadlineMaxMS + 1}), session.RejectInvalidData},
		"codes":                {codes(session.RetryCodesMax-1, "c"), nil},
		"codes, more":          {codes(session.RetryCodesMax, "c"), session.RejectLimitExceeded},
		"codes, an empty one":  {codes(1, ""), session.RejectInvalidData},
		"codes, a long one":    {codes(0, strings.Repeat("c", session.CodeBytesMax+1)), session.RejectLimitExceeded},
		"codes, none":          {retry(map[string]any{"codes": []any{}}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTold(t)
			config := merged(map[string]any{"provider": "openai", "model": "m"}, c.config)
			if _, err := w.tell(session.DoorCtl, session.TypeRunRequested, map[string]any{"input": text("go"), "config": config}); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// ToolOverridesSet for one run does not apply to the run that its leftover steers
// become.
func TestOverridesEndWithTheRun(t *testing.T) {
	t.Parallel()
	w := newTold(t)
	w.run(map[string]any{"turns_max": 1, "disable": []string{"glob"}})
	w.must(w.tell(session.DoorCtl, session.TypeToolOverridesSet, map[string]any{"scope": "run", "disable": []string{"open_session"}}))
	w.in(session.TypeSteerRequested, map[string]any{"input": text("more")})
	w.answered("r1t1")
	if got := w.state.Run.Config.Disable; w.state.Run.Number != 2 || len(got) != 1 || got[0] != "glob" {
		t.Errorf("run %d disables %v, want run 2 as run 1 was requested", w.state.Run.Number, got)
	}
}
