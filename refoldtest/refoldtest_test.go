package refoldtest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/refold/refold"
	"github.com/refold/refold/refoldtest"
)

type place struct {
	City string `json:"city"`
}

var weather = refold.Func("weather.get", func(_ context.Context, in place) (string, error) {
	return "rain in " + in.City, nil
}, refold.Description("The weather in a city."), refold.RetrySafe())

// The test of an agent in ten lines.
func TestAgentInTenLines(t *testing.T) {
	t.Parallel()
	helper, err := refoldtest.Open(t).Agent("helper", refold.Tools(weather), refold.Model(refoldtest.Model(
		refoldtest.Calls(refoldtest.To("weather_get", `{"city":"Bergen"}`)),
		refoldtest.Say("It rains."),
	)))
	if err != nil {
		t.Fatal(err)
	}
	if got := refoldtest.Ask(t, helper, "Weather in Bergen?"); got.Text != "It rains." || got.Calls[0].Status != "succeeded" || got.Turns != 2 {
		t.Errorf("got %+v", got)
	}
}

func TestRecordedAnswers(t *testing.T) {
	t.Parallel()
	recording := strings.NewReader(`{"id":"hello","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"}]}` + "\n")
	helper, err := refoldtest.Open(t).Agent("helper", refold.Model(refoldtest.Recorded("hello.jsonl", recording)))
	if err != nil {
		t.Fatal(err)
	}
	run, err := helper.Session("hello").Ask(t.Context(), "hi")
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := run.Wait(t.Context()); err != nil || answer.Text != "hello" {
		t.Errorf("got %+v (%v), want hello", answer, err)
	}
}
