package bridge

import (
	"maps"
	"slices"

	"github.com/refold/refold/bridge/function"
)

// Functions makes this bridge carry out the calls of tools. Those of one target
// are served together: an option such as Concurrency is of the target. It must
// come before Run, and no other tool of these targets may be served.
//
// The tools must be in the registry of a session too: see function.InstallRecord
// and function.Specs. A call of a tool that is in the registry, of one of these
// targets, and not among them ends `tool_not_served`.
func (b *Bridge) Functions(tools []*function.Function, options ...ServeOption) error {
	served, err := function.SetsOf(tools)
	if err != nil {
		return err
	}
	for _, target := range slices.Sorted(maps.Keys(served)) {
		if err := b.Tool(target, served[target], options...); err != nil {
			return err
		}
	}
	return nil
}
