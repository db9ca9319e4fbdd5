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

// chosenPrompt returns the prompt pack that a run of a config is shown, nil if
// there is none: the config's, else that of the apply, else the workspace's
// default. Prompt refs stand in place of a pack.
func (st *stack) chosenPrompt(c *RunConfig) (*adopted, *space.Prompt) {
	w := st.workspace()
	if w == nil || c.PromptRefs != nil || c.PromptPack == space.None {
		return nil, nil
	}
	name := cmp.Or(c.PromptPack, w.Prompt)
	if name == "" && w.manifest.Defaults != nil {
		name = w.manifest.Defaults.PromptPack
	}
	return w, w.manifest.Prompt(cmp.Or(name, space.Default))
}

// chosenCatalog returns the catalog that is the base of a run of a config, nil
// if there is none: chosen as a prompt pack is.
func (st *stack) chosenCatalog(c *RunConfig) (*adopted, *space.Catalog) {
	w := st.workspace()
	if w == nil || c.ToolCatalog == space.None {
		return nil, nil
	}
	name := cmp.Or(c.ToolCatalog, w.Catalog)
	if name == "" && w.manifest.Defaults != nil {
		name = w.manifest.Defaults.ToolCatalog
	}
	return w, w.manifest.Catalog(cmp.Or(name, space.Default))
}

// catalogBase returns the base of a catalog as the planner takes it. A tool that
// the registry lacks is passed over there.
func (st *stack) catalogBase(w *adopted, c *space.Catalog) []string {
	entries, _ := c.Entries()
	base := make([]string, 0, len(entries))
	for _, e := range entries {
		name := e.Tool
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

// enterTurn notes what spaces bring to the turn that begins. Of a session
// without any, and of a run without prompt refs, that is nothing.
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

// fixPrompt fixes what the model is shown before the transcript: parts,
// variables and their mark. They stay through failed attempts.
func (s *State) fixPrompt() {
	t := s.turnSpace()
	if t == nil {
		return
	}
	st, c := s.turnStack(), &s.Run.Config
	if c.PromptRefs != nil {
		for _, ref := range *c.PromptRefs {
			t.Parts = append(t.Parts, PromptPart{Ref: ref.Hash})
		}
	}
	if w, prompt := st.chosenPrompt(c); prompt != nil {
		t.Parts = w.parts(prompt)
		t.Vars = s.varsOf(w.manifest, prompt)
	}
	if len(t.Parts) > 0 {
		t.Mark = codec.Mark(encode(struct {
			Prompt []PromptPart `msgpack:"prompt"`
			System string       `msgpack:"system,omitempty"`
			Vars   codec.Pairs  `msgpack:"vars,omitempty"`
		}{t.Parts, s.system(), t.Vars}))
	}
}

// parts returns what a prompt pack shows, in order: system text and documents,
// then images, then messages.
func (a *adopted) parts(p *space.Prompt) (parts []PromptPart) {
	var images, messages []PromptPart
	m := a.manifest
	for i := range p.Parts {
		part := &p.Parts[i]
		switch {
		case part.File != nil && part.Role != "":
			messages = append(messages, PromptPart{Ref: m.Files[*part.File].Ref.Hash, Role: part.Role})
		case part.File != nil:
			parts = append(parts, PromptPart{Ref: m.Files[*part.File].Ref.Hash})
		case part.Context != "":
			for _, f := range m.Group(part.Context).Files {
				file := &m.Files[f]
				switch shown := (PromptPart{Names: []string{file.Path}, Ref: file.Ref.Hash}); {
				case file.IsImage():
					shown.Role, shown.MediaType = PromptImage, file.MediaType
					images = append(images, shown)
				case file.IsText():
					shown.Role = PromptDocument
					parts = append(parts, shown)
				}
			}
		}
	}
	return append(append(parts, images...), messages...)
}

// varsOf returns the values of the variables that a prompt pack uses.
func (s *State) varsOf(m *space.Manifest, p *space.Prompt) codec.Pairs {
	var vars codec.Pairs
	for _, name := range m.SizeOf(p).Vars {
		vars = append(vars, codec.Pair{Key: name, Value: codec.AppendString(nil, s.variable(name, m))})
	}
	return vars
}

// variable returns the value of a template's variable. A missing fact is the
// empty text.
func (s *State) variable(name string, m *space.Manifest) string {
	switch name {
	case space.VarSession:
		return s.Session
	case space.VarRun:
		return "r" + strconv.FormatUint(uint64(s.Run.Number), 10)
	case space.VarVersion:
		return m.Version
	}
	fact := strings.TrimPrefix(name, space.VarFact)
	if i := slices.IndexFunc(s.Facts, func(f planner.Fact) bool { return f.Name == fact }); i >= 0 {
		return s.Facts[i].Value
	}
	return ""
}

// promptBytes bounds what a run of a config is shown of a prompt pack, as
// budgets count it. What prompt refs name is known to the bridge alone.
func (st *stack) promptBytes(c *RunConfig) int64 {
	w, p := st.chosenPrompt(c)
	if p == nil {
		return 0
	}
	size := w.manifest.SizeOf(p)
	return size.Bytes + int64(size.Images)*ImageBytes
}

// forgetPrompt drops what only the generation needed, when it is settled.
func (t *TurnSpace) forgetPrompt() {
	if t != nil {
		t.Parts, t.Vars = nil, nil
	}
}

// usedSpaces returns what a session tool works on: the spaces of the turn.
func (t *TurnSpace) usedSpaces() []UsedSpace {
	if t == nil {
		return nil
	}
	used := make([]UsedSpace, len(t.Pins))
	for i := range t.Pins {
		p := &t.Pins[i]
		used[i] = UsedSpace{At: p.At, Hash: p.Hash, Kind: p.Kind, Source: p.Source, Space: p.Space, Version: p.Version}
	}
	return used
}

// showPrompt fills in what a generation shows before the transcript, and what a
// prompt pack says where the run's config says nothing.
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
	if len(g.ResponseFormat) == 0 {
		g.ResponseFormat = p.ResponseFormat
	}
}

// catalogChoice returns the tool_choice of the latest turn's catalog.
func (s *State) catalogChoice() string {
	st := s.turnStack()
	_, c := st.chosenCatalog(&s.Run.Config)
	if c == nil {
		return ""
	}
	return c.ToolChoice
}

// promptBytes bounds what the latest turn shows before the transcript, the
// system text excepted.
func (s *State) promptBytes() int64 {
	if s.turnSpace() == nil {
		return 0
	}
	st := s.turnStack()
	return st.promptBytes(&s.Run.Config)
}
