package e2e_test

// A step hook that is a program which knows nothing but NATS.

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
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
