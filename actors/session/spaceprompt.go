package session

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// chosenPrompt returns the prompt pack of a run with a config, nil if there is
// none: the config's, else the apply's, else the workspace's default. Prompt refs
// replace a pack.
func (st *stack) chosenPrompt(c *RunConfig) (*adopted, *space.Prompt) {
	w := st.workspace()
	if w == nil || c.PromptRefs != nil || c.PromptPack == space.None {
		return nil, nil
	}
	return w, w.manifest.Prompt(cmp.Or(c.PromptPack, w.Prompt, w.defaults().PromptPack, space.Default))
}

// chosenCatalog returns the base catalog of a run with a config, nil if there is
// none. It is chosen like a prompt pack.
func (st *stack) chosenCatalog(c *RunConfig) (*adopted, *space.Catalog) {
	w := st.workspace()
	if w == nil || c.ToolCatalog == space.None {
		return nil, nil
	}
	return w, w.manifest.Catalog(cmp.Or(c.ToolCatalog, w.Catalog, w.defaults().ToolCatalog, space.Default))
}

// defaults returns the manifest's defaults.
func (a *adopted) defaults() space.Defaults {
	if a.manifest.Defaults == nil {
		return space.Defaults{}
	}
	return *a.manifest.Defaults
}

// catalogBase returns the base of a catalog in the planner's form. The planner
// skips a tool that the registry lacks.
func (st *stack) catalogBase(w *adopted, c *space.Catalog) []string {
	entries, _ := c.Entries()
	base := make([]string, 0, len(entries))
	for _, e := range entries {
		name := w.tool(st.registry, e.Tool)
		if e.Word != nil {
			ref, ok := st.registry.WordRef(w.Space, *e.Word)
			if !ok {
				continue
			}
			name = ref.String()
		}
		base = append(base, name)
	}
	return base
}

// enterTurn records what spaces add to the turn that begins: nothing in a session
// without spaces, if the run has no prompt refs.
func (s *State) enterTurn(st *stack) {
	if s.Spaces != nil {
		s.Spaces.Turn = nil
	}
	if !st.tools && len(st.spaces) == 0 && s.Run.Config.PromptRefs == nil {
		return
	}
	s.enterSpaces()
	t := &TurnSpace{Tools: st.tools}
	for i := range st.spaces {
		t.Pins = append(t.Pins, st.spaces[i].SpacePin)
	}
	if _, p := st.chosenPrompt(&s.Run.Config); p != nil {
		t.Prompt = p.PromptPack
	}
	if _, c := st.chosenCatalog(&s.Run.Config); c != nil {
		t.Catalog = c.ToolCatalog
	}
	s.Spaces.Turn = t
}

// fixPrompt fixes the prompt of the latest turn: parts, variables and their mark.
// Failed attempts do not change it.
func (s *State) fixPrompt() {
	t := s.turnSpace()
	if t == nil {
		return
	}
	st, c := s.turnStack(), &s.Run.Config
	for _, ref := range listOf(c.PromptRefs) {
		t.Parts = append(t.Parts, PromptPart{Ref: ref.Hash})
	}
	t.Parts = append(t.Parts, st.promptParts(c, s.skillParts(&st))...)
	t.Vars = s.varsOf(&st, c)
	if len(t.Parts) > 0 {
		t.Mark = codec.Digest(encode(struct {
			Prompt []PromptPart `msgpack:"prompt"`
			System string       `msgpack:"system,omitempty"`
			Vars   codec.Pairs  `msgpack:"vars,omitempty"`
		}{t.Parts, s.system(), t.Vars}))
	}
}

// promptParts returns the parts of all prompts, in order: text and documents of the
// workspace's prompt pack, then of packs; skills where one of these places them,
// else after these; then images, then messages.
func (st *stack) promptParts(c *RunConfig, skills []PromptPart) []PromptPart {
	b := promptBuilder{skills: skills}
	if w, prompt := st.chosenPrompt(c); prompt != nil {
		b.add(w.manifest, prompt)
	}
	for i := range st.spaces {
		if p := st.spaces[i].packPrompt(); p != nil {
			b.add(st.spaces[i].manifest, p)
		}
	}
	return slices.Concat(b.texts, b.skills, b.images, b.messages)
}

// promptBuilder collects the parts of prompts.
type promptBuilder struct {
	texts, images, messages []PromptPart
	skills                  []PromptPart // not placed by a prompt yet
}

// add adds the parts of a prompt in m.
func (b *promptBuilder) add(m *space.Manifest, p *space.Prompt) {
	for i := range p.Parts {
		part := &p.Parts[i]
		switch {
		case part.File != nil && part.Role != "":
			b.messages = append(b.messages, PromptPart{Ref: m.Files[*part.File].Ref.Hash, Role: part.Role})
		case part.File != nil:
			b.texts = append(b.texts, PromptPart{Ref: m.Files[*part.File].Ref.Hash})
		case part.Skills:
			b.texts, b.skills = append(b.texts, b.skills...), nil
		case part.Context != "":
			b.addGroup(m, m.Group(part.Context))
		}
	}
}

