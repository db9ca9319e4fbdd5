package bridge

// Step hooks of whole bridges against a server.

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/subjects"
)

// Several bridges serve one hook. A withdrawn step is stopped, and nothing is
// claimed.
func TestStepOfADeadBridgeGoesToAnother(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	hanging, unhang := context.WithCancel(context.Background())
	t.Cleanup(unhang)
	began := make(chan string, 4)
	serve := func(name string, prepare executor.PrepareStep) *Bridge {
		b := a.bridge(t, name)
		if err := b.Step("router", prepare); err != nil {
			t.Fatal(err)
		}
		return b
	}
	first := serve("first", func(_ context.Context, s executor.StepRequest) (executor.StepChoice, error) {
		began <- s.Effect
		<-hanging.Done()
		return executor.StepChoice{}, nil
	})
	run(t, first)
	a.ask(t, session.ClassStep, "router", "r1t1s", stepOf("r1t1s"))
	<-began
	first.Close() // it is not heard any more, and says nothing
	run(t, serve("second", func(ctx context.Context, s executor.StepRequest) (executor.StepChoice, error) {
		if s.Effect == "r1t2s" {
			began <- s.Effect
			<-ctx.Done() // until it is withdrawn
			return executor.StepChoice{}, ctx.Err()
		}
		return executor.StepChoice{Model: "m2", Context: map[string]int{"order": 7}}, nil
	}))
	if got, want := a.settled(t, 1), []string{"r1t1s ok"}; !slices.Equal(got, want) {
		t.Errorf("settled: got %q, want %q", got, want)
	}
	last, _, err := a.LastOf(t.Context(), session.DoorStep, "s1")
	if err != nil || !strings.Contains(string(last.Payload), "m2") || !strings.Contains(string(last.Payload), "second/") {
		t.Errorf("answer: got %q, %v", last.Payload, err)
	}
	a.ask(t, session.ClassStep, "router", "r1t2s", stepOf("r1t2s"))
	<-began
	if err := a.PublishCancel(t.Context(), "s1", []byte(`{"effects":["r1t2s"]}`)); err != nil {
		t.Fatal(err)
	}
	if got, want := a.settled(t, 2), []string{"r1t1s ok", "r1t2s failed cancelled"}; !slices.Equal(got, want) {
		t.Errorf("settled: got %q, want %q", got, want)
	}
	a.allAcked(t, "step-router")
	for name, want := range map[string]bool{"r1t1s": true, "r1t2s": false} { // only what started again
		by, found, err := a.Holder(t.Context(), subjects.EffectName{Class: session.ClassStep, Target: "router", Session: "s1", Effect: name})
		if found != want || err != nil {
			t.Errorf("%s: claimed by %q, %v, want a claim: %v", name, by, err, want)
		}
	}
	unhang()
}
