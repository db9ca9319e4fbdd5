package planner_test

import (
	"testing"

	"github.com/refold/refold/planner"
)

// TestStepsOfProfiles: a profile's step rules are part of the registry's bytes,
// and come back from them.
func TestStepsOfProfiles(t *testing.T) {
	t.Parallel()
	def := planner.Builtin()
	before := builtin(t)
	def.Profiles[0].Steps = []planner.StepRule{{When: `step == 0`, ToolChoice: planner.ChoiceNone}}
	reg, err := def.Registry()
	if err != nil {
		t.Fatal(err)
	}
	if reg.Hash() == before.Hash() {
		t.Error("step rules leave the registry's hash as it was")
	}
	again, err := planner.ParseRegistry(reg.Bytes())
	if err != nil || again.Hash() != reg.Hash() {
		t.Fatalf("parse what Bytes wrote: %v", err)
	}
	steps := again.ProfileSteps(def.Profiles[0].Profile)
	if got := steps.Match(planner.StepFacts{}); got.Rule != 0 {
		t.Errorf("got rule %d, want 0", got.Rule)
	}
	if got := steps.Match(planner.StepFacts{Step: 1}); got.Rule != -1 {
		t.Errorf("got rule %d, want none", got.Rule)
	}
	if again.ProfileSteps(def.Profiles[1].Profile) != nil || again.ProfileSteps("stranger") != nil {
		t.Error("got step rules of a profile without any")
	}
}
