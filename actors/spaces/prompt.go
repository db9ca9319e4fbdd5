package spaces

import (
	"cmp"
	"slices"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/space"
)

// Choice is what a run's config chooses of its spaces.
type Choice struct {
	PromptPack  string       // empty: the one of the apply, else the manifest's default
	ToolCatalog string       // the same
	PromptRefs  *[]codec.Ref // replace a prompt pack; nil: there are none
	Skills      []string
}

// PromptPart is one part of a prompt, which is shown before the transcript.
type PromptPart struct {
	// Of a skill's text: the sequence of the item whose text is filled in for $ARGUMENTS,
	// $1 and so on.
	Input uint64 `msgpack:"input,omitempty" lim:"1.."`
	// Media type of an image.
	MediaType string `msgpack:"media_type,omitempty" lim:"..space.MediaTypeBytesMax"`
	// The path of a document or an image, or the names of skills.
	Names []string `msgpack:"names,omitempty" lim:"..space.SkillsMax,item=..space.PathBytesMax"`
	// The blob that holds it, named sha256-<hex>.
	Ref codec.Hash `msgpack:"ref"`
	// A message of user or assistant, a document, an image, an index of skills (ref is the
	// manifest of their space), or a skill's text; absent: system text, a template.
	Role PromptRole `msgpack:"role,omitempty"`
}

// PromptRole is what a part of a prompt is.
type PromptRole string

// The roles of parts.
const (
	PromptUser      PromptRole = "user"
	PromptAssistant PromptRole = "assistant"
	PromptDocument  PromptRole = "document"
	PromptImage     PromptRole = "image"
	PromptSkills    PromptRole = "skills" // the index of the skills in Names; Ref is their space's manifest
	PromptSkill     PromptRole = "skill"  // the text of the skill in Names
)

// UsedSpace is one space in the effect of a session tool.
type UsedSpace struct {
	// The session's clock when it was applied, Unix milliseconds.
	At int64 `msgpack:"at"`
	// Hash of its manifest, which is a blob.
	Hash codec.Hash `msgpack:"hash"`
	// Kind of the space.
	Kind space.Kind `msgpack:"kind"`
	// How its reader identified itself.
	Source string `msgpack:"source,omitempty" lim:"enum=factory|package|module"`
	Space  string `msgpack:"space" lim:"@space"`
	// Version of the manifest.
	Version string `msgpack:"version,omitempty" lim:"..space.VersionBytesMax"`
}

// Prompt returns the prompt pack of a run, nil if there is none: the config's, else the
// apply's, else the workspace's default. Prompt refs replace a pack.
func (st *Stack) Prompt(c Choice) *space.Prompt {
	w := st.Workspace()
	if w == nil || c.PromptRefs != nil || c.PromptPack == space.None {
		return nil
	}
	return w.Manifest.Prompt(cmp.Or(c.PromptPack, w.Prompt, w.defaults().PromptPack, space.Default))
}

// Catalog returns the base catalog of a run, nil if there is none. It is chosen like a
// prompt pack.
func (st *Stack) Catalog(c Choice) *space.Catalog {
	w := st.Workspace()
	if w == nil || c.ToolCatalog == space.None {
		return nil
	}
	return w.Manifest.Catalog(cmp.Or(c.ToolCatalog, w.Catalog, w.defaults().ToolCatalog, space.Default))
}

// defaults returns the manifest's defaults.
func (a *Adopted) defaults() space.Defaults {
	if a.Manifest.Defaults == nil {
		return space.Defaults{}
	}
	return *a.Manifest.Defaults
}

// CatalogBase returns the base of the workspace's catalog in the planner's form. The
// planner skips a tool that the registry lacks.
func (st *Stack) CatalogBase(c *space.Catalog) []string {
	w := st.Workspace()
	entries, _ := c.Entries()
	base := make([]string, 0, len(entries))
	for _, e := range entries {
		name := w.ToolIn(st.Registry, e.Tool)
		if e.Word != nil {
			ref, ok := st.Registry.WordRef(w.Space, *e.Word)
			if !ok {
				continue
			}
			name = ref.String()
		}
		base = append(base, name)
	}
	return base
}

