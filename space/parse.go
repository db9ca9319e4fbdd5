package space

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// Parse reads a manifest from its canonical bytes. It returns nil and all
// problems, sorted; if the bytes do not decode, only the first. The manifest
// shares no memory with data.
func Parse(data []byte) (*Manifest, []Problem) {
	if len(data) > ManifestBytesMax {
		return nil, []Problem{{Code: TooLarge, Detail: fmt.Sprintf("the manifest has %d bytes, at most %d: split the space", len(data), ManifestBytesMax)}}
	}
	m := new(Manifest)
	if err := codec.UnmarshalLimit(data, m, ManifestBytesMax); err != nil {
		return nil, []Problem{undecoded(err)}
	}
	c := checker{m: m, used: make([]bool, len(m.Files))}
	c.check()
	if len(c.problems) > 0 {
		return nil, SortProblems(c.problems)
	}
	m.weight = weightOf(reflect.ValueOf(m)) + m.compiled.Weight()
	return m, nil
}

// undecoded turns the codec's error into a problem.
func undecoded(err error) Problem {
	p := Problem{Code: WrongType, Detail: clip(err.Error(), DetailBytesMax)}
	var fault *codec.Error
	if !errors.As(err, &fault) {
		return p
	}
	p.Path = clip(fault.Path, ProblemPathBytesMax)
	switch {
	case errors.Is(err, codec.ErrUnknownField):
		p.Code = UnknownField
	case errors.Is(err, codec.ErrMissingField):
		p.Code = MissingField
	case errors.Is(err, codec.ErrUTF8):
		p.Code = NotUTF8
	case errors.Is(err, codec.ErrDuplicateKey):
		p.Code = Duplicate
	}
	return p
}

// checker collects the problems of a manifest.
type checker struct {
	m        *Manifest
	used     []bool // by file: some field names it
	problems []Problem
}

func (c *checker) add(code ProblemCode, path, format string, args ...any) {
	c.problems = append(c.problems, Problem{Code: code, Path: clip(path, ProblemPathBytesMax), Detail: clip(fmt.Sprintf(format, args...), DetailBytesMax)})
}

func (c *checker) check() {
	c.checkHead()
	c.checkFiles()
	c.checkContext()
	c.checkSkills()
	c.checkLeftOut()
	for i := range c.m.Prompts {
		c.checkPrompt(at("prompts", i), &c.m.Prompts[i])
	}
	c.checkOrder("prompts", "prompt_pack", len(c.m.Prompts), PromptsMax, func(i int) string { return c.m.Prompts[i].PromptPack })
	c.checkWords()
	c.checkDefaults()
	c.checkTools()
	for i, used := range c.used {
		if !used {
			c.add(WrongType, at("files", i), "nothing names this file: leave it out")
		}
	}
}

// checkHead checks the name, version and descriptions of the space.
func (c *checker) checkHead() {
	m := c.m
	if m.V != 1 {
		c.add(WrongType, "v", "is 1, not %d", m.V)
	}
	if m.Kind != Workspace && m.Kind != Pack {
		c.add(WrongType, "kind", "is workspace or pack, not %s", quoted(string(m.Kind)))
	}
	if !IsSpaceName(m.Space, m.Kind) {
		c.add(BadName, "space", "%s", badSpaceName(m.Space, m.Kind))
	}
	if _, ok := ParseVersion(m.Version); !ok && m.Version != "" {
		c.add(BadName, "version", "is MAJOR.MINOR.PATCH, with or without - and a pre-release, not %s", quoted(m.Version))
	}
	c.empties("", m.Catalogs != nil && len(m.Catalogs) == 0, m.Context != nil && len(m.Context) == 0, m.Files != nil && len(m.Files) == 0,
		m.LeftOut != nil && len(m.LeftOut) == 0, m.Needs != nil && len(m.Needs) == 0, m.Prompts != nil && len(m.Prompts) == 0, m.Skills != nil && len(m.Skills) == 0,
		m.Tools != nil && len(m.Tools) == 0, m.Words != nil && len(m.Words) == 0)
	if m.Kind == Pack && m.Version == "" {
		c.add(MissingField, "version", "a pack has one: 1.0.0")
	}
	for _, text := range []struct {
		path, text string
		max        int
	}{
		{"description", m.Description, DescriptionBytesMax}, {"display_name", m.DisplayName, DisplayNameBytesMax}, {"category", m.Category, CategoryBytesMax},
	} {
		if !isText(text.text, text.max) {
			c.add(TooLarge, text.path, "has %d bytes, at most %d", len(text.text), text.max)
		}
	}
}

