package e2e_test

// Outside step hooks: a program that knows nothing but NATS, one with package
// bridge, and one that never answers.

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
)

// hookMS is a deadline that no busy machine comes near.
const hookMS = 600_000

func stepRecord() object {
	return object{
		"v": 1, "rules": 1, "tools": list{tool("search", nil), tool("note", nil), tool("other", nil)},
		"policy": object{"ingress": list{"step_hook", "steps", "roles", "model", "provider"}},
	}
}

// stepScript calls search, then note, then says so, if just those are offered.
const stepScript = `
turns:
  - shown: {tools: {include: [search], exclude: [note, other]}}
    calls: [{tool: search}, {tool: note}]
  - shown:
      system: Note it.
      tools: {include: [note], exclude: [search, other]}
      results: [{error: false, text: done}, {error: true, text: tool_disabled}]
    calls: [{tool: note}]
  - shown: {tools: {exclude: [search, note, other]}}
    say: Noted.
`

// answerSteps is the program: it pulls the steps that a hook is asked, and says
// what each turn offers. It is told the fold's own words: what was used so far.
func (s *system) answerSteps(ctx context.Context, hook string, choose func(session.Step) object) <-chan error {
	s.t.Helper()
	var consumer jetstream.Consumer
	until(s.t, time.Minute, "a consumer of steps", func() bool {
		var err error
		consumer, err = s.js.CreateOrUpdateConsumer(ctx, "REFOLD_FX", jetstream.ConsumerConfig{
			Durable: "step-" + hook, FilterSubject: "refold.fx.step." + hook + ".>", AckPolicy: jetstream.AckExplicitPolicy,
		})
		return err == nil // the session-actor may not have made the stream yet
	})
	ended := make(chan error, 1)
	answer := func(msg jetstream.Msg) error {
		var asked session.Step
		if err := codec.Unmarshal(msg.Data(), &asked); err != nil {
			return err
		}
		data := choose(asked)
		data["effect"] = asked.Effect
		payload, err := json.Marshal(object{"type": session.TypeStepPrepared, "data": data})
		if err != nil {
			return err
		}
		if _, err := s.js.Publish(ctx, "refold.step."+asked.Session, payload); err != nil {
			return err
		}
		return msg.Ack()
	}
	go func() {
		for ctx.Err() == nil {
			msg, err := consumer.Next(jetstream.FetchMaxWait(time.Second))
			if err != nil {
				continue // nothing is asked
			}
			if err := answer(msg); err != nil && ctx.Err() == nil {
				ended <- fmt.Errorf("%s: %w", msg.Subject(), err)
				return
			}
		}
		ended <- nil
	}()
	return ended
}

