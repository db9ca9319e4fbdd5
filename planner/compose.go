package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/refold/refold/codec"
)

// Layer is what one space, or the session itself, adds to a registry: tools of
// its own, and new descriptors for existing tools.
type Layer struct {
	Name  string      // of the space
	Needs []string    // of all its tools, in addition to their own
	Tools *LayerTools // joined to the tools below; they join a profile or a catalog. Nil: none
	Words []Word      // in the order of the space's list
}

// LayerTools are a layer's tools, checked by themselves and compiled. They are
// immutable, may be shared, and are safe for concurrent use.
type LayerTools struct {
	specs []ToolSpec // as they were given
	tools []tool
	room  registryRoom
	from  origin
}

// PackTools compiles the tools of a pack.
func PackTools(specs []ToolSpec) (*LayerTools, *ComposeError) { return layerTools(specs, ofPack) }

// SessionTools compiles the session's own tools. They may use what is reserved
// for them: RuleSpaceFiles, RuleSkills, RuleGrants, ExecutorSpace.
func SessionTools(specs []ToolSpec) (*LayerTools, *ComposeError) { return layerTools(specs, ofSession) }

// HasNameOf reports whether the registry has a tool with the first tool_name of one of
// these: then they do not compose.
func (r *Registry) HasNameOf(l *LayerTools) bool {
	return slices.ContainsFunc(l.tools, func(t tool) bool {
		_, taken := r.Lookup(t.descriptors[0].ToolName)
		return taken
	})
}

// Ref returns the name of the descriptor of the i-th tool, as it was given.
func (l *LayerTools) Ref(i int) codec.Ref { return l.tools[i].descriptors[0].ref }

func layerTools(specs []ToolSpec, from origin) (*LayerTools, *ComposeError) {
	l := &LayerTools{specs: specs, tools: make([]tool, len(specs)), from: from}
	for i := range specs {
		t, bad := newTool(fmt.Sprintf("tools[%d]", i), cloneSpec(specs[i]), &l.room, from)
		if bad != nil {
			return nil, &ComposeError{Code: ComposeTool, Path: bad.Path, Detail: bad.Detail}
		}
		l.tools[i] = t
	}
	return l, nil
}

// Word rewords a tool: it becomes an alternate descriptor under the same
// tool_name. An empty field keeps the tool's own text. A word for a tool that
// the registry lacks is skipped.
type Word struct {
	Tool        string // by tool_id or tool_name
	Description string
	ArgsSchema  codec.Raw
}

// ComposeCode says what is wrong with a layer. The texts are wire.
type ComposeCode string

// The codes of a ComposeError.
const (
	ComposeTaken     ComposeCode = "tool_taken"      // another tool has its tool_id
	ComposeNameTaken ComposeCode = "tool_name_taken" // another tool has one of its names
	ComposeTool      ComposeCode = "wrong_type"      // the tool itself is wrong
	ComposeSchema    ComposeCode = "bad_schema"      // a word's args_schema is no schema
	ComposeWidens    ComposeCode = "widens_schema"   // a word requires what the tool forbids
	ComposeTooMany   ComposeCode = "too_many"        // a limit of registries is exceeded
)

// ComposeError says which part of which layer is wrong. Path is within the
// layer: words[2].args_schema; it is empty if the whole is too large.
type ComposeError struct {
	Layer  int
	Code   ComposeCode
	Path   string
	Detail string
}

// Error returns the path and what is wrong there.
func (e *ComposeError) Error() string {
	if e.Path == "" {
		return e.Detail
	}
	return e.Path + ": " + e.Detail
}

// layer is what a composed registry keeps of a Layer.
type layer struct {
	Layer string      `msgpack:"layer"`
	Tools []string    `msgpack:"tools,omitempty"` // tool_ids, sorted
	Words []codec.Ref `msgpack:"words,omitempty"` // by word; the zero Ref: skipped

	needs    []string
	reserved bool // its tools are the session's own
}

// Compose returns base with layers on top, the first one lowest. Without layers
// it returns base itself. Nothing that base compiled is compiled again: a
// condition holds tool_ids, and no layer changes what a name of base means. The
// result is subject to the limits of every registry. On an error nothing has
// changed.
func Compose(base *Registry, layers []Layer) (*Registry, *ComposeError) {
	if len(layers) == 0 {
		return base, nil
	}
	c := newComposing(base, layers)
	for i := range layers {
		if c.add(&layers[i], i); len(c.faults) > 0 {
			return nil, &c.faults[0]
		}
	}
	if len(c.tools) > ToolsMax {
		return nil, &ComposeError{Layer: len(layers) - 1, Code: ComposeTooMany, Detail: fmt.Sprintf("%d tools with those of the registry, at most %d", len(c.tools), ToolsMax)}
	}
	r, bad := c.registry(base, layers)
	if bad != nil {
		bad.Layer = len(layers) - 1
	}
	return r, bad
}

