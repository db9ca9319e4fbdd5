package refold_test

import (
	"context"
	"strings"
	"testing"

	"github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/client"
	"github.com/refold/refold/refoldtest"
)

// failing is a model that fails, and counts how often it is asked.
type failing struct {
	asked int
	code  string
}

func (m *failing) Generate(context.Context, executor.Request, func(string)) (executor.Answer, error) {
	m.asked++
	return executor.Answer{Usage: executor.Usage{InputTokens: 10}}, &executor.Error{Code: m.code, Detail: "down", Retryable: true}
}

func (m *failing) ref(provider string) refold.ModelRef {
	return refold.ModelRef{Provider: provider, Model: provider, Open: func() (executor.Model, error) { return m, nil }}
}

// TestFallback: the first provider is down, the second answers, and the third is never
// asked. The choice is in the log: it replays, and it is priced.
func TestFallback(t *testing.T) {
	t.Parallel()
	down, spare := &failing{code: "overloaded"}, &failing{code: "overloaded"}
	second := refoldtest.Model(refoldtest.Calls(refoldtest.To("weather_get", `{"name":"Bergen"}`)), refoldtest.Say("It rains.")).As("second")
	ctx, rt, a := agent(t,
		refold.Model(down.ref("first")), refold.Fallback(second, spare.ref("third")),
		refold.Config(refold.RunConfig{
			Fallback: []session.FallbackModel{{Provider: second.Provider, Model: second.Model, AfterMS: 2000}},
			Budget:   &refold.Budget{Cost: 1_000_000_000},
			Prices:   &session.Prices{Input: 1_000_000, Models: []session.ModelPrice{{Model: second.Model, Input: 2_000_000, Output: 2_000_000}, {Model: "third"}}},
		}),
		refold.Tools(refold.Func("weather.get", weather)))
	run, err := a.Session("s").Ask(ctx, "Weather in Bergen?")
	ok(t, err)
	answer, err := run.Wait(ctx)
	ok(t, err)
	if answer.Text != "It rains." || answer.Turns != 2 || down.asked == 0 || spare.asked != 0 {
		t.Errorf("got %+v; the first was asked %d times, the third %d times", answer, down.asked, spare.asked)
	}
	if answer.Cost < 2*answer.Usage.InputTokens-10 {
		t.Errorf("it cost %d for %+v: want the second model's price", answer.Cost, answer.Usage)
	}
	c, err := client.Connect(ctx, client.Options{Context: rt.ContextFile()})
	ok(t, err)
	defer c.Close()
	changed := 0
	_, err = c.Replay(ctx, "s", 0, func(_ session.Event, notices []session.Notice, _ *session.State) {
		for _, n := range notices {
			if d, is := n.Data.(session.ModelChanged); is {
				changed++
				if d.FromModel != "first" || d.Provider != "second" || d.Code != "overloaded" {
					t.Errorf("replayed %+v", d)
				}
			}
		}
	})
	if err != nil || changed != 1 {
		t.Errorf("replayed %d changes of the model (%v), want one for the run", changed, err)
	}
}

// TestFallbackNeedsItsOwnProvider: two models that call one provider differently need two
// names of it.
func TestFallbackNeedsItsOwnProvider(t *testing.T) {
	t.Parallel()
	rt := refoldtest.Open(t)
	_, err := rt.Agent("helper", refold.Model(refoldtest.Model(refoldtest.Say("a"))), refold.Fallback(refoldtest.Model(refoldtest.Say("b"))))
	if err == nil || !strings.Contains(err.Error(), "with As") {
		t.Errorf("got %v, want what to do", err)
	}
	_, err = rt.Agent("helper", refold.Model(refoldtest.Model(refoldtest.Say("a"))), refold.Fallback(refold.ModelRef{Provider: "no.token", Model: "m"}))
	if err == nil || !strings.Contains(err.Error(), "no.token") {
		t.Errorf("got %v, want the name", err)
	}
}
