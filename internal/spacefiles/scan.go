package spacefiles

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/refold/refold/space"
)

func (b *builder) scan() {
	if b.o.NoScan || b.m.Kind == space.Pack {
		b.say(space.Problem{Code: space.MissingFile, File: IndexName, Detail: "there is no such file, and the folder is not to be scanned: write one with refold space index"})
		return
	}
	b.m.Space = cmp.Or(b.m.Space, b.o.Named)
	if b.m.Kind = space.Workspace; !space.IsSpaceName(b.m.Space, b.m.Kind) {
		b.say(space.Problem{Code: space.BadName, Path: "space", Detail: "names no space: use 1 to 64 of A-Za-z0-9_-, and not refold, host or none"})
	}
	b.m.Scanned = true
	index := b.scanned()
	if index == nil {
		b.say(space.Problem{Code: space.MissingFile, File: IndexName, Detail: "there is no such file, and " + nothingFound})
		return
	}
	b.warnings = append(b.warnings, space.Problem{Code: space.NoIndex, File: IndexName, Detail: "the folder was scanned: refold space index DIR > " + IndexName + " writes what was found"})
	d := document{b, IndexName}
	if b.takes(PartPrompts) && index.Prompts != nil {
		b.readPrompt(d, space.Default, &node{kind: kindText, text: agentsFile}, "prompts."+space.Default)
	}
	if b.takes(PartTools) && index.Tools != nil {
		list := &node{kind: kindList}
		for _, name := range index.Tools[space.Default] {
			list.items = append(list.items, &node{kind: kindText, text: name})
		}
		b.readCatalog(d, space.Default, list, "tools."+space.Default)
		b.arrangeWords()
	}
	if b.takes(PartSkills) {
		list := &node{kind: kindList}
		for _, glob := range index.Skills {
			list.items = append(list.items, &node{kind: kindText, text: glob})
		}
		b.readSkills(d, list)
	}
	b.readDefaults(d, nil)
}

// WriteIndex returns an index for a folder without one. With it, the space has
// the same manifest, except for scanned. It fails if there is an index already,
// or a scan finds nothing.
func WriteIndex(ctx context.Context, fsys fs.FS) ([]byte, error) {
	if _, err := fs.Stat(fsys, IndexName); err == nil {
		return nil, errors.New("there is " + IndexName + " already: edit it, or move it away")
	}
	b := newBuilder(ctx, fsys, Options{})
	index := b.scanned()
	switch {
	case len(b.problems) > 0:
		return nil, errors.New(b.problems[0].String())
	case index == nil:
		return nil, errors.New("there is " + nothingFound)
	}
	text, err := json.MarshalIndent(index, "", "  ")
	return append(text, '\n'), err
}

// nothingFound lists what a scan looks for.
const nothingFound = "nothing that a scan finds: tools/*.json, AGENTS.md, skills/*/SKILL.md, .claude/skills/*/SKILL.md"

// agentsFile is the prompt of a folder without an index.
const agentsFile = "AGENTS.md"

// found is an index made by a scan.
type found struct {
	V       int                 `json:"v"`
	Prompts map[string]string   `json:"prompts,omitempty"`
	Tools   map[string][]string `json:"tools,omitempty"`
	Skills  []string            `json:"skills,omitempty"`
}

// scanned returns the index that a scan finds, or nil.
func (b *builder) scanned() *found {
	f := found{V: 1}
	for _, name := range b.list() {
		dir, base := path.Split(name)
		switch {
		case name == agentsFile:
			f.Prompts = map[string]string{space.Default: name}
		case dir == "tools/" && path.Ext(base) == ".json":
			if f.Tools == nil {
				f.Tools = map[string][]string{}
			}
			f.Tools[space.Default] = append(f.Tools[space.Default], name)
		}
		for _, top := range []string{".claude/skills/", "skills/"} {
			linked := name+"/" == top // folders are not listed
			if glob := top + "*/" + skillFile; (linked || strings.EqualFold(base, skillFile) && isBelow(dir, top)) && !slices.Contains(f.Skills, glob) {
				f.Skills = append(f.Skills, glob)
			}
		}
	}
	if f.Prompts == nil && f.Tools == nil && f.Skills == nil {
		return nil
	}
	return &f
}

// isBelow reports whether dir is a folder directly below top.
func isBelow(dir, top string) bool {
	rest, ok := strings.CutPrefix(dir, top)
	return ok && strings.Count(rest, "/") == 1
}
