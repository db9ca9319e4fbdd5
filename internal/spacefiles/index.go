package spacefiles

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/codec/nearest"
	"github.com/refold/refold/space"
)

// document is a file that is read into nodes; b receives its problems.
type document struct {
	b    *builder
	file string
}

// json reads a file of the space as JSON. It returns nil after a problem.
func (b *builder) json(name string, at location) (document, *node) {
	d := document{b, name}
	content, ok := b.readFile(name, indexBytesMax)
	if !ok {
		_, _, _ = b.file(name, indexBytesMax, at) // reports the problem
		return d, nil
	}
	return d, d.parse(content)
}

func (d document) parse(content []byte) *node {
	return parseJSON(content, func(p space.Problem) {
		p.File = d.file
		d.b.say(p)
	})
}

func (d document) at(n *node, path string) location { return location{d.file, n.line, path} }

func (d document) say(n *node, code space.ProblemCode, path, format string, args ...any) {
	d.b.say(d.at(n, path).problem(code, format, args...))
}

// is reports whether n is of a kind. If not, it reports a problem.
func (d document) is(n *node, path string, want kind) bool {
	if n.kind != want {
		d.say(n, space.WrongType, path, "is %s, and must be %s", n.kind, want)
	}
	return n.kind == want
}

// text returns the text of a member, or "" if it is absent.
func (d document) text(n *node, path, name string) string {
	m := n.get(name)
	if m == nil || !d.is(m, join(path, name), kindText) {
		return ""
	}
	return m.text
}

// known reports members that an object may not have.
func (d document) known(n *node, path string, names ...string) {
	for _, m := range n.members {
		if !slices.Contains(names, m.name) {
			meant := nearest.Name(m.name, names)
			if meant != "" {
				meant = fmt.Sprintf("; did you mean %q?", meant)
			}
			d.say(&node{line: m.line}, space.UnknownField, join(path, m.name), "is unknown here%s; known are %s", meant, strings.Join(names, ", "))
		}
	}
}

// raw returns a member as canonical bytes, or nil if it is absent.
func (d document) raw(n *node, path, name string) codec.Raw {
	m := n.get(name)
	if m == nil {
		return nil
	}
	raw, err := codec.FromJSON(m.raw)
	if err != nil {
		d.say(m, space.WrongType, join(path, name), "%v", err)
	}
	return raw
}

