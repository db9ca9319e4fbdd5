package session

import (
	"slices"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// isMasked reports whether the active run shows the same definitions in all its
// turns.
func (s *State) isMasked() bool { return s.Run.Config.ToolsMode == ToolsMasked }

// keptDefinitions returns the definitions that the active run's next turn keeps:
// none in its first turn, and none under another registry.
func (s *State) keptDefinitions(next *planner.Registry) *[]planner.Offer {
	if s.turnIsRuns() && s.isMasked() && s.turnRegistry.Hash() == next.Hash() {
		return s.Turn.Defined
	}
	return nil
}

// shown returns the definitions that the latest turn shows the model if it offers
// set. In masked mode these are the previous turn's, plus those that are only in
// set.
func (s *State) shown(set *planner.Toolset) []planner.Offer {
	if !s.isMasked() {
		return set.Offers
	}
	defined := s.Turn.defined()
	if len(defined) == 0 {
		defined = planner.Define(s.turnRegistry, s.runsToolRequest(), s.offerFacts())
	}
	return set.Redefine(defined)
}

// defined returns the definitions that the turn shows; nil unless masked.
func (t *Turn) defined() []planner.Offer { return listOf(t.Defined) }

// definitions returns the descriptors that the latest turn's generation defines,
// nil if they are those of the offered tools.
func (s *State) definitions(t *Turn) []codec.Hash {
	defined := t.defined()
	if len(defined) == 0 || slices.Equal(defined, t.Toolset.Offers) {
		return nil
	}
	return s.refs(defined)
}

// masks reports whether the turn shows the model a tool that it may not call.
func (t *Turn) masks(tool planner.ToolIndex) bool {
	return t.Toolset.Verdict(tool).Reason != planner.Offered &&
		slices.ContainsFunc(t.defined(), func(o planner.Offer) bool { return o.Tool() == tool })
}
