package session

import (
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/space"
)

// ViewSpaces is the spaces in a view. It is empty in a session without a grant.
type ViewSpaces struct {
	// The applied one: `space`, `hash` (of its manifest), `version` (at most 64),
	// `prompt_pack` and `tool_catalog` (for a run that names none), `lacks` (at most 32).
	Workspace *ViewSpace `json:"workspace,omitempty"`
	// The applied ones, in the order in which they were requested: with `tools`, the
	// tool_ids of each.
	Packs []ViewSpace `json:"packs,omitempty" lim:"..spaces.PacksMax"`
	// Spaces that were read and can be applied, by name.
	Staged []ViewSpace `json:"staged,omitempty" lim:"..spaces.StagedMax"`
	// Spaces that wait for their boundary, in the order of their requests: a workspace and
	// packs.
	Pending []ViewSpace `json:"pending,omitempty" lim:"..spaces.PacksMax+1"`
	// Syncs that are open.
	Syncs []ViewSync `json:"syncs,omitempty" lim:"..spaces.SyncsMax"`
	// The skills of the applied spaces.
	Skills []ViewSkill `json:"skills,omitempty" lim:"..space.SkillsMax"`
}

// ViewSpace is one space of the session.
type ViewSpace struct {
	Space string `json:"space" lim:"@space"`
	// Hash of its manifest.
	Hash string `json:"hash" lim:"@hash"`
	// Version of the manifest.
	Version string `json:"version,omitempty" lim:"..space.VersionBytesMax"`
	// Mode of a pending space.
	Mode spaces.Mode `json:"mode,omitempty"`
	// The effective prompt pack; of a staged or pending space, the one chosen.
	PromptPack string `json:"prompt_pack,omitempty" lim:"any"`
	// As prompt_pack, for the catalog.
	ToolCatalog string `json:"tool_catalog,omitempty" lim:"any"`
	// Needs that are not met on the reader's machine.
	Lacks []string `json:"lacks,omitempty" lim:"..spaces.LacksMax,item=any"`
	// Of an applied pack: the tools of the pack.
	Tools []string `json:"tools,omitempty" lim:"item=@tool_id"`
}

// ViewSync is one open sync.
type ViewSync struct {
	// Its name.
	Effect string `json:"effect" lim:"@sync"`
	Space  string `json:"space" lim:"@space"`
	// Unix milliseconds.
	Deadline int64 `json:"deadline"`
}

// ViewPrompt is the latest turn's prompt, which is shown before the transcript.
type ViewPrompt struct {
	// Fingerprint (BLAKE2b-256) of what precedes the transcript.
	Mark string `json:"mark" lim:"@hash"`
	// The parts, until the generation is settled.
	Parts []ViewPromptPart `json:"parts,omitempty" lim:"..space.PartsMax"`
}

// ViewPromptPart is one part of a prompt.
type ViewPromptPart struct {
	// As in a Generation; absent: system text.
	Role spaces.PromptRole `json:"role,omitempty"`
	// The skills of an index of skills, or of a skill's text.
	Skills []string `json:"skills,omitempty" lim:"..space.SkillsMax,item=@skill"`
	// The space of the part. Absent: the part is one of the config's prompt_refs.
	Space string `json:"space,omitempty" lim:"any"`
	// Path of the file in the space.
	Path string `json:"path,omitempty" lim:"..space.PathBytesMax"`
	// Hash of the blob.
	Hash string `json:"hash" lim:"@hash"`
	// Size in bytes.
	Size int64 `json:"size,omitempty" lim:"0.."`
}

func (s *State) viewSpaces() (v ViewSpaces) {
	if s.Spaces == nil {
		return v
	}
	st := s.stack()
	if w := st.Workspace(); w != nil {
		workspace := s.viewSpace(&w.Pin)
		if p := st.Prompt(spaces.Choice{}); p != nil {
			workspace.PromptPack = p.PromptPack
		}
		if catalog := st.Catalog(spaces.Choice{}); catalog != nil {
			workspace.ToolCatalog = catalog.ToolCatalog
		}
		v.Workspace = &workspace
	}
	for i := range st.Spaces {
		if a := &st.Spaces[i]; a.Kind == space.Pack {
			pack := s.viewSpace(&a.Pin)
			for j := range a.Manifest.Tools {
				pack.Tools = append(pack.Tools, a.Manifest.Tools[j].ToolID)
			}
			v.Packs = append(v.Packs, pack)
		}
	}
	for i := range s.Spaces.Staged {
		v.Staged = append(v.Staged, s.viewSpace(&s.Spaces.Staged[i].Pin))
	}
	for i := range s.Spaces.Pending {
		pending := s.viewSpace(&s.Spaces.Pending[i].Pin)
		pending.Mode = s.Spaces.Pending[i].Mode
		v.Pending = append(v.Pending, pending)
	}
	for i := range s.Spaces.Syncs {
		o := &s.Spaces.Syncs[i]
		v.Syncs = append(v.Syncs, ViewSync{Effect: o.Name(), Space: o.Space, Deadline: o.Deadline})
	}
	v.Skills = s.viewSkills()
	return v
}

func (s *State) viewSpace(p *spaces.Pin) ViewSpace {
	return ViewSpace{Space: p.Space, Hash: p.Hash.String(), Version: p.Version, PromptPack: p.Prompt, ToolCatalog: p.Catalog, Lacks: p.Lacks}
}

// viewTurnSpace returns the workspace of the latest turn, with its run's prompt
// pack and catalog.
func (s *State) viewTurnSpace() *ViewSpace {
	t := s.turnSpace()
	if t == nil {
		return nil
	}
	st := s.turnStack()
	w := st.Workspace()
	if w == nil {
		return nil
	}
	v := s.viewSpace(&w.Pin)
	v.PromptPack, v.ToolCatalog = t.Prompt, t.Catalog
	return &v
}

func (s *State) viewPrompt() *ViewPrompt {
	t := s.turnSpace()
	if t == nil || t.Mark.IsZero() {
		return nil
	}
	v := &ViewPrompt{Mark: t.Mark.String()}
	st := s.turnStack()
	for _, part := range t.Parts {
		shown := ViewPromptPart{Role: part.Role, Hash: part.Ref.String()}
		if part.Role == spaces.PromptSkills || part.Role == spaces.PromptSkill {
			shown.Skills = part.Names
		}
		if a, f := st.FileOf(&part); a != nil {
			shown.Space = a.Space
			if f != nil {
				shown.Path, shown.Size = f.Path, f.Size
			}
		}
		v.Parts = append(v.Parts, shown)
	}
	return v
}
