package session

import (
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// The tool with which a model reads a result again that left its view. Every run with a
// context has it, and no other: without a context nothing leaves the view.
const (
	// ToolReadResult is its tool_id.
	ToolReadResult = resultToolsLayer + ".read"

	// resultToolsLayer is the name of its layer, and the prefix of its tool_id. It is no
	// name of a space, so that calls get no manifests.
	resultToolsLayer = spaces.OwnLayer + ".result"
)

// ReadResultRef names the descriptor of the tool that reads results: a generation that
// defines it offers that tool, and no other of the same name.
func ReadResultRef() codec.Hash { return resultLayer.Tools.Ref(0).Hash }

// withResults returns a composed stack with the tool that reads results, or without it
// if it does not fit: then the model calls the tools that gave the results.
func (s *State) withResults(st *spaces.Stack) spaces.Stack {
	x, of := s.spaces(), st.Registry.Hash()
	var registry *planner.Registry // composed before
	switch offered := s.install.offered; {
	case offered != s.install.Composed() && of == s.install.Composed().Hash():
		registry = offered
	case s.Spaces == nil && s.Turn != nil && s.Turn.Results && of == s.turnBase():
		registry = s.turnRegistry
	}
	return x.WithResults(st, registry)
}

// turnBase returns the hash of the session's registry when the latest turn began.
func (s *State) turnBase() codec.Hash {
	if s.Turn.Registry != nil {
		return s.Turn.Registry.Hash
	}
	return s.install.Registry.Hash()
}

// registryFor returns the registry of a run's offers, given the applied stack. A
// workspace of its own adds no tools.
func (s *State) registryFor(st *spaces.Stack, run *Run) *planner.Registry {
	if run.Config.Context == nil {
		return st.Registry
	}
	out := s.withResults(st)
	return out.Registry
}

// heldContext returns the context of a run whose request brings no config.
func (s *State) heldContext() *ContextConfig {
	switch {
	case s.Config != nil:
		return s.Config.Run.Context
	case s.install.Record.Config != nil:
		return s.install.Record.Config.Context
	}
	return nil
}