// ComposeFaults returns all that is wrong with the layers, at most ProblemsMax. It
// returns nil if they compose.
func ComposeFaults(base *Registry, layers []Layer) []ComposeError {
	c := newComposing(base, layers)
	for i := range layers {
		c.add(&layers[i], i)
	}
	if len(c.faults) > 0 {
		return c.faults[:min(len(c.faults), ComposeFaultsMax)]
	}
	if _, bad := Compose(base, layers); bad != nil {
		return []ComposeError{*bad}
	}
	return nil
}

// ComposeFaultsMax is how many faults ComposeFaults returns.
const ComposeFaultsMax = 64

func newComposing(base *Registry, layers []Layer) *composing {
	c := &composing{tools: slices.Clone(base.tools), room: base.room, made: make([]layer, len(layers))}
	c.ids, c.names = make(map[string]int, len(c.tools)), make(map[string]int, len(c.tools))
	for i := range c.tools {
		c.take(i)
	}
	return c
}

type composing struct {
	tools []tool
	ids   map[string]int // to tools
	names map[string]int // in lower case, to tools
	room  registryRoom
	made  []layer

	faults []ComposeError
}

// take records the names of tool i.
func (c *composing) take(i int) {
	c.ids[c.tools[i].spec.ToolID] = i
	for _, d := range c.tools[i].descriptors {
		c.names[strings.ToLower(d.ToolName)] = i
	}
}

// add puts layer number at on top of the others, and records what is wrong with it.
func (c *composing) add(l *Layer, at int) {
	fault := func(bad *ComposeError) {
		bad.Layer = at
		c.faults = append(c.faults, *bad)
	}
	made := &c.made[at]
	made.Layer, made.needs = l.Name, l.Needs
	made.reserved = l.Tools != nil && l.Tools.from == ofSession
	if l.Tools != nil {
		if problem := c.room.add(l.Tools.room); problem != "" {
			fault(&ComposeError{Code: ComposeTooMany, Path: "tools", Detail: problem})
			return
		}
		for i, t := range l.Tools.tools {
			if bad := c.collision(fmt.Sprintf("tools[%d]", i), &t); bad != nil {
				fault(bad)
				continue
			}
			t.layer = at + 1
			c.tools = append(c.tools, t)
			c.take(len(c.tools) - 1)
			made.Tools = append(made.Tools, t.spec.ToolID)
		}
		slices.Sort(made.Tools)
	}
	for i := range l.Words {
		ref, bad := c.reword(fmt.Sprintf("words[%d]", i), &l.Words[i])
		if bad != nil {
			fault(bad)
		}
		made.Words = append(made.Words, ref)
	}
}

// collision returns an error if a tool below already has a name of t.
func (c *composing) collision(path string, t *tool) *ComposeError {
	of := func(code ComposeCode, field, name string, other int) *ComposeError {
		return &ComposeError{Code: code, Path: path + field, Detail: fmt.Sprintf("%+q of %s is taken by %s", name, t.spec.ToolID, c.tools[other].spec.ToolID)}
	}
	if other, ok := c.ids[t.spec.ToolID]; ok {
		return of(ComposeTaken, ".tool_id", t.spec.ToolID, other)
	}
	if other, ok := c.find(t.spec.ToolID); ok {
		return of(ComposeNameTaken, ".tool_id", t.spec.ToolID, other)
	}
	for v, d := range t.descriptors {
		other, ok := c.names[strings.ToLower(d.ToolName)]
		if !ok {
			other, ok = c.ids[d.ToolName]
		}
		if ok {
			return of(ComposeNameTaken, variantPath(v)+".tool_name", d.ToolName, other)
		}
	}
	return nil
}

