package session

import (
	"slices"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// stack is a registry with its spaces. Names in configs are resolved in it.
type stack struct {
	base     *planner.Registry
	spaces   []adopted // by Asked
	tools    bool      // the session's own tools are on top
	registry *planner.Registry
}

// adopted is a pin with its manifest.
type adopted struct {
	SpacePin
	manifest *space.Manifest
	names    *planner.Registry // SpacePin.Registry
}

// adoptedOf returns a pin with its manifest.
func (s *State) adoptedOf(pin SpacePin) adopted {
	names := s.install.Registry
	if pin.Registry != nil {
		names = s.content().registry(pin.Registry)
	}
	return adopted{pin, s.manifest(pin.Hash), names}
}

// tool returns the name that a registry has for a tool of the manifest: the same
// name, or its tool_id if the registry calls it otherwise than the one under which
// the manifest was staged.
func (a *adopted) tool(registry *planner.Registry, name string) string {
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

func (st *stack) compose() *planner.ComposeError {
	registry, bad := planner.Compose(st.base, st.layers())
	st.registry = registry
	return bad
}

func (st *stack) layers() (layers []planner.Layer) {
	for i := range st.spaces {
		layers = append(layers, st.spaces[i].layer(st.base))
	}
	if st.tools {
		layers = append(layers, sessionLayer)
	}
	return layers
}

// layer returns a space's layer on a registry.
func (a *adopted) layer(base *planner.Registry) planner.Layer {
	l := planner.Layer{Name: a.Space, Needs: a.manifest.Needs, Tools: a.manifest.LayerTools(), Words: make([]planner.Word, len(a.manifest.Words))}
	for i := range a.manifest.Words {
		w := &a.manifest.Words[i]
		l.Words[i] = planner.Word{Tool: a.tool(base, w.Tool), Description: w.Description, ArgsSchema: w.ArgsSchema}
	}
	return l
}

func (st *stack) workspace() *adopted {
	return find(st.spaces, func(a *adopted) bool { return a.Kind == space.Workspace })
}

func (st *stack) find(name string) *adopted {
	return find(st.spaces, func(a *adopted) bool { return a.Space == name })
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

// lacks returns the unmet needs, by space.
func (st *stack) lacks() (out []planner.Lacks) {
	for i := range st.spaces {
		if p := &st.spaces[i].SpacePin; len(p.Lacks) > 0 {
			out = append(out, planner.Lacks{Layer: p.Space, Needs: p.Lacks})
		}
	}
	return out
}

// with returns the stack with a space added. The space replaces the one of its
// name, and a workspace replaces the workspace. The result is not composed.
func (st *stack) with(a adopted) stack {
	out := st.without(func(b *adopted) bool {
		return b.Space == a.Space || b.Kind == space.Workspace && a.Kind == space.Workspace
	})
	out.spaces = append(out.spaces, a)
	slices.SortStableFunc(out.spaces, func(a, b adopted) int { return byAsked(a.SpacePin, b.SpacePin) })
	return out
}

// without returns the stack without some spaces. The result is not composed.
func (st *stack) without(gone func(*adopted) bool) stack {
	out := stack{base: st.base, tools: st.tools}
	for i := range st.spaces {
		if !gone(&st.spaces[i]) {
			out.spaces = append(out.spaces, st.spaces[i])
		}
	}
	return out
}

func (st *stack) hasFiles() bool {
	return slices.ContainsFunc(st.spaces, func(a adopted) bool { return len(a.manifest.Context) > 0 })
}

// baseRegistry returns the session's registry without layers.
func (s *State) baseRegistry() *planner.Registry {
	if s.Spaces == nil {
		return s.registry
	}
	return s.Spaces.content.base
}

// stack returns the stack that is applied now.
func (s *State) stack() stack {
	st := stack{base: s.baseRegistry(), registry: s.registry, tools: s.hasGrants()}
	if s.Spaces != nil {
		st.spaces = s.adopted(s.Spaces.Applied)
	}
	return st
}

// adopted returns pins with their manifests.
func (s *State) adopted(pins []SpacePin) []adopted {
	out := make([]adopted, len(pins))
	for i := range pins {
		out[i] = s.adoptedOf(pins[i])
	}
	return out
}

// hasGrants reports whether the session has any grant.
func (s *State) hasGrants() bool {
	return len(s.install.Record.Spaces) > 0 || s.Spaces != nil && len(s.Spaces.Grants) > 0
}

// isOwn reports whether a config names a workspace.
func (c *RunConfig) isOwn() bool { return c.Workspace != "" }

// stackOf returns the stack of a run with a config, given the applied stack st. own
// is the workspace that the config names.
func (s *State) stackOf(st *stack, c *RunConfig, own *SpacePin) (stack, *refusal) {
	if c == nil || !c.isOwn() {
		return *st, nil
	}
	out := s.under(st, own)
	if bad := out.compose(); bad != nil {
		return out, refuse(RejectWorkspaceInvalid, "config.workspace: "+bad.Error())
	}
	return out, nil
}

// runStack returns the stack of the active run's next turn.
func (s *State) runStack() stack {
	st := s.stack()
	if s.Run == nil || !s.Run.Config.isOwn() {
		return st
	}
	var hash codec.Hash
	if s.Run.Workspace != nil {
		hash = s.Run.Workspace.Hash
	}
	out := s.under(&st, s.Run.Workspace)
	out.registry = s.ownRegistry(hash, &out)
	return out
}

// under returns the stack with another workspace, or with none. The result is not
// composed.
func (s *State) under(st *stack, own *SpacePin) stack {
	if own != nil {
		return st.with(s.adoptedOf(*own))
	}
	return st.without(func(a *adopted) bool { return a.Kind == space.Workspace })
}

// ownRegistry returns the registry of a stack whose workspace has a hash, and
// caches it. Composing does not fail: the event that changed a layer below was
// checked.
func (s *State) ownRegistry(hash codec.Hash, st *stack) *planner.Registry {
	if s.Spaces == nil { // without a grant there is no workspace to replace
		return st.base
	}
	if own := find(s.Spaces.content.own, func(o *ownRegistry) bool { return o.hash == hash }); own != nil {
		return own.registry
	}
	if st.compose() != nil {
		return s.registry
	}
	s.Spaces.content.own = append(s.Spaces.content.own, ownRegistry{hash, st.registry})
	return st.registry
}

// turnStack returns the stack of the latest turn.
func (s *State) turnStack() stack {
	st := stack{base: s.turnRegistry, registry: s.turnRegistry} // the base is not needed any more
	if s.turnSpace() != nil {
		st.spaces, st.tools = s.adopted(s.turnSpace().Pins), s.turnSpace().Tools
	}
	return st
}

// findWorkspace returns the pin of the workspace with a hash: an applied, pending
// or staged one, or the install record's.
func (s *State) findWorkspace(hash string) *SpacePin {
	var found *SpacePin
	look := func(p *SpacePin) {
		if found == nil && p.Kind == space.Workspace && p.Hash.Is(hash) {
			pin := *p
			pin.Lacks = nil // a need that is met later must be noticed
			found = &pin
		}
	}
	s.eachHeld(look)
	for i := range s.install.pins {
		look(&s.install.pins[i])
	}
	return found
}

// ownWorkspace returns the workspace that a config names, nil if it names none.
func (s *State) ownWorkspace(c *RunConfig) (*SpacePin, *refusal) {
	if c == nil || !c.isOwn() || c.Workspace == space.None {
		return nil, nil
	}
	own := s.findWorkspace(c.Workspace)
	if own == nil {
		return nil, refuse(RejectWorkspaceInvalid, "config.workspace: no manifest of the session has the hash "+quoted(c.Workspace)+": sync it first")
	}
	return own, nil
}

// configFault checks a config under a stack. own is the workspace that the config
// names.
func (s *State) configFault(st *stack, c *RunConfig, own *SpacePin, complete bool) *refusal {
	if c == nil {
		return nil
	}
	if c.isOwn() && c.Workspace != space.None && own == nil {
		return refuse(RejectWorkspaceInvalid, "config.workspace: is not a manifest of the session")
	}
	of, bad := s.stackOf(st, c, own)
	if bad == nil {
		bad = configFault(of.registry, c, complete)
	}
	if bad == nil {
		bad = of.namesFault(c)
	}
	return bad
}

// namesFault checks a config's names against the stack's spaces.
func (st *stack) namesFault(c *RunConfig) *refusal {
	w := st.workspace()
	if c.PromptPack != "" && c.PromptPack != space.None && (w == nil || w.manifest.Prompt(c.PromptPack) == nil) {
		return refuse(RejectWorkspaceInvalid, "config.prompt_pack: "+w.lacks("prompt pack", c.PromptPack))
	}
	if c.ToolCatalog != "" && c.ToolCatalog != space.None && (w == nil || w.manifest.Catalog(c.ToolCatalog) == nil) {
		return refuse(RejectWorkspaceInvalid, "config.tool_catalog: "+w.lacks("catalog", c.ToolCatalog))
	}
	return st.skillsFault(c)
}

// lacks returns the detail for a name that a workspace, or none, does not have.
func (a *adopted) lacks(what, name string) string {
	if a == nil {
		return "no workspace is applied, and " + what + " " + quoted(name) + " is one's"
	}
	return "workspace " + quoted(a.Space) + " has no " + what + " " + quoted(name)
}
