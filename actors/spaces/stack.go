package spaces

import (
	"slices"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// Stack is a registry with its spaces. Names in configs are resolved in it.
type Stack struct {
	Spaces   []Adopted // by Asked
	Registry *planner.Registry

	base *planner.Registry
	own  *planner.Layer // the session's own tools are on top; nil: it has none

	results *planner.Layer // above them, the tool that reads results; nil: it has none
}

// Adopted is a pin with its manifest.
type Adopted struct {
	Pin
	Manifest *space.Manifest
	names    *planner.Registry // Pin.Registry
}

// adoptedOf returns a pin with its manifest.
func (x *Spaces) adoptedOf(pin Pin) Adopted {
	names := x.Record.Registry
	if pin.Registry != nil {
		names = x.content.registry(pin.Registry)
	}
	return Adopted{pin, x.Manifest(pin.Hash), names}
}

// adopted returns pins with their manifests.
func (x *Spaces) adopted(pins []Pin) []Adopted {
	out := make([]Adopted, len(pins))
	for i := range pins {
		out[i] = x.adoptedOf(pins[i])
	}
	return out
}

// ToolIn returns the name that a registry has for a tool of the manifest: the same
// name, or its tool_id if the registry calls it otherwise than the one under which
// the manifest was staged.
func (a *Adopted) ToolIn(registry *planner.Registry, name string) string {
	was, ok := a.names.Lookup(name)
	if !ok {
		return name
	}
	id := a.names.Tool(was).ToolID
	if now, ok := registry.Lookup(name); ok && registry.Tool(now).ToolID == id {
		return name
	}
	return id
}

// Compose sets Registry, or returns why the spaces do not compose.
func (st *Stack) Compose() *planner.ComposeError {
	registry, bad := planner.Compose(st.base, st.layers())
	st.Registry = registry
	return bad
}

func (st *Stack) layers() (layers []planner.Layer) {
	for i := range st.Spaces {
		layers = append(layers, st.Spaces[i].layer(st.base))
	}
	if st.own != nil {
		layers = append(layers, *st.own)
	}
	if st.results != nil {
		layers = append(layers, *st.results)
	}
	return layers
}

// layer returns a space's layer on a registry.
func (a *Adopted) layer(base *planner.Registry) planner.Layer {
	l := planner.Layer{Name: a.Space, Needs: a.Manifest.Needs, Tools: a.Manifest.LayerTools(), Words: make([]planner.Word, len(a.Manifest.Words))}
	for i := range a.Manifest.Words {
		w := &a.Manifest.Words[i]
		l.Words[i] = planner.Word{Tool: a.ToolIn(base, w.Tool), Description: w.Description, ArgsSchema: w.ArgsSchema}
	}
	return l
}

// HasOwnTools reports whether the stack has the session's own tools.
func (st *Stack) HasOwnTools() bool { return st.own != nil }

// HasResults reports whether the stack has the tool that reads results.
func (st *Stack) HasResults() bool { return st.results != nil }

// Workspace returns the stack's workspace, nil if it has none.
func (st *Stack) Workspace() *Adopted {
	return find(st.Spaces, func(a *Adopted) bool { return a.Kind == space.Workspace })
}

// Find returns the space of a name, nil if it is not in the stack.
func (st *Stack) Find(name string) *Adopted {
	return find(st.Spaces, func(a *Adopted) bool { return a.Space == name })
}

// find returns the first element of a list that matches, nil if none does.
func find[T any](list []T, is func(*T) bool) *T {
	for i := range list {
		if is(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

// Lacks returns the unmet needs, by space.
func (st *Stack) Lacks() (out []planner.Lacks) {
	for i := range st.Spaces {
		if p := &st.Spaces[i].Pin; len(p.Lacks) > 0 {
			out = append(out, planner.Lacks{Layer: p.Space, Needs: p.Lacks})
		}
	}
	return out
}

// Packs returns the number of packs.
func (st *Stack) Packs() (n int) {
	for i := range st.Spaces {
		if st.Spaces[i].Kind == space.Pack {
			n++
		}
	}
	return n
}

// HasFiles reports whether a space of the stack has context.
func (st *Stack) HasFiles() bool {
	return slices.ContainsFunc(st.Spaces, func(a Adopted) bool { return len(a.Manifest.Context) > 0 })
}

// with returns the stack with a space added. The space replaces the one of its
// name, and a workspace replaces the workspace. The result is not composed.
func (st *Stack) with(a Adopted) Stack {
	out := st.without(func(b *Adopted) bool { return b.isReplacedBy(&a.Pin) })
	out.Spaces = append(out.Spaces, a)
	slices.SortStableFunc(out.Spaces, func(a, b Adopted) int { return byAsked(a.Pin, b.Pin) })
	return out
}

// without returns the stack without some spaces. The result is not composed.
func (st *Stack) without(gone func(*Adopted) bool) Stack {
	out := Stack{base: st.base, own: st.own}
	for i := range st.Spaces {
		if !gone(&st.Spaces[i]) {
			out.Spaces = append(out.Spaces, st.Spaces[i])
		}
	}
	return out
}

// isReplacedBy reports whether q replaces p: a space has one pin, and there is one
// workspace.
func (p *Pin) isReplacedBy(q *Pin) bool {
	return p.Space == q.Space || p.Kind == space.Workspace && q.Kind == space.Workspace
}

// ownLayer returns the layer of the session's own tools if it has a grant.
func (x *Spaces) ownLayer() *planner.Layer {
	if x.HasGrants() {
		return x.Record.Own
	}
	return nil
}

// Stack returns the stack that is applied now.
func (x *Spaces) Stack() Stack {
	st := Stack{Registry: x.Session.Composed(), own: x.ownLayer()}
	if x.State == nil {
		st.base = st.Registry
		return st
	}
	st.base, st.Spaces = x.content.base, x.adopted(x.Applied)
	return st
}

// AtStart returns the stack that applies when a run begins that is requested now: with
// the pending spaces, which are applied before its first turn. waits reports whether
// there are any.
func (x *Spaces) AtStart() (st Stack, waits bool) {
	st = x.Stack()
	if x.State == nil || len(x.Pending) == 0 {
		return st, false
	}
	for i := range x.Pending {
		st = st.with(x.adoptedOf(x.Pending[i].Pin))
	}
	if st.Compose() != nil { // none of them may be applied
		return x.Stack(), true
	}
	return st, true
}

// Under returns a stack with another workspace, or with none. The result is not
// composed.
func (x *Spaces) Under(st *Stack, own *Pin) Stack {
	if own != nil {
		return st.with(x.adoptedOf(*own))
	}
	return st.without(func(a *Adopted) bool { return a.Kind == space.Workspace })
}

// RunStack is Under, composed, for a run. Composing does not fail: the event that
// changed a layer below was checked. The registries of runs are cached.
func (x *Spaces) RunStack(st *Stack, own *Pin) Stack {
	out := x.Under(st, own)
	if x.State == nil { // without a grant there is no workspace to replace
		out.Registry = out.base
		return out
	}
	var hash codec.Hash
	if own != nil {
		hash = own.Hash
	}
	if held := find(x.content.own, func(o *ownRegistry) bool { return o.hash == hash }); held != nil {
		out.Registry = held.registry
		return out
	}
	if out.Compose() != nil {
		out.Registry = st.Registry
		return out
	}
	x.content.own = append(x.content.own, ownRegistry{hash, out.Registry})
	return out
}

// WithResults returns a composed stack with the tool that reads results on top. registry
// is that of the result, if the caller has it; nil: it is composed, or cached. If the
// tool does not fit, because another has its name or there is no room, the result is the
// stack itself.
func (x *Spaces) WithResults(st *Stack, registry *planner.Registry) Stack {
	out := *st
	out.results = x.Record.Results
	if held := x.heldResults(st.Registry.Hash()); registry == nil && held != nil {
		registry = held
	}
	if out.Registry = registry; registry != nil {
		return out
	}
	if st.Registry.HasNameOf(out.results.Tools) || out.Compose() != nil {
		return *st
	}
	if x.State != nil {
		x.content.results = &resultsRegistry{st.Registry.Hash(), out.Registry}
	}
	return out
}

// heldResults returns the cached registry with the tool that reads results on top of
// another one, nil if that is not cached.
func (x *Spaces) heldResults(of codec.Hash) *planner.Registry {
	if x.State == nil || x.content.results == nil || x.content.results.of != of {
		return nil
	}
	return x.content.results.registry
}

// TurnStack returns the stack of the latest turn, whose offers are from registry.
func (x *Spaces) TurnStack(registry *planner.Registry) Stack {
	st := Stack{base: registry, Registry: registry} // the base is not needed any more
	if x.State != nil && x.Turn != nil {
		st.Spaces = x.adopted(x.Turn.Pins)
		if x.Turn.Tools {
			st.own = x.Record.Own
		}
	}
	return st
}

// Uncovered returns the tools that catalogs name and the stack's registry does not bind.
func (st *Stack) Uncovered() (problems []space.Problem) {
	for i := range st.Spaces {
		problems = append(problems, st.Spaces[i].uncovered(st.Registry)...)
	}
	return problems
}

// EachRegistry calls fn with the places of all registries that the state holds.
func (x *State) EachRegistry(fn func(**planner.Registry)) {
	fn(&x.content.base)
	for i := range x.content.named {
		fn(&x.content.named[i])
	}
	for i := range x.content.own {
		fn(&x.content.own[i].registry)
	}
	if x.content.results != nil {
		fn(&x.content.results.registry)
	}
}
