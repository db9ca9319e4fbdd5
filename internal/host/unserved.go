package host

import (
	"slices"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
)

// unserved returns the targets of what is open that no bridge serves, each
// once, in order; none if that is not sure. Wakes are left out: without a
// bridge that keeps time, session-actors settle them.
func unserved(open []session.ViewEffect, serving func() (served bus.Served, sure bool)) (targets []string) {
	for _, e := range open {
		if e.Class != session.ClassWake {
			targets = append(targets, string(e.Class)+"/"+e.Target)
		}
	}
	if len(targets) == 0 {
		return nil
	}
	served, sure := serving()
	if !sure {
		return nil
	}
	slices.Sort(targets)
	return slices.DeleteFunc(slices.Compact(targets), func(target string) bool { return served[target] > 0 })
}
