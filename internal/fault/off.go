//go:build !faults

package fault

// On reports whether a fault is injected: never, in this build.
func On(Fault) bool { return false }
