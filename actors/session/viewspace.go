package session

import (
	"github.com/refold/refold/space"
)

// ViewSpaces is the spaces in a view. It is empty in a session without a grant.
type ViewSpaces struct {
	Workspace *ViewSpace  `json:"workspace,omitempty"` // the applied one
	Packs     []ViewSpace `json:"packs,omitempty"`     // applied, in the order of composition
	Staged    []ViewSpace `json:"staged,omitempty"`    // by name
	Pending   []ViewSpace `json:"pending,omitempty"`
	Syncs     []ViewSync  `json:"syncs,omitempty"` // that are open
	Skills    []ViewSkill `json:"skills,omitempty"`
}

// ViewSpace is one space of the session.
type ViewSpace struct {
	Space       string   `json:"space"`
	Hash        string   `json:"hash"` // SHA-256 of its manifest
	Version     string   `json:"version,omitempty"`
	Mode        string   `json:"mode,omitempty"`         // of a pending one
	PromptPack  string   `json:"prompt_pack,omitempty"`  // of a run whose config names none
	ToolCatalog string   `json:"tool_catalog,omitempty"` // the same
	Lacks       []string `json:"lacks,omitempty"`        // needs that are not met
	Tools       []string `json:"tools,omitempty"`        // tool_ids of an applied pack
}

// ViewSync is one open sync.
type ViewSync struct {
	Effect   string `json:"effect"`
	Space    string `json:"space"`
	Deadline int64  `json:"deadline"` // Unix ms
}

// ViewPrompt is the latest turn's prompt, which is shown before the transcript.
type ViewPrompt struct {
	Mark  string           `json:"mark"`            // fingerprint of system text, parts and variables
	Parts []ViewPromptPart `json:"parts,omitempty"` // until the generation is settled
}

// ViewPromptPart is one part of a prompt.
type ViewPromptPart struct {
	Role   string   `json:"role,omitempty"`   // empty: system text
	Skills []string `json:"skills,omitempty"` // skills that it shows
	Space  string   `json:"space,omitempty"`  // empty: a prompt ref
	Path   string   `json:"path,omitempty"`
	Hash   string   `json:"hash"` // SHA-256 of the blob
	Size   int64    `json:"size,omitempty"`
}

func (s *State) viewSpaces() (v ViewSpaces) {
	if s.Spaces == nil {
		return v
	}
	st := s.stack()
	if w := st.workspace(); w != nil {
		workspace := s.viewSpace(&w.SpacePin)
		c := &RunConfig{}
		if _, p := st.chosenPrompt(c); p != nil {
			workspace.PromptPack = p.PromptPack
		}
		if _, catalog := st.chosenCatalog(c); catalog != nil {
			workspace.ToolCatalog = catalog.ToolCatalog
		}
		v.Workspace = &workspace
	}
	for i := range st.spaces {
		if a := &st.spaces[i]; a.Kind == space.Pack {
			pack := s.viewSpace(&a.SpacePin)
			for j := range a.manifest.Tools {
				pack.Tools = append(pack.Tools, a.manifest.Tools[j].ToolID)
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
		v.Syncs = append(v.Syncs, ViewSync{Effect: o.name(), Space: o.Space, Deadline: o.Deadline})
	}
	v.Skills = s.viewSkills()
	return v
}

func (s *State) viewSpace(p *SpacePin) ViewSpace {
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
	w := st.workspace()
	if w == nil {
		return nil
	}
	v := s.viewSpace(&w.SpacePin)
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
		if part.Role == PromptSkills || part.Role == PromptSkill {
			shown.Skills = part.Names
		}
		if a, f := st.fileOf(&part); a != nil {
			shown.Space = a.Space
			if f != nil {
				shown.Path, shown.Size = f.Path, f.Size
			}
		}
		v.Parts = append(v.Parts, shown)
	}
	return v
}

// fileOf returns the space and the file of a part of a prompt. An index of skills
// has no file.
func (st *stack) fileOf(part *PromptPart) (*adopted, *space.File) {
	for i := range st.spaces {
		of := &st.spaces[i]
		switch {
		case part.Role == PromptSkills && of.Hash == part.Ref:
			return of, nil
		case part.Role == PromptSkills, part.Role == PromptSkill && of.manifest.Skill(part.Names[0]) == nil:
			continue
		}
		files := of.manifest.Files
		for j := range files {
			if files[j].Ref.Hash == part.Ref {
				return of, &files[j]
			}
		}
	}
	return nil, nil
}