func (d document) texts(n *node, path string) (items []*node) {
	if !d.is(n, path, kindList) {
		return nil
	}
	for i, item := range n.items {
		if d.is(item, index(path, i), kindText) {
			items = append(items, item)
		}
	}
	return items
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// readIndex reads the index and everything that it names.
func (b *builder) readIndex(content []byte) {
	d := document{b, IndexName}
	n := d.parse(content)
	if n == nil || !d.is(n, "", kindObject) {
		return
	}
	d.known(n, "", "$schema", "bindings", "category", "context", "defaults", "description", "display_name", "kind", "name", "prompts", "skills", "tools", "v", "version")
	if v := n.get("v"); v == nil {
		d.say(n, space.MissingField, "v", "is missing: write \"v\": 1")
	} else if v.kind != kindNumber || v.text != "1" {
		d.say(v, space.WrongType, "v", "is 1")
	}
	b.readHead(d, n)
	if b.takes(PartContext) {
		d.named(n, "context", b.readGroup)
	}
	if b.takes(PartPrompts) {
		d.named(n, "prompts", b.readPrompt)
	}
	if b.takes(PartTools) {
		d.named(n, "tools", b.readCatalog)
		b.readBindings(d, n.get("bindings"))
		b.arrangeWords()
	}
	if b.takes(PartSkills) {
		b.readSkills(d, n.get("skills"))
	}
	b.readDefaults(d, n.get("defaults"))
}

// readHead reads the kind, name, version and descriptions of the space.
func (b *builder) readHead(d document, n *node) {
	m := &b.m
	kind := space.Kind(cmp.Or(d.text(n, "", "kind"), string(space.Workspace)))
	if kind != space.Workspace && kind != space.Pack {
		d.say(n.get("kind"), space.WrongType, "kind", "is workspace or pack")
		return
	}
	if m.Kind != "" && m.Kind != kind {
		d.say(cmp.Or(n.get("kind"), n), space.NameMismatch, "kind", "is a %s, and a %s was asked for", kind, m.Kind)
	}
	m.Kind = kind
	name := d.text(n, "", "name")
	switch m.Space = cmp.Or(m.Space, name, b.o.Named); {
	case name != "" && name != m.Space:
		d.say(n.get("name"), space.NameMismatch, "name", "is %q, and %q was asked for", clip(name, 64), m.Space)
	case name == "" && kind == space.Pack:
		d.say(n, space.MissingField, "name", "is missing: a pack has one")
	case !space.IsSpaceName(m.Space, kind):
		d.say(cmp.Or(n.get("name"), n), space.BadName, "name", "%q names no %s: use A-Za-z0-9_-, and not refold, host or none", clip(m.Space, 64), kind)
	}
	m.Description, m.DisplayName, m.Category = d.text(n, "", "description"), d.text(n, "", "display_name"), d.text(n, "", "category")
	m.Version = d.text(n, "", "version")
	if _, ok := space.ParseVersion(m.Version); !ok && m.Version != "" {
		d.say(n.get("version"), space.BadName, "version", "is MAJOR.MINOR.PATCH, with or without - and a pre-release")
	}
	_ = d.text(n, "", "$schema")
	if m.Version == "" && kind == space.Pack {
		d.say(n, space.MissingField, "version", "is missing: a pack has one")
	}
}

// named reads an object whose keys are ids.
func (d document) named(n *node, member string, read func(d document, id string, value *node, path string)) {
	list := n.get(member)
	if list == nil || !d.is(list, member, kindObject) {
		return
	}
	for _, m := range list.members {
		path := join(member, m.name)
		if !space.IsID(m.name) {
			d.say(&node{line: m.line}, space.BadName, path, "is 1 to %d of A-Za-z0-9_-, and not none", space.TokenBytesMax)
			continue
		}
		read(d, m.name, m.value, path)
	}
}

func (b *builder) readGroup(d document, id string, value *node, path string) {
	g := space.Group{Group: id, Files: []int{}}
	b.sources["context."+id] = d.at(value, path)
	for i, item := range d.texts(value, path) {
		at := d.at(item, index(path, i))
		found := b.match(item.text, at)
		if len(found) == 0 {
			b.tellEmpty(item.text, at)
		}
		for _, name := range found {
			if i, _, ok := b.file(name, space.FileBytesMax, at); ok && len(g.Files) <= space.FilesMax {
				g.Files = append(g.Files, i)
			}
		}
	}
	b.m.Context = append(b.m.Context, g)
}

// readDefaults reads which prompt pack and catalog apply by default.
func (b *builder) readDefaults(d document, n *node) {
	var got space.Defaults
	if n != nil && d.is(n, "defaults", kindObject) {
		b.sources["defaults"] = d.at(n, "defaults")
		d.known(n, "defaults", "prompt_pack", "tool_catalog")
		got = space.Defaults{PromptPack: d.text(n, "defaults", "prompt_pack"), ToolCatalog: d.text(n, "defaults", "tool_catalog")}
		if got.PromptPack != "" && b.takes(PartPrompts) && b.m.Prompt(got.PromptPack) == nil {
			d.say(n.get("prompt_pack"), space.MissingField, "defaults.prompt_pack", "prompts has no %q", clip(got.PromptPack, 64))
		}
		if got.ToolCatalog != "" && b.takes(PartTools) && b.m.Catalog(got.ToolCatalog) == nil {
			d.say(n.get("tool_catalog"), space.MissingField, "defaults.tool_catalog", "tools has no %q", clip(got.ToolCatalog, 64))
		}
	}
	if b.m.Kind == space.Pack {
		return
	}
	if got.PromptPack == "" && b.m.Prompt(space.Default) != nil {
		got.PromptPack = space.Default
	}
	if got.ToolCatalog == "" && b.m.Catalog(space.Default) != nil {
		got.ToolCatalog = space.Default
	}
	if got != (space.Defaults{}) {
		b.m.Defaults = &got
	}
}