// PromptParts returns the parts of all prompts, in order: text and documents of the
// workspace's prompt pack, then of packs; skills where one of these places them,
// else after these; then images, then messages.
func (st *Stack) PromptParts(c Choice, skills []PromptPart) []PromptPart {
	b := promptBuilder{skills: skills}
	if prompt := st.Prompt(c); prompt != nil {
		b.add(st.Workspace().Manifest, prompt)
	}
	for i := range st.Spaces {
		if p := st.Spaces[i].packPrompt(); p != nil {
			b.add(st.Spaces[i].Manifest, p)
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
			b.messages = append(b.messages, PromptPart{Ref: m.Files[*part.File].Ref.Hash, Role: PromptRole(part.Role)})
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

// FileOf returns the space and the file of a part of a prompt. An index of skills
// has no file.
func (st *Stack) FileOf(part *PromptPart) (*Adopted, *space.File) {
	for i := range st.Spaces {
		of := &st.Spaces[i]
		switch {
		case part.Role == PromptSkills && of.Hash == part.Ref:
			return of, nil
		case part.Role == PromptSkills, part.Role == PromptSkill && of.Manifest.Skill(part.Names[0]) == nil:
			continue
		}
		files := of.Manifest.Files
		for j := range files {
			if files[j].Ref.Hash == part.Ref {
				return of, &files[j]
			}
		}
	}
	return nil, nil
}

// packPrompt returns a pack's prompt, nil if a is no pack or has none.
func (a *Adopted) packPrompt() *space.Prompt {
	if a.Kind != space.Pack {
		return nil
	}
	return a.Manifest.Prompt(space.Default)
}

// Vars returns the names of the variables in the prompts of a run.
func (st *Stack) Vars(c Choice) []string { return st.sizeOf(c).Vars }

// sizeOf is an upper bound of the prompts' size in a run, with an index of skills of
// maximal size wherever a prompt has one.
func (st *Stack) sizeOf(c Choice) (size space.Size) {
	if p := st.Prompt(c); p != nil {
		size = st.Workspace().Manifest.SizeOf(p)
	}
	for i := range st.Spaces {
		if p := st.Spaces[i].packPrompt(); p != nil {
			size = size.Add(st.Spaces[i].Manifest.SizeOf(p))
		}
	}
	return size
}

// PromptSize is an upper bound of what a run shows before the transcript, whichever
// skills are eligible. It counts prompt refs, but not their sizes.
func (st *Stack) PromptSize(c Choice) (size space.Size) {
	var index [][]*space.Skill
	for i := range st.Spaces {
		var listed []*space.Skill
		for j := range st.Spaces[i].Manifest.Skills {
			if skill := &st.Spaces[i].Manifest.Skills[j]; !skill.Hidden {
				listed = append(listed, skill)
			}
		}
		if listed != nil {
			index = append(index, listed)
		}
	}
	var bodies []*space.File
	for _, name := range c.Skills {
		if of, skill := st.Skill(name); skill != nil {
			bodies = append(bodies, &of.Manifest.Files[skill.Body])
		}
	}
	size = st.sizeOf(c).WithSkills(index, bodies)
	if c.PromptRefs != nil {
		size.Parts += len(*c.PromptRefs)
	}
	return size
}

// EnterTurn records what spaces add to a turn that begins on a stack.
func (x *Spaces) EnterTurn(st *Stack, c Choice) {
	x.enter()
	t := &Turn{Tools: st.HasOwnTools()}
	for i := range st.Spaces {
		t.Pins = append(t.Pins, st.Spaces[i].Pin)
	}
	if p := st.Prompt(c); p != nil {
		t.Prompt = p.PromptPack
	}
	if catalog := st.Catalog(c); catalog != nil {
		t.Catalog = catalog.ToolCatalog
	}
	x.Turn = t
}

// ForgetPrompt drops what only the generation needs, once that is settled.
func (t *Turn) ForgetPrompt() {
	if t != nil {
		t.Parts, t.Vars = nil, nil
	}
}

// OwnLayer is the name of the layer of the session's own tools, and the prefix of their
// tool_ids.
const OwnLayer = "refold"

// UsedSpaces returns the spaces in a call's effect, by the layer of its tool: for
// the session's own tools all spaces of the turn, for a pack's the pack, for others
// none.
func (t *Turn) UsedSpaces(layer string) (used []UsedSpace) {
	if t == nil || layer == "" {
		return nil
	}
	for i := range t.Pins {
		if p := &t.Pins[i]; layer == OwnLayer || layer == p.Space {
			used = append(used, UsedSpace{At: p.At, Hash: p.Hash, Kind: p.Kind, Source: p.Source, Space: p.Space, Version: p.Version})
		}
	}
	return used
}
