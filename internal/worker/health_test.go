package worker

import (
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/internal/secrets"
)

// The trouble also reports the earliest next try.
func TestProviderIsInTroubleUntilItAnswers(t *testing.T) {
	t.Parallel()
	start := time.UnixMilli(1_000_000)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	fault := func(code string, retryable bool) *executor.Error {
		return &executor.Error{Code: code, Detail: "d", Retryable: retryable}
	}
	turn := func(sid string) *execution {
		return &execution{digest: nameDigest(sid, "r1t1"), effect: &effect{generation: new(session.Generation)}}
	}
	one, other := turn("s1"), turn("s2")
	var h Pacer
	for _, step := range []struct {
		name string
		do   func()
		held time.Time
		want *session.Trouble
	}{
		{"healthy", func() {}, at(9), nil},
		{"it tells of the generation alone", func() { h.failed(fault("script_mismatch", false), at(1)) }, time.Time{}, nil},
		{"a try failed", func() { h.failed(fault(codeNetwork, true), at(1)); h.reserveRetry(one, at(4), 0) }, time.Time{}, &session.Trouble{Code: codeNetwork, Since: at(1).UnixMilli(), Next: at(4).UnixMilli()}},
		{"another one, which is tried before", func() { h.failed(fault(codeOverloaded, true), at(2)); h.reserveRetry(other, at(3), 0) }, at(9), &session.Trouble{Code: codeOverloaded, Since: at(1).UnixMilli(), Next: at(3).UnixMilli()}},
		{"that was withdrawn", func() { h.leave(other) }, time.Time{}, &session.Trouble{Code: codeOverloaded, Since: at(1).UnixMilli(), Next: at(4).UnixMilli()}},
		{"the breaker holds all", func() { h.leave(one) }, at(9), &session.Trouble{Code: codeOverloaded, Since: at(1).UnixMilli(), Next: at(9).UnixMilli()}},
		{"nothing is tried", func() {}, time.Time{}, &session.Trouble{Code: codeOverloaded, Since: at(1).UnixMilli()}},
		{"a code of the model's own", func() { h.failed(fault("busy", true), at(5)) }, time.Time{}, &session.Trouble{Code: "busy", Since: at(1).UnixMilli()}},
		{"it refused for a reason of the request", func() { h.failed(fault(codeBadRequest, false), at(6)) }, time.Time{}, nil},
		{"the key is refused", func() { h.failed(fault(codeAuth, false), at(7)) }, time.Time{}, &session.Trouble{Code: codeAuth, Since: at(7).UnixMilli()}},
		{"it answers", func() { h.answered() }, time.Time{}, nil},
	} {
		step.do()
		h.paused = step.held
		got := h.trouble(start)
		if (got == nil) != (step.want == nil) || got != nil && (got.Code != step.want.Code || got.Since != step.want.Since || got.Next != step.want.Next) {
			t.Errorf("%s: got %+v, want %+v", step.name, got, step.want)
		}
	}
}

// troubled executes nothing, and reports troubles.
type troubled struct {
	executor.Executor
	all []string
}

func (t troubled) Troubles() []string { return t.all }

// One trouble for each target, without secrets, and bounded.
func TestHeartbeatsReportTroubles(t *testing.T) {
	t.Parallel()
	w := New(newWorld(), "me", "test/me", time.Now, slog.New(slog.DiscardHandler))
	w.vault.given.Add("s3cret-value")
	down := Target{Class: session.ClassLLM, Name: "p"}
	down.Paced().failed(&executor.Error{Code: codeNetwork, Detail: "no answer to s3cret-value"}, w.now())
	beat := w.Heartbeats([]string{"llm/p"}, []Target{
		down, {Class: session.ClassLLM, Name: "q", Lacks: "no key"}, {Class: session.ClassTool, Name: "fine"},
		{Class: session.ClassTool, Name: "mcp", Executor: troubled{all: []string{"one", "two"}}},
	}, func() int64 { return 660_000 })
	var said presence.Heartbeat
	if err := json.Unmarshal(beat(), &said); err != nil {
		t.Fatal(err)
	}
	if said.AheadMS != 660_000 {
		t.Errorf("clock_ahead_ms: got %d, want 660000", said.AheadMS)
	}
	want := map[string]string{"llm/p": "network: no answer to " + secrets.Mark + "", "llm/q": "lacks: no key", "tool/mcp": "executor: one (and 1 more)"}
	for _, trouble := range said.Troubles {
		if got := trouble.Code + ": " + trouble.Detail; got != want[trouble.Target] {
			t.Errorf("%s: got %q, want %q", trouble.Target, got, want[trouble.Target])
		}
		delete(want, trouble.Target)
	}
	if len(want) > 0 {
		t.Errorf("not said: %v", want)
	}
	down.Pace.answered()
	if err := json.Unmarshal(beat(), &said); err != nil || len(said.Troubles) != 2 {
		t.Errorf("it answers: %v, %+v", err, said.Troubles)
	}
}
