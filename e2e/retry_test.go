package e2e_test

// Failing models and costly runs: what is tried again, and when.

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/actors/session"
)

// delta is what a model says while it says it.
type delta struct {
	Effect string `json:"effect"`
	Text   string `json:"text"`
}

// overhear collects the deltas of a session, by effect.
func overhear(t *testing.T, nc *nats.Conn, sid string) (said func() map[string]string) {
	t.Helper()
	var mu sync.Mutex
	texts := map[string]string{}
	_, err := nc.Subscribe("refold.live."+sid, func(m *nats.Msg) {
		var d delta
		if err := json.Unmarshal(m.Data, &d); err != nil {
			t.Errorf("delta %s: %v", m.Data, err)
		}
		mu.Lock()
		defer mu.Unlock()
		texts[d.Effect] += d.Text
	})
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() map[string]string {
		mu.Lock()
		defer mu.Unlock()
		copied := map[string]string{}
		for effect, text := range texts {
			copied[effect] = text
		}
		return copied
	}
}

// failing starts a bridge whose model fails.
func (s *system) failing(code string, retryable bool) *daemon {
	s.t.Helper()
	script := fmt.Sprintf("rules: [{fail: {code: %s, detail: so it is, retryable: %t}}]\n", code, retryable)
	return startDaemon(s.t, "bridge", "--nats", s.url, "--model", "scripted=scripted:"+writeFile(s.t, "failing.yaml", script))
}

// TestRetryWaitsForItsWake: a provider is overloaded for as long as its bridge
// may try; when the wake of the next attempt is due, one answers. The
// session-actor is killed meanwhile.
func TestRetryWaitsForItsWake(t *testing.T) {
	t.Parallel()
	s := startSystem(t, nil)
	said := overhear(t, s.nc, "s1")
	first := s.failing("overloaded", true)
	s.idle(s.names.EffectsStream(), "llm-scripted") // it serves: its time to try begins with the run
	s.run(session.DoorCtl, "s1", "hello?", object{
		"provider": "scripted", "model": "m", "retry": object{"attempts": 2, "backoff_ms": 5000}, "deadlines_ms": object{"turn": 10_000},
	})
	v := s.view("s1", "a generation that failed", func(v session.View) bool { return v.WaitsFor == "retry" })
	if v.Run.RetryAt == 0 || v.Run.Attempt != 1 || v.Lifecycle != session.Running {
		t.Errorf("the run is %s, and waits for %d after attempt %d", v.Lifecycle, v.Run.RetryAt, v.Run.Attempt)
	}
	if got := s.attempts("s1"); got != "r1t1" {
		t.Errorf("asked: %s, before the second attempt is due", got)
	}
	if err := first.drain(30 * time.Second); err != nil {
		t.Fatal(err)
	}
	s.actor.kill()
	s.actor.start()
	s.models("rules: [{shown: {last: user}, say: 'Hello, hello.'}]\n", "scripted")
	s.wantEnd("s1", 1, session.Completed, "")
	if got := s.attempts("s1"); got != "r1t1 r1t1a2" {
		t.Errorf("asked: %s, want two attempts", got)
	}
	all := s.generations("s1")
	if len(all) == 2 && (all[1].At < v.Run.RetryAt || !slices.Equal(shownItems(t, all[0]), shownItems(t, all[1])) || all[0].Toolset != all[1].Toolset) {
		t.Errorf("attempt 2 is %+v, want attempt 1 again, at %d or later: %+v", all[1], v.Run.RetryAt, all[0])
	}
	if len(logOf(t, s.nc, session.DoorWake, "s1")) == 0 {
		t.Error("no wake was settled")
	}
	until(t, time.Minute, "the answer's deltas", func() bool { return said()["r1t1a2"] == "Hello, hello." })
	if got := said(); len(got) != 1 {
		t.Errorf("deltas: %q, want those of the second attempt alone", got)
	}
	verifyAll(t, s.url)
}