// TestStepHookFromOutside: a plain program chooses each step of a run. The
// session-actor is killed meanwhile.
func TestStepHookFromOutside(t *testing.T) {
	t.Parallel()
	s := startSystem(t, stepRecord())
	s.models(stepScript, "scripted")
	l := &lab{}
	s.tools(l)
	ctx, cancel := context.WithCancel(t.Context())
	var seen []string
	thinks, goOn := make(chan struct{}), make(chan struct{})
	ended := s.answerSteps(ctx, "router", func(asked session.Step) object {
		seen = append(seen, fmt.Sprintf("%s step %d used %v calls %d roles %v context %s", asked.Effect, asked.Step, asked.Used, len(asked.Calls), asked.Roles, jsonOf(asked.Context)))
		switch asked.Step {
		case 0:
			return object{"status": "ok", "active_tools": list{"search"}, "context": object{"phase": 1}}
		case 1:
			close(thinks)
			<-goOn
			return object{"status": "ok", "active_tools": list{"lab.note"}, "system": "Note it.", "model": "m2"}
		}
		return object{"status": "ok", "active_tools": list{}}
	})
	s.say(session.DoorIn, "s1", session.TypeRunRequested, object{
		"input": object{"text": "go"}, "roles": list{"clerk"},
		"config": object{"provider": "scripted", "model": "m1", "step_hook": object{"hook": "router", "deadline_ms": hookMS}},
	})
	select {
	case <-thinks:
	case <-time.After(endWithin):
		t.Fatal("the hook is not asked what the second step offers")
	}
	s.actor.kill()
	close(goOn)
	s.actor.start()
	s.wantEnd("s1", 1, session.Completed, "")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	s.wantOffered("s1", "search", "note", "")
	s.wantCalls("s1", "search", "note")
	var models []string
	for _, g := range s.generations("s1") {
		models = append(models, g.Model)
	}
	if got := strings.Join(models, " "); got != "m1 m2 m1" {
		t.Errorf("models of the turns: %s", got)
	}
	want := []string{
		"r1t1s step 0 used [] calls 0 roles [clerk] context ",
		"r1t2s step 1 used [lab.search] calls 2 roles [clerk] context {\"phase\":1}",
		"r1t3s step 2 used [lab.note lab.search] calls 3 roles [clerk] context {\"phase\":1}",
	}
	if got := strings.Join(seen, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("the hook was shown\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	verifyAll(t, s.url)
}

// jsonOf returns a canonical value as JSON, nothing for none.
func jsonOf(raw codec.Raw) string {
	text, _ := codec.ToJSON(raw)
	return string(text)
}

// TestStepHookThatFailsOrLies: a choice that is not allowed counts as no
// answer, and the rules apply; with fallback fail the run ends.
func TestStepHookThatFailsOrLies(t *testing.T) {
	t.Parallel()
	s := startSystem(t, stepRecord())
	s.models("rules:\n  - shown: {tools: {include: [note], exclude: [search, other]}}\n    say: Done.\n", "scripted")
	rules := list{object{"active_tools": list{"note"}}}
	answers := map[string]object{
		"failed":  {"status": "failed", "error": object{"code": "tired", "detail": "later"}},
		"unknown": {"status": "ok", "active_tools": list{"rm"}},
		"widens":  {"status": "ok", "force": list{"other"}},
		"wrong":   {"status": "fine"},
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := s.answerSteps(ctx, "liar", func(asked session.Step) object {
		answer := object{}
		for key, value := range answers[strings.TrimSuffix(asked.Session, "-fail")] {
			answer[key] = value
		}
		return answer
	})
	for name := range answers {
		code := "bad_settlement"
		if name == "failed" {
			code = "tired"
		}
		config := func(fallback string) object {
			return object{"provider": "scripted", "model": "m", "steps": rules, "step_hook": object{"hook": "liar", "deadline_ms": hookMS, "fallback": fallback}}
		}
		s.run(session.DoorIn, name, "go", config("rules"))
		s.run(session.DoorIn, name+"-fail", "go", config("fail"))
		v := s.ended(name, 1)
		if v.Last.Lifecycle != session.Completed || v.Turn.Step == nil || v.Turn.Step.Code != code || v.Turn.Step.From != session.StepFromRun {
			t.Errorf("%s: the run ended %+v, its turn %+v", name, v.Last, v.Turn.Step)
		}
		s.wantOffered(name, "note")
		s.wantEnd(name+"-fail", 1, session.Failed, code)
		s.wantOffered(name + "-fail")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	verifyAll(t, s.url)
}

// TestStepHookThatNeverAnswers: its deadline decides, by its wake, or by an
// event as in docs/operations.md.
func TestStepHookThatNeverAnswers(t *testing.T) {
	t.Parallel()
	s := startSystem(t, stepRecord())
	s.models("rules:\n  - shown: {tools: {include: [note], exclude: [search, other]}}\n    say: Done.\n", "scripted")
	for sid, c := range map[string]struct {
		fallback   string
		deadlineMS int
		lifecycle  session.Lifecycle
		code       string
		offered    []string
	}{
		"rules":       {"rules", 1000, session.Completed, "", []string{"note"}},
		"fail":        {"fail", 1000, session.Failed, "deadline_exceeded", nil},
		"rules-early": {"rules", hookMS, session.Completed, "", []string{"note"}},
		"fail-early":  {"fail", hookMS, session.Failed, "deadline_exceeded", nil},
	} {
		s.run(session.DoorIn, sid, "go", object{
			"provider": "scripted", "model": "m", "steps": list{object{"active_tools": list{"note"}}},
			"step_hook": object{"hook": "nobody", "deadline_ms": c.deadlineMS, "fallback": c.fallback},
		})
		if c.deadlineMS == hookMS {
			v := s.view(sid, "a step that is asked", func(v session.View) bool { return v.WaitsFor == "step" && len(v.Open) == 2 })
			for _, e := range v.Open {
				if e.Class == session.ClassWake { // it is due with the hook, so one is enough
					s.say(session.DoorWake, sid, session.TypeWakeSettled, object{"effect": e.Effect})
				}
			}
		}
		s.wantEnd(sid, 1, c.lifecycle, c.code)
		s.wantOffered(sid, c.offered...)
		// The answer comes at last, and changes nothing.
		heard := listen(t, s.nc, "refold.out."+sid)
		s.say(session.DoorStep, sid, session.TypeStepPrepared, object{"effect": "r1t1s", "status": "ok", "active_tools": list{"other"}})
		s.wantRejections(heard, "StepPrepared effect_settled")
		s.wantOffered(sid, c.offered...)
	}
	verifyAll(t, s.url)
}

// TestStepHookOfPackageBridge: the same as a plain program, with bridge.Step.
func TestStepHookOfPackageBridge(t *testing.T) {
	t.Parallel()
	s := startSystem(t, stepRecord())
	s.models(stepScript, "scripted")
	l := &lab{}
	s.tools(l)
	s.serve(func(b *bridge.Bridge) error {
		return b.Step("router", executor.PrepareStep(func(_ context.Context, asked executor.StepRequest) (executor.StepChoice, error) {
			switch {
			case asked.HasUsedTool("note"):
				return executor.StepChoice{ActiveTools: []string{}}, nil
			case asked.HasUsedTool("lab.search"):
				return executor.StepChoice{ActiveTools: []string{"note"}, System: "Note it."}, nil
			}
			return executor.StepChoice{ActiveTools: []string{"search"}}, nil
		}))
	})
	s.run(session.DoorIn, "s1", "go", object{"provider": "scripted", "model": "m", "step_hook": object{"hook": "router", "deadline_ms": hookMS}})
	s.wantEnd("s1", 1, session.Completed, "")
	s.wantOffered("s1", "search", "note", "")
	if got := l.ran(); got != "search note" {
		t.Errorf("ran: %s", got)
	}
	verifyAll(t, s.url)
}
