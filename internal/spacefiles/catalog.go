package spacefiles

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// readCatalog reads a catalog from one file, or from a list of files in their
// order.
func (b *builder) readCatalog(index document, id string, value *node, at string) {
	c := space.Catalog{ToolCatalog: id, Tools: []codec.Raw{}}
	chosen := location{} // of tool_choice
	names := []*node{value}
	if value.kind == kindList {
		names = index.texts(value, at)
	} else if !index.is(value, at, kindText) {
		return
	}
	for _, name := range names {
		b.sources["catalogs."+id] = location{file: name.text}
		if d, n := b.json(name.text, index.at(name, at)); n != nil {
			b.sources["catalogs."+id] = d.at(n, "")
			b.readEntries(d, n, &c)
			if choice := n.get("tool_choice"); choice != nil {
				chosen = d.at(choice, "tool_choice")
			}
		}
	}
	b.sources["catalogs."+id+".tool_choice"] = chosen
	if b.choosesAnother(&c) {
		b.say(chosen.problem(space.UnknownTool, "%q is none of the catalog's tools", clip(c.ToolChoice, 64)))
	}
	b.m.Catalogs = append(b.m.Catalogs, c)
}

// readEntries reads {tools, tool_choice}, a list of entries, or one entry.
func (b *builder) readEntries(d document, n *node, c *space.Catalog) {
	entries, where := []*node{n}, ""
	switch {
	case n.kind == kindObject && n.get("tools") != nil:
		d.known(n, "", "tools", "tool_choice")
		if choice := d.text(n, "", "tool_choice"); choice != "" {
			c.ToolChoice = choice
		}
		if !d.is(n.get("tools"), "tools", kindList) {
			return
		}
		entries, where = n.get("tools").items, "tools"
	case n.kind == kindList:
		entries = n.items
	}
	for i, item := range entries {
		at := index(where, i)
		if len(entries) == 1 && entries[0] == n {
			at = ""
		}
		e, ok := b.readEntry(d, item, at)
		if !ok {
			continue
		}
		if b.lists(c, e.Tool) {
			d.say(item, space.Duplicate, at, "%q stands twice in the catalog", e.Tool)
			continue
		}
		b.sources[index("catalogs."+c.ToolCatalog+".tools", len(c.Tools))] = d.at(item, at)
		c.Tools = append(c.Tools, e.Raw())
	}
}

// choosesAnother reports whether a catalog's tool_choice is certainly none of its
// tools. Where ids and names are mixed, only a registry knows.
func (b *builder) choosesAnother(c *space.Catalog) bool {
	switch c.ToolChoice {
	case "", planner.ChoiceAuto, planner.ChoiceNone, planner.ChoiceRequired:
		return false
	}
	entries, _ := c.Entries()
	isID := func(name string) bool { return strings.Contains(name, ".") }
	return !slices.ContainsFunc(entries, func(e space.Entry) bool { return e.Tool == c.ToolChoice || isID(e.Tool) != isID(c.ToolChoice) })
}

func (b *builder) lists(c *space.Catalog, tool string) bool {
	entries, _ := c.Entries()
	return slices.ContainsFunc(entries, func(e space.Entry) bool { return e.Tool == tool })
}

// readEntry reads a name, {descriptor}, or an object that names a tool and may
// reword it.
func (b *builder) readEntry(d document, n *node, at string) (e space.Entry, ok bool) {
	if n.kind == kindText {
		e.Tool = n.text
		return e, d.isTool(n, at, n.text)
	}
	if !d.is(n, at, kindObject) {
		return e, false
	}
	if descriptor := n.get("descriptor"); descriptor != nil {
		d.known(n, at, "descriptor")
		if !d.is(descriptor, join(at, "descriptor"), kindText) {
			return e, false
		}
		file, inner := b.json(descriptor.text, d.at(descriptor, join(at, "descriptor")))
		if inner == nil || !file.is(inner, "", kindObject) {
			return e, false
		}
		d, n, at = file, inner, ""
	}
	d.known(n, at, "tool", "tool_name", "name", "function", "type", "strict", "description", "args_schema", "parameters", "input_schema")
	words := n
	if f := n.get("function"); f != nil {
		if !d.is(f, join(at, "function"), kindObject) {
			return e, false
		}
		words, at = f, join(at, "function")
		d.known(f, at, "name", "description", "parameters", "strict")
	}
	if e.Tool, ok = d.toolOf(n, words, at); !ok {
		return e, false
	}
	word, ok := d.word(words, at, e.Tool)
	if !ok || word == nil {
		return e, ok
	}
	i := slices.IndexFunc(b.words, func(w space.Word) bool { return space.CompareWords(&w, word) == 0 })
	if i < 0 {
		i = len(b.words)
		b.words = append(b.words, *word)
	}
	e.Word = &i
	return e, true
}