// badSpaceName says which names a space may have.
func badSpaceName(name string, kind Kind) string {
	max := TokenBytesMax
	if kind == Pack {
		max = PackNameBytesMax
	}
	return fmt.Sprintf("is 1 to %d of A-Za-z0-9_-, and none of refold, host and none; not %s", max, quoted(name))
}

// checkLeftOut checks the list of faulty skills.
func (c *checker) checkLeftOut() {
	for i, l := range c.m.LeftOut {
		if !l.Code.Known() || !IsPath(l.File) {
			c.add(WrongType, at("left_out", i), "is a code of problems and the path of a file")
		}
	}
	c.checkOrder("left_out", "file", len(c.m.LeftOut), LeftOutMax, func(i int) string { return c.m.LeftOut[i].File })
}

// checkFiles checks the list of files. Fields that name them check their kind.
func (c *checker) checkFiles() {
	total := int64(0)
	for i := range c.m.Files {
		f, path := &c.m.Files[i], at("files", i)
		if !IsPath(f.Path) {
			c.add(PathEscapes, path+".path", "is a path below the root, of names joined by single slashes, not %s", quoted(f.Path))
		}
		if f.Size < 0 || f.Size > FileBytesMax {
			c.add(TooLarge, path+".size", "%s has %d bytes, at most %d", quoted(f.Path), f.Size, FileBytesMax)
			continue
		}
		total += f.Size
		if f.MediaType == "" || !isText(f.MediaType, MediaTypeBytesMax) {
			c.add(WrongType, path+".media_type", "is 1 to %d bytes, not %s", MediaTypeBytesMax, quoted(f.MediaType))
		}
	}
	if total > SpaceBytesMax {
		c.add(TooLarge, "files", "the files have %d bytes, at most %d: split the space", total, SpaceBytesMax)
	}
	c.checkOrder("files", "path", len(c.m.Files), FilesMax, func(i int) string { return c.m.Files[i].Path })
}

// checkOrder checks that a list is not too long, and that its names are unique
// and in byte order. key is empty for a list of texts.
func (c *checker) checkOrder(list, key string, n, max int, name func(int) string) {
	if n > max {
		c.add(TooMany, list, "%d, at most %d", n, max)
	}
	for i := 1; i < n; i++ {
		path := at(list, i)
		if key != "" {
			path += "." + key
		}
		switch before, this := name(i-1), name(i); {
		case before == this:
			c.add(Duplicate, path, "%s stands twice", quoted(this))
		case before > this:
			c.add(WrongType, path, "%s stands after %s: the list is in byte order", quoted(this), quoted(before))
		}
	}
}

// file returns the file with that index and marks it as used.
func (c *checker) file(path string, index int) *File {
	if index < 0 || index >= len(c.m.Files) {
		c.add(MissingFile, path, "there is no file %d", index)
		return nil
	}
	c.used[index] = true
	return &c.m.Files[index]
}

// checkIndices checks a list of files, which must be ascending.
func (c *checker) checkIndices(path string, files []int, max int) {
	if len(files) > max {
		c.add(TooMany, path, "%d files, at most %d", len(files), max)
	}
	for i, index := range files {
		c.file(at(path, i), index)
		if i > 0 && files[i-1] >= index {
			c.add(WrongType, at(path, i), "stands after %d: the list is ascending", files[i-1])
		}
	}
}

func (c *checker) checkContext() {
	for i := range c.m.Context {
		g, path := &c.m.Context[i], at("context", i)
		if !IsID(g.Group) {
			c.add(BadName, path+".group", "%s", badID(g.Group))
		}
		c.checkIndices(path+".files", g.Files, FilesMax)
	}
	c.checkOrder("context", "group", len(c.m.Context), GroupsMax, func(i int) string { return c.m.Context[i].Group })
}

// badID says which names a prompt pack, a catalog or a group may have.
func badID(id string) string {
	return "is 1 to " + strconv.Itoa(TokenBytesMax) + " of A-Za-z0-9_-, and not none; not " + quoted(id)
}

