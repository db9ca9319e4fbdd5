package session_test

// Masked mode in random histories.

import (
	"slices"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// defines: what a masked generation defines has what may be called, each tool
// once, and begins with what the run's turn before defined. In exact mode it
// defines what may be called.
func (l *laws) defines(name string, g, before *session.Generation) {
	c := &l.state.Run.Config
	if g.CacheTTL != c.CacheTTL {
		l.t.Fatalf("%s: cache_ttl %q, want %q", name, g.CacheTTL, c.CacheTTL)
	}
	if c.ToolsMode != session.ToolsMasked && g.Defined != nil {
		l.t.Fatalf("%s: defines %d tools beside those offered in the mode %q", name, len(g.Defined), c.ToolsMode)
	}
	registry := l.turnRegistry.Hash()
	same := before != nil && c.ToolsMode == session.ToolsMasked && l.latestOf == registry && runOf(before.Effect) == runOf(name)
	l.latestOf = registry
	now := defined(g)
	for _, hash := range g.Tools {
		if !slices.Contains(now, hash) {
			l.t.Fatalf("%s: %s may be called and is not defined", name, hash)
		}
	}
	seen := map[int]bool{}
	for i, hash := range now {
		tool, ok := l.turnRegistry.LookupRef(codec.Ref{Hash: hash})
		if !ok || seen[int(tool)] {
			l.t.Fatalf("%s: definition %d is no tool's, or there twice", name, i)
		}
		seen[int(tool)] = true
	}
	if !same {
		return
	}
	was := defined(before)
	for i, hash := range was {
		tool, _ := l.turnRegistry.LookupRef(codec.Ref{Hash: hash})
		if i >= len(now) {
			l.t.Fatalf("%s: defines %d tools, the turn before %d", name, len(now), len(was))
		}
		if other, _ := l.turnRegistry.LookupRef(codec.Ref{Hash: now[i]}); other != tool || now[i] != hash && !slices.Contains(g.Tools, now[i]) {
			l.t.Fatalf("%s: definition %d is %s, and was %s", name, i, now[i], hash)
		}
	}
}

// defined returns what a generation defines.
func defined(g *session.Generation) []codec.Hash {
	if g.Defined != nil {
		return g.Defined
	}
	return g.Tools
}

// runOf returns r1 of r1t2.
func runOf(effect string) string {
	run, _, _ := strings.Cut(effect, "t")
	return run
}