// addGroup adds the documents and images of a context group.
func (b *promptBuilder) addGroup(m *space.Manifest, g *space.Group) {
	for _, f := range g.Files {
		file := &m.Files[f]
		switch shown := (PromptPart{Names: []string{file.Path}, Ref: file.Ref.Hash}); {
		case file.IsMedia():
			shown.Role, shown.MediaType = PromptImage, file.MediaType
			b.images = append(b.images, shown)
		case file.IsText():
			shown.Role = PromptDocument
			b.texts = append(b.texts, shown)
		}
	}
}

// packPrompt returns a pack's prompt, nil if a is no pack or has none.
func (a *adopted) packPrompt() *space.Prompt {
	if a.Kind != space.Pack {
		return nil
	}
	return a.manifest.Prompt(space.Default)
}

func (st *stack) packs() (n int) {
	for i := range st.spaces {
		if st.spaces[i].Kind == space.Pack {
			n++
		}
	}
	return n
}

// sizeOf is an upper bound of the prompts' size in a run with a config, with an
// index of skills of maximal size wherever a prompt has one.
func (st *stack) sizeOf(c *RunConfig) (size space.Size) {
	if w, p := st.chosenPrompt(c); p != nil {
		size = w.manifest.SizeOf(p)
	}
	for i := range st.spaces {
		if p := st.spaces[i].packPrompt(); p != nil {
			size = size.Add(st.spaces[i].manifest.SizeOf(p))
		}
	}
	return size
}

// varsOf returns the values of the variables in a run with a config.
func (s *State) varsOf(st *stack, c *RunConfig) codec.Pairs {
	var vars codec.Pairs
	for _, name := range st.sizeOf(c).Vars {
		vars = append(vars, codec.Pair{Key: name, Value: codec.AppendString(nil, s.variable(name, st.workspace()))})
	}
	return vars
}

// variable returns the value of a template's variable, under workspace w. The value
// of a missing fact is "".
func (s *State) variable(name string, w *adopted) string {
	switch name {
	case space.VarSession:
		return s.Session
	case space.VarRun:
		return "r" + strconv.FormatUint(uint64(s.Run.Number), 10)
	case space.VarVersion: // no pack uses it
		return w.Version
	}
	fact := strings.TrimPrefix(name, space.VarFact)
	if i := slices.IndexFunc(s.Facts, func(f planner.Fact) bool { return f.Name == fact }); i >= 0 {
		return s.Facts[i].Value
	}
	return ""
}

// promptBytes is promptSize in the unit of budgets.
func (st *stack) promptBytes(c *RunConfig) int64 {
	size := st.promptSize(c)
	return size.Bytes + int64(size.Images)*ImageBytes
}

// forgetPrompt drops what only the generation needs, once that is settled.
func (t *TurnSpace) forgetPrompt() {
	if t != nil {
		t.Parts, t.Vars = nil, nil
	}
}

// usedSpaces returns the spaces in a call's effect, by the layer of its tool: for
// the session's own tools all spaces of the turn, for a pack's the pack, for others
// none.
func (t *TurnSpace) usedSpaces(layer string) (used []UsedSpace) {
	if t == nil || layer == "" {
		return nil
	}
	for i := range t.Pins {
		if p := &t.Pins[i]; layer == reservedLayer || layer == p.Space {
			used = append(used, UsedSpace{At: p.At, Hash: p.Hash, Kind: p.Kind, Source: p.Source, Space: p.Space, Version: p.Version})
		}
	}
	return used
}

// showPrompt fills in a generation's prompt, and the prompt pack's settings that
// the run's config does not have.
func (s *State) showPrompt(g *Generation) {
	t := s.turnSpace()
	if t == nil {
		return
	}
	g.Prompt, g.Vars = t.Parts, t.Vars
	if len(g.Prompt) > 0 {
		g.PromptMark = &t.Mark
	}
	st := s.turnStack()
	_, p := st.chosenPrompt(&s.Run.Config)
	if p == nil {
		return
	}
	if len(g.Params) == 0 {
		g.Params = p.Params
	}
}

// ResponseFormat returns the form that answers of the latest turn must have, a
// ResponseFormat: the run's, else the prompt pack's. It is empty if neither has one.
func (s *State) ResponseFormat() codec.Raw {
	own := s.Run.Config.ResponseFormat
	if len(own) > 0 || s.turnSpace() == nil {
		return own
	}
	st := s.turnStack()
	if _, p := st.chosenPrompt(&s.Run.Config); p != nil {
		return p.ResponseFormat
	}
	return nil
}

// catalogChoice returns the tool_choice of the latest turn's catalog.
func (s *State) catalogChoice() string {
	st := s.turnStack()
	w, c := st.chosenCatalog(&s.Run.Config)
	if c == nil {
		return ""
	}
	return w.tool(st.registry, c.ToolChoice)
}

// promptBytes is an upper bound of the latest turn's prompt, without the system
// text.
func (s *State) promptBytes() int64 {
	if s.turnSpace() == nil {
		return 0
	}
	st := s.turnStack()
	return st.promptBytes(&s.Run.Config)
}