func (c *checker) checkNeeds(path string, needs []string) {
	for i, need := range needs {
		if !IsNeed(need) {
			c.add(BadName, at(path, i), "%s", badNeed(need))
		}
	}
	c.checkOrder(path, "", len(needs), NeedsMax, func(i int) string { return needs[i] })
}

// badNeed says what a need looks like.
func badNeed(need string) string {
	return "is secret:NAME, env:NAME, bin:a|b or os:linux|darwin, and a ? at its end if it is optional; not " + quoted(need)
}

// checkTools checks and compiles a pack's tools. Collisions with other tools
// are found only when the tools are composed.
func (c *checker) checkTools() {
	m := c.m
	switch {
	case m.Kind == Pack && (len(m.Catalogs) > 0 || len(m.Words) > 0 || m.Defaults != nil):
		c.add(NotGranted, "", "catalogs, words and defaults are for workspaces: a pack has none")
	case m.Kind == Workspace && len(m.Tools) > 0:
		c.add(BindingInWorkspace, "tools", "a workspace brings no tools: bind them in the install record or in a pack")
	case m.Kind == Workspace && len(m.Needs) > 0:
		c.add(NotGranted, "needs", "a workspace has no needs")
	}
	if m.Kind != Pack {
		return
	}
	for i := range m.Tools {
		if id := m.Tools[i].ToolID; len(id) <= len(m.Space) || id[:len(m.Space)] != m.Space || id[len(m.Space)] != '.' {
			c.add(NotGranted, at("tools", i)+".tool_id", "%s: the tool_ids of a pack are %s.…", quoted(id), m.Space)
		}
	}
	c.checkOrder("tools", "tool_id", len(m.Tools), ToolsMax, func(i int) string { return m.Tools[i].ToolID })
	c.checkNeeds("needs", m.Needs)
	for i := range m.Tools {
		c.checkNeeds(at("tools", i)+".needs", m.Tools[i].Needs)
	}
	if len(m.Tools) == 0 || len(m.Tools) > ToolsMax {
		return
	}
	compiled, bad := planner.PackTools(m.Tools)
	if bad != nil {
		c.checkEachTool(bad)
	}
	m.compiled = compiled
}

// checkEachTool adds the problems of all tools, which do not compile together.
func (c *checker) checkEachTool(together *planner.ComposeError) {
	before := len(c.problems)
	for i := range c.m.Tools {
		if bad := ToolProblem(&c.m.Tools[i]); bad != nil {
			c.add(bad.Code, at("tools", i)+bad.Path, "%s", bad.Detail)
		}
	}
	if len(c.problems) == before {
		c.add(ProblemCode(together.Code), together.Path, "%s", together.Detail)
	}
}

// ToolProblem returns what is wrong with a tool of a pack by itself, nil if nothing
// is. Its path is within the tool.
func ToolProblem(spec *planner.ToolSpec) *Problem {
	_, bad := planner.PackTools([]planner.ToolSpec{*spec})
	if bad == nil {
		return nil
	}
	return &Problem{Code: ProblemCode(bad.Code), Path: strings.TrimPrefix(bad.Path, "tools[0]"), Detail: bad.Detail}
}

func (c *checker) checkDefaults() {
	d := c.m.Defaults
	if d == nil {
		return
	}
	if d.PromptPack != "" && c.m.Prompt(d.PromptPack) == nil {
		c.add(MissingField, "defaults.prompt_pack", "there is no prompt pack %s", quoted(d.PromptPack))
	}
	if d.ToolCatalog != "" && c.m.Catalog(d.ToolCatalog) == nil {
		c.add(MissingField, "defaults.tool_catalog", "there is no catalog %s", quoted(d.ToolCatalog))
	}
	if *d == (Defaults{}) {
		c.add(WrongType, "defaults", "is empty: leave it out")
	}
}

func (c *checker) checkSkills() {
	for i := range c.m.Skills {
		c.checkSkill(at("skills", i), &c.m.Skills[i])
	}
	c.checkOrder("skills", "skill", len(c.m.Skills), SkillsMax, func(i int) string { return c.m.Skills[i].Skill })
}

// empties reports fields that are present and empty: leaving them out means the
// same, and equal content must have one encoding.
func (c *checker) empties(path string, present ...bool) {
	if slices.Contains(present, true) {
		c.add(WrongType, path, "has a list without entries: leave it out")
	}
}