// toolOf returns the tool that an object names.
func (d document) toolOf(n, words *node, at string) (tool string, ok bool) {
	for _, member := range []struct {
		of   *node
		name string
	}{{n, "tool"}, {n, "name"}, {n, "tool_name"}, {words, "name"}} {
		m := member.of.get(member.name)
		if m == nil {
			continue
		}
		path := join(at, member.name)
		if !d.is(m, path, kindText) || !d.isTool(m, path, m.text) {
			return "", false
		}
		if tool != "" && tool != m.text {
			d.say(m, space.RenamesTool, path, "is %q, and the tool is %q: words never rename a tool, so leave this out", m.text, tool)
			return "", false
		}
		tool = m.text
	}
	if tool == "" {
		d.say(n, space.MissingField, join(at, "tool"), "names the tool: tool, name or function.name")
	}
	return tool, tool != ""
}

func (d document) isTool(n *node, at, name string) bool {
	if planner.IsToolID(name) {
		return true
	}
	d.say(n, space.BadName, at, "%q is neither a tool_id nor a tool_name", clip(name, 64))
	return false
}

// word reads another description of a tool, or nil.
func (d document) word(n *node, at, tool string) (w *space.Word, ok bool) {
	w, ok = &space.Word{Tool: tool, Description: d.text(n, at, "description")}, true
	if len(w.Description) > space.WordDescriptionBytesMax {
		d.say(n.get("description"), space.TooLarge, join(at, "description"), "has %d bytes, at most %d", len(w.Description), space.WordDescriptionBytesMax)
		ok = false
	}
	for _, name := range []string{"args_schema", "parameters", "input_schema"} {
		schema := n.get(name)
		if schema == nil {
			continue
		}
		if w.ArgsSchema != nil {
			d.say(schema, space.BadSchema, join(at, name), "is a second schema: args_schema, parameters and input_schema say the same")
			return nil, false
		}
		raw, err := codec.FromJSON(schema.raw)
		switch {
		case err != nil:
			d.say(schema, space.BadSchema, join(at, name), "%v", err)
			return nil, false
		case schema.kind != kindObject || len(raw) > space.SchemaBytesMax:
			d.say(schema, space.BadSchema, join(at, name), "is an object of at most %d bytes", space.SchemaBytesMax)
			return nil, false
		}
		if problem := planner.SchemaProblem(raw); problem != "" {
			d.say(schema, space.BadSchema, join(at, name), "%s", problem)
			return nil, false
		}
		w.ArgsSchema = raw
		d.b.sources["words."+wordID(w)+".args_schema"] = d.at(schema, join(at, name))
	}
	if w.Description == "" && w.ArgsSchema == nil {
		return nil, ok
	}
	d.b.sources["words."+wordID(w)] = d.at(n, at)
	return w, ok
}

// arrangeWords sorts the words and updates the entries that index them.
func (b *builder) arrangeWords() {
	b.m.Words = slices.SortedFunc(slices.Values(b.words), func(x, y space.Word) int { return space.CompareWords(&x, &y) })
	for i := range b.m.Catalogs {
		entries, _ := b.m.Catalogs[i].Entries()
		for j, e := range entries {
			if e.Word == nil {
				continue
			}
			word := b.words[*e.Word]
			k := slices.IndexFunc(b.m.Words, func(w space.Word) bool { return space.CompareWords(&w, &word) == 0 })
			b.m.Catalogs[i].Tools[j] = space.Entry{Tool: e.Tool, Word: &k}.Raw()
		}
	}
}

// readBindings reads the file of a pack's tools: {tools, needs}.
func (b *builder) readBindings(index document, value *node) {
	if value == nil || !index.is(value, "bindings", kindText) {
		return
	}
	if b.m.Kind != space.Pack {
		index.say(value, space.BindingInWorkspace, "bindings", "a workspace brings no tools: bind them in the install record or in a pack")
		return
	}
	d, n := b.json(value.text, index.at(value, "bindings"))
	if n == nil || !d.is(n, "", kindObject) {
		return
	}
	d.known(n, "", "tools", "needs")
	if needs := n.get("needs"); needs != nil {
		b.m.Needs = sortedTexts(d.texts(needs, "needs"))
	}
	tools := n.get("tools")
	if tools == nil || !d.is(tools, "tools", kindList) {
		return
	}
	for i, item := range tools.items {
		raw, err := codec.FromJSON(item.raw)
		var spec planner.ToolSpec
		if err == nil {
			err = codec.Decode(raw, &spec)
		}
		if err != nil {
			d.say(item, space.WrongType, fmt.Sprintf("tools[%d]", i), "%v", err)
			continue
		}
		if bad := space.ToolProblem(&spec); bad != nil {
			d.say(item, bad.Code, fmt.Sprintf("tools[%d]%s", i, bad.Path), "%s", bad.Detail)
			continue
		}
		b.sources["tools."+spec.ToolID] = d.at(item, fmt.Sprintf("tools[%d]", i))
		b.m.Tools = append(b.m.Tools, spec)
	}
	slices.SortFunc(b.m.Tools, func(x, y planner.ToolSpec) int { return cmp.Compare(x.ToolID, y.ToolID) })
}
