package session

import (
	"path"
	"slices"
	"strings"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// ActiveSkill is a skill that is active until the run ends.
type ActiveSkill struct {
	Name     string `msgpack:"name"`
	Prompted bool   `msgpack:"prompted,omitempty"` // its text left the window, and is in the prompt
	Seq      uint64 `msgpack:"seq,omitempty"`      // of the event with its text, in a session with a window
	Space    string `msgpack:"space"`
}

// The values of Policy.Skills: the effect of an active skill's allowed-tools.
const (
	SkillsNarrow = "narrow" // the default, also when empty
	SkillsIgnore = "ignore"
)

// The tools of skills.
const (
	toolSkillLoad   = "refold.skill.load"
	skillToolPrefix = "refold.skill."
)

// hasActive reports whether a skill of a space is active in the active run.
func (s *State) hasActive(of *spaces.Adopted, name string) bool {
	return s.Run != nil && slices.ContainsFunc(s.Run.Skills, func(a ActiveSkill) bool { return a.Name == name && a.Space == of.Space })
}

// unusable returns why a model can't use a skill, or "".
func (s *State) unusable(of *spaces.Adopted, skill *space.Skill) string {
	switch need := of.Lacking(skill); {
	case need != "":
		return planner.Missing(need)
	case skill.Hidden && !s.hasActive(of, skill.Skill):
		return "only the config of a run can name it"
	}
	return ""
}

// hasSkills reports whether a stack has a skill that a model can use.
func (s *State) hasSkills(st *spaces.Stack) (has bool) {
	st.EachSkill(func(of *spaces.Adopted, skill *space.Skill) { has = has || s.unusable(of, skill) == "" })
	return has
}

// startSkills activates the skills in the active run's config, except those with an
// unmet need.
func (s *State) startSkills(st *spaces.Stack) {
	for _, name := range s.Run.Config.Skills {
		if of, skill := st.Skill(name); skill != nil && of.Lacking(skill) == "" {
			s.Run.Skills = append(s.Run.Skills, ActiveSkill{Name: name, Space: of.Space})
		}
	}
}

// skillLoaded activates the skill that call i loaded.
func (s *State) skillLoaded(i int, status string) {
	c := &s.Turn.Batch.Calls[i]
	if c.ToolID != toolSkillLoad || CallStatus(status) != CallSucceeded || s.Run == nil {
		return
	}
	st := s.turnStack()
	of, skill := st.Skill(skillNamed(c.Arguments))
	if skill == nil || s.hasActive(of, skill.Skill) || len(s.Run.Skills) >= SkillsActiveMax {
		return
	}
	active := ActiveSkill{Name: skill.Skill, Space: of.Space}
	if s.Window != nil {
		active.Seq = s.Seq
	}
	s.Run.Skills, s.toolsMoved = append(s.Run.Skills, active), true
}

// skillNamed returns the skill that a session tool's arguments name.
func skillNamed(arguments string) (name string) {
	raw, err := codec.FromJSON([]byte(arguments))
	if err != nil {
		return ""
	}
	if field, ok := fieldOf(raw, "skill"); !ok || codec.Unmarshal(field, &name) != nil {
		return ""
	}
	return name
}

// skillFault returns why a call may not use the skill that it names. loading has
// the skills that earlier calls of the batch load; a call that may load another one
// adds it.
func (s *State) skillFault(toolID, arguments string, loading *[]string) planner.Rejection {
	if !strings.HasPrefix(toolID, skillToolPrefix) {
		return planner.Rejection{}
	}
	refused := func(code planner.Code, detail string) planner.Rejection {
		return planner.Rejection{Code: code, Detail: sentence.Clip(detail, DetailBytesMax)}
	}
	name, st := skillNamed(arguments), s.turnStack()
	of, skill := st.Skill(name)
	if skill == nil {
		return refused(planner.InvalidArguments, "there is no skill "+sentence.Quoted(name)+"; there are: "+s.usableSkills(&st))
	}
	if why := s.unusable(of, skill); why != "" {
		return refused(planner.InvalidArguments, "the skill "+sentence.Quoted(name)+" can't be used: "+why+"; there are: "+s.usableSkills(&st))
	}
	if toolID != toolSkillLoad || s.hasActive(of, name) || slices.Contains(*loading, name) {
		return planner.Rejection{}
	}
	if len(s.Run.Skills)+len(*loading) >= SkillsActiveMax {
		return refused(CodeLimitExceeded, "at most 16 skills are active in a run")
	}
	*loading = append(*loading, name)
	return planner.Rejection{}
}

// usableSkills returns the names of the skills that a model can use.
func (s *State) usableSkills(st *spaces.Stack) string {
	var names []string
	st.EachSkill(func(of *spaces.Adopted, skill *space.Skill) {
		if s.unusable(of, skill) == "" {
			names = append(names, skill.Skill)
		}
	})
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// otherSkillsLoading returns the skills that the batch's calls except c load.
func (s *State) otherSkillsLoading(c *Call) (loading []string) {
	calls := s.Turn.Batch.Calls
	for i := range calls {
		if o := &calls[i]; o != c && o.ToolID == toolSkillLoad && !o.done() {
			if name := skillNamed(o.Arguments); !slices.ContainsFunc(s.Run.Skills, func(a ActiveSkill) bool { return a.Name == name }) && !slices.Contains(loading, name) {
				loading = append(loading, name)
			}
		}
	}
	return loading
}

// narrowing returns the active run's skills that have an allowed-tools list, and
// these lists as tool_ids.
func (s *State) narrowing() (names []string, lists [][]string) {
	if len(s.Run.Skills) == 0 || s.install.Record.Policy.Skills == SkillsIgnore {
		return nil, nil
	}
	st := s.turnStack()
	for _, active := range s.Run.Skills {
		of, skill := st.Skill(active.Name)
		if skill == nil || of.Space != active.Space || skill.AllowedTools == nil {
			continue
		}
		names, lists = append(names, skill.Skill), append(lists, of.Allowed(s.turnRegistry, skill))
	}
	return names, lists
}

// activeNames returns the names of the active run's skills, for conditions.
func (s *State) activeNames() (names []string) {
	for _, active := range s.Run.Skills {
		names = append(names, active.Name)
	}
	return names
}

// appliedNames returns the names of the active run's spaces, for conditions.
func (s *State) appliedNames() (names []string) {
	if s.Spaces == nil {
		return nil
	}
	st := s.runStack()
	for i := range st.Spaces {
		names = append(names, st.Spaces[i].Space)
	}
	return names
}

// skillParts returns the skills of a prompt: an index for each space, then the
// bodies of those in the run's config.
func (s *State) skillParts(st *spaces.Stack) []spaces.PromptPart {
	parts, names := st.SkillIndex(), s.Run.Config.Skills
	for _, active := range s.Run.Skills {
		if active.Prompted {
			names = append(slices.Clip(names), active.Name)
		}
	}
	for _, name := range names {
		if of, skill := st.Skill(name); skill != nil && s.hasActive(of, name) {
			parts = append(parts, spaces.PromptPart{Input: s.Run.Seq, Names: []string{name}, Ref: of.Manifest.Files[skill.Body].Ref.Hash, Role: spaces.PromptSkill})
		}
	}
	return parts
}

// ViewSkill is one skill of the applied spaces.
type ViewSkill struct {
	Skill string `json:"skill" lim:"@skill"`
	Space string `json:"space" lim:"@space"`
	// Whether the skill is active in the active run.
	Active bool `json:"active"`
	// Why a model can't use it; absent: it can.
	Why string `json:"why,omitempty" lim:"any"`
}

// viewSkills returns the skills of the active run, or else of the next one, by
// name.
func (s *State) viewSkills() (skills []ViewSkill) {
	if s.Spaces == nil {
		return nil
	}
	st := s.runStack()
	st.EachSkill(func(of *spaces.Adopted, skill *space.Skill) {
		skills = append(skills, ViewSkill{Skill: skill.Skill, Space: of.Space, Active: s.hasActive(of, skill.Skill), Why: s.unusable(of, skill)})
	})
	for i := range st.Spaces {
		of := &st.Spaces[i]
		for _, l := range of.Manifest.LeftOut {
			if name := path.Base(path.Dir(l.File)); space.IsSkillName(name) && len(skills) < space.SkillsMax {
				skills = append(skills, ViewSkill{Skill: name, Space: of.Space, Why: l.File + " is faulty (" + string(l.Code) + ") and was left out"})
			}
		}
	}
	return skills
}

func (r *Run) skillsInvariant(queued bool, seq uint64) bool {
	if len(r.Skills) > SkillsActiveMax || queued && len(r.Skills) > 0 {
		return false
	}
	for i, active := range r.Skills {
		if active.Seq > seq || active.Prompted && active.Seq == 0 || !space.IsSkillName(active.Name) || !space.IsSpaceName(active.Space, space.Workspace) || slices.Contains(r.Skills[:i], active) {
			return false
		}
	}
	return true
}