// reword gives a tool another descriptor and returns its Ref. An identical
// descriptor is not added again. The Ref is zero if there is no such tool.
func (c *composing) reword(path string, w *Word) (codec.Ref, *ComposeError) {
	i, ok := c.find(w.Tool)
	if !ok {
		return codec.Ref{}, nil
	}
	t := &c.tools[i]
	own := &t.descriptors[0]
	d := own.Descriptor
	if w.Description != "" {
		d.Description = w.Description
	}
	if len(w.ArgsSchema) > 0 {
		d.ArgsSchema = slices.Clone(w.ArgsSchema)
	}
	made, bad := newDescriptor(path, d, own, &c.room)
	if bad != nil {
		return codec.Ref{}, &ComposeError{Code: ComposeSchema, Path: bad.Path, Detail: bad.Detail}
	}
	for v := range t.descriptors {
		if t.descriptors[v].ref == made.ref {
			return made.ref, nil
		}
	}
	if len(t.spec.Alternates) >= AlternatesMax {
		return codec.Ref{}, &ComposeError{Code: ComposeTooMany, Path: path, Detail: fmt.Sprintf("%s has its %d alternates", t.spec.ToolID, AlternatesMax)}
	}
	if name := own.schema.forbids(made.schema); name != "" {
		return codec.Ref{}, &ComposeError{Code: ComposeWidens, Path: path + ".args_schema", Detail: "requires " + quoted(name) + ", which " + t.spec.ToolID + " does not take"}
	}
	made.line = t.spec.ToolID + " " + made.ref.String() + "\n"
	made.reworded = true
	t.spec.Alternates = append(slices.Clip(t.spec.Alternates), d)
	t.descriptors = append(slices.Clip(t.descriptors), made)
	return made.ref, nil
}

// find finds a tool by tool_id or by a tool_name, as Lookup does.
func (c *composing) find(name string) (int, bool) {
	if i, ok := c.ids[name]; ok {
		return i, true
	}
	i, ok := c.names[strings.ToLower(name)]
	return i, ok && slices.ContainsFunc(c.tools[i].descriptors, func(d descriptor) bool { return d.ToolName == name })
}

// forbids returns the first member that other requires of an object and s
// forbids, or "". A member that could match a pattern is not forbidden.
func (s *schema) forbids(other *schema) string {
	closed := s.root.additionalProperties != nil && s.root.additionalProperties.never
	for _, name := range other.root.required {
		i := slices.IndexFunc(s.root.properties, func(p property) bool { return p.name == name })
		switch {
		case i >= 0 && s.root.properties[i].node.never:
			return name
		case i < 0 && closed && len(s.root.patternProperties) == 0:
			return name
		}
	}
	return ""
}

func (c *composing) registry(base *Registry, layers []Layer) (*Registry, *ComposeError) {
	r := &Registry{
		defaultProfile: base.defaultProfile, byProvider: base.byProvider, asksCalls: base.asksCalls, room: c.room, layers: c.made,
		profiles: slices.Clone(base.profiles),
	}
	slices.SortFunc(c.tools, func(a, b tool) int { return strings.Compare(a.spec.ToolID, b.spec.ToolID) })
	r.index(c.tools)
	for i := range r.profiles {
		p := &r.profiles[i]
		p.tools = slices.Clone(p.tools)
		for j := range p.tools {
			p.tools[j].tool = r.byID[base.tools[p.tools[j].tool].spec.ToolID]
		}
	}
	for i := range layers {
		if layers[i].Tools == nil {
			continue
		}
		bad := checkKinds(r.specs)
		if bad == nil {
			bad = r.addApprovals(layers[i].Tools.specs, &r.room)
		}
		if bad != nil {
			return nil, &ComposeError{Code: ComposeTool, Path: bad.Path, Detail: bad.Detail}
		}
	}
	if err := r.encode(); err != nil {
		return nil, &ComposeError{Code: ComposeTooMany, Detail: err.Error()}
	}
	return r, nil
}

// LayerOf returns the name of the layer that a tool came with, "" if it is the
// base registry's.
func (r *Registry) LayerOf(t ToolIndex) string {
	if at := r.tools[t].layer; at > 0 {
		return r.layers[at-1].Layer
	}
	return ""
}

// joining calls fn with the tools of all layers, or of those in only: they join
// a base.
func (r *Registry) joining(only []string, fn func(ToolIndex)) {
	for i := range r.layers {
		if only != nil && !slices.Contains(only, r.layers[i].Layer) {
			continue
		}
		for _, id := range r.layers[i].Tools {
			fn(r.byID[id])
		}
	}
}

// WordRef returns the descriptor that a word of a layer became. ok is false if
// the registry has no such layer or word, and if the word was skipped.
func (r *Registry) WordRef(name string, word int) (ref codec.Ref, ok bool) {
	for i := range r.layers {
		if l := &r.layers[i]; l.Layer == name && word >= 0 && word < len(l.Words) {
			return l.Words[word], l.Words[word] != codec.Ref{}
		}
	}
	return codec.Ref{}, false
}
