package bridge

import (
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/internal/worker"
)

// Options of targets.

func TestInvalidServeOptionsAreRefused(t *testing.T) {
	t.Parallel()
	for name, option := range map[string]ServeOption{
		"no requests": Limit("m", Rate{N: 0, Per: time.Second}), "no time": Limit("", Rate{N: 1}), "two days": Limit("", Rate{N: 1, Per: 48 * time.Hour}),
		"no faults": Breaker(0, time.Minute), "no pause": Breaker(1, 0), "none ahead": Fair(0), "too many ahead": Fair(worker.LookAheadMax + 1),
	} {
		var s serving
		if option.apply(&s); len(s.wrong) != 1 {
			t.Errorf("%s: got %v, want one error", name, s.wrong)
		}
	}
	b := new(Bridge)
	err := b.Model("p", answerFunc(nil), Limit("", Rate{}), Breaker(0, 0))
	if err == nil || !strings.Contains(err.Error(), "rate of") || !strings.Contains(err.Error(), "breaker:") {
		t.Errorf("a model with both wrong: %v", err)
	}
	if err = b.Tool("t", toolFunc(nil), Breaker(1, time.Minute)); err == nil || !strings.Contains(err.Error(), "only models have") {
		t.Errorf("a tool with a breaker: %v", err)
	}
}

// Every model follows the pauses that its provider asks for, without a rate or a
// breaker; other targets don't.
func TestModelsArePaced(t *testing.T) {
	t.Parallel()
	b := &Bridge{}
	if err := b.Model("p", answerFunc(nil)); err != nil {
		t.Fatal(err)
	}
	if err := b.Tool("host", toolFunc(nil)); err != nil {
		t.Fatal(err)
	}
	if b.served[0].Pace == nil || b.served[1].Pace != nil {
		t.Errorf("the model has a pace: %v, the tools: %v; want true, false", b.served[0].Pace != nil, b.served[1].Pace != nil)
	}
}

// A priority has no meaning without shared slots.
func TestPriorityNeedsSlots(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		slots, priority int
		want            string
	}{
		{0, 1, "set Options.Slots"}, {4, 101, "priority 101: want -100 to 100"}, {4, -100, ""}, {0, 0, ""},
	} {
		b := &Bridge{options: Options{Slots: c.slots}}
		err := b.Tool("host", toolFunc(nil), Priority(c.priority))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%d slots, priority %d: got %v, want %q", c.slots, c.priority, err, c.want)
		}
	}
	if err := (Options{Slots: worker.SlotsMax + 1}).Validate(); err == nil {
		t.Errorf("%d slots are taken", worker.SlotsMax+1)
	}
}
