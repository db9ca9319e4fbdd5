package bridge

import (
	"maps"
	"slices"

	"github.com/refold/refold/bridge/function"
)

// Functions makes this bridge execute the calls of tools. Tools of one target
// share an option such as Concurrency. Functions must be called before Run, and
// no other tool of these targets may be served.
//
// The tools must also be in the registry of a session: see function.InstallRecord
// and function.Specs. A call of another tool that a registry has for these
// targets ends `tool_not_served`.
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
