package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/transcript"
	"github.com/refold/refold/space"
)

// spaceNeed is the need of a grant, or of a space under one.
type spaceNeed struct {
	space    string
	kind     space.Kind
	target   string   // target of its reader; "": the target of the same name
	embedded bool     // the record has a manifest, so a session has it without a reader
	lacking  []string // what the applied space lacks
}

// spaceNeedsOf returns the needs of a session's grants and of its applied spaces. A
// fresh session has those of the record.
func spaceNeedsOf(ctx context.Context, b *bus.Bus, install *session.Install, state *session.State) ([]spaceNeed, error) {
	var all []spaceNeed
	at := func(name string) *spaceNeed {
		i := slices.IndexFunc(all, func(n spaceNeed) bool { return n.space == name })
		if i < 0 {
			all = append(all, spaceNeed{space: name})
			i = len(all) - 1
		}
		return &all[i]
	}
	add := func(g *spaces.Grant) {
		if strings.HasSuffix(g.Space, "*") && g.Target == "" {
			return // its readers have the names of the requested spaces
		}
		n := at(g.Space)
		n.kind = cmp.Or(g.Kind, space.Workspace)
		n.target, n.embedded = cmp.Or(g.Target, g.Space), len(g.Manifest) > 0
	}
	for i := range install.Record.Spaces {
		add(&install.Record.Spaces[i])
	}
	if state.Spaces == nil {
		return all, nil
	}
	for i := range state.Spaces.Grants {
		add(&state.Spaces.Grants[i].Grant)
	}
	for i := range state.Spaces.Applied {
		pin := &state.Spaces.Applied[i]
		missing, err := absentFiles(ctx, b, state.Manifest(pin.Hash))
		if err != nil {
			return nil, err
		}
		n := at(pin.Space)
		n.kind = pin.Kind
		if missing > 0 {
			n.lacking = append(n.lacking, fmt.Sprintf("%s not stored: refold install --space %s=DIR, or sync it", transcript.Count(missing, "file"), pin.Space))
		}
		if pin.Kind == space.Pack {
			continue // catalogs are the workspace's
		}
		for _, p := range state.Uncovered() {
			n.lacking = append(n.lacking, p.Detail+": add the tool to the install record, or take it out of the catalog")
		}
	}
	return all, nil
}

// absentFiles counts the files of a manifest that are not stored.
func absentFiles(ctx context.Context, b *bus.Bus, m *space.Manifest) (missing int, err error) {
	for i := range m.Files {
		there, err := b.HasBlob(ctx, m.Files[i].Ref)
		if err != nil {
			return 0, err
		}
		if !there {
			missing++
		}
	}
	return missing, nil
}

// spaceNeeds returns the needs of grants and applied spaces.
func (c *coverage) spaceNeeds() []need {
	var all []need
	for i := range c.spaces {
		s := &c.spaces[i]
		n := need{what: string(s.kind) + " " + s.space}
		if s.target != "" {
			c.serve(&n, session.ClassSpace, s.target)
		}
		if s.embedded && n.by == "" {
			n.by, n.lacking = "no bridge: sessions start with the record's manifest, and can't sync it", nil
		}
		n.lacking = append(n.lacking, s.lacking...)
		all = append(all, n)
	}
	return all
}