// TestPermanentFailureIsNotRetried: a conversation that is too long stays so.
// It has its own code, and is tried again only if the config names that.
func TestPermanentFailureIsNotRetried(t *testing.T) {
	t.Parallel()
	const tooLong = "context_length_exceeded"
	s := startSystem(t, nil)
	s.failing(tooLong, false)
	heard := listen(t, s.nc, "refold.out.s1")
	retry := func(more object) object {
		retry := object{"attempts": 2, "backoff_ms": 100}
		for key, value := range more {
			retry[key] = value
		}
		return object{"provider": "scripted", "model": "m", "retry": retry}
	}
	s.run(session.DoorCtl, "s1", "hello?", retry(nil))
	if got := waitFinished(t, heard, 1); got.Lifecycle != "failed" || got.Code != tooLong {
		t.Errorf("the run ended %+v, want failed %s", got, tooLong)
	}
	s.run(session.DoorCtl, "s1", "hello?", retry(object{"codes": list{tooLong}}))
	s.wantEnd("s1", 2, session.Failed, tooLong)
	if got := s.attempts("s1"); got != "r1t1 r2t1 r2t1a2" {
		t.Errorf("asked: %s, want the first once, and the second twice", got)
	}
	verifyAll(t, s.url)
}

// TestSpentBudgetWaitsForRaise: a run whose budget is spent waits until an
// operator raises it.
func TestSpentBudgetWaitsForRaise(t *testing.T) {
	t.Parallel()
	s := startSystem(t, object{
		"v": 1, "rules": 1, "tools": list{tool("look", nil)},
		"config": object{
			"provider": "scripted", "model": "m", "budget": object{"tokens": 1500}, "prices": object{"input": 1_000_000, "output": 2_000_000},
		},
	})
	s.models(`
turns:
  - {calls: [{tool: look}], usage: {input_tokens: 900, output_tokens: 100}}
  - {calls: [{tool: look}], usage: {input_tokens: 900, output_tokens: 100}}
  - {say: Seen., usage: {input_tokens: 900, output_tokens: 100}}
`, "scripted")
	s.tools(&lab{})
	heard := listen(t, s.nc, "refold.out.s1")
	s.run(session.DoorIn, "s1", "go", nil)
	until(t, endWithin, "BudgetExceeded", func() bool { return heard.count(session.NoticeBudgetExceeded) > 0 })
	for _, h := range heard.all() {
		var said session.BudgetExceeded
		if h.Type != session.NoticeBudgetExceeded {
			continue
		}
		if err := json.Unmarshal(h.Data, &said); err != nil {
			t.Fatal(err)
		}
		if want := (session.BudgetExceeded{Run: 1, Budget: "tokens", Limit: 1500, Used: 2000, Estimate: said.Estimate}); said != want || said.Estimate == 0 {
			t.Errorf("said: %+v, want %+v", said, want)
		}
	}
	v := s.view("s1", "a paused run", func(v session.View) bool { return v.Lifecycle == session.Paused })
	if v.WaitsFor != "resume" || !v.Run.Spent || v.Run.Cost != 2200 {
		t.Errorf("the session waits for %s, its run has cost %d", v.WaitsFor, v.Run.Cost)
	}
	more := object{"budget": object{"tokens": 2700}}
	s.say(session.DoorIn, "s1", session.TypeRunResumeRequested, object{})
	s.say(session.DoorIn, "s1", session.TypeRunResumeRequested, more)
	s.say(session.DoorCtl, "s1", session.TypeRunResumeRequested, object{"budget": object{"tokens": 2001}})
	s.wantRejections(heard, "RunResumeRequested illegal_transition", "RunResumeRequested not_permitted", "RunResumeRequested invalid_data")
	s.folded()
	if got := s.attempts("s1"); got != "r1t1 r1t2" {
		t.Errorf("asked: %s, want two turns", got)
	}
	s.say(session.DoorCtl, "s1", session.TypeRunResumeRequested, more)
	if got := waitFinished(t, heard, 1); got.Lifecycle != "completed" || got.Output.Text != "Seen." || got.OverBudget == nil || *got.OverBudget != (session.OverBudget{Budget: "tokens", Limit: 2700, Used: 3000}) {
		t.Errorf("the run ended %+v", got)
	}
	if v := s.ended("s1", 1); v.Usage.InputTokens != 2700 || v.Cost != 3300 {
		t.Errorf("the session used %+v, which cost %d", v.Usage, v.Cost)
	}
	verifyAll(t, s.url)
}
