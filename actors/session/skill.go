package session

import (
	"slices"
	"strings"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// ActiveSkill is a skill that is active until the run ends.
type ActiveSkill struct {
	Name  string `msgpack:"name"`
	Space string `msgpack:"space"`
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

// eachSkill calls fn with all skills of a stack: spaces in the order of
// composition, the skills of each by name.
func (st *stack) eachSkill(fn func(of *adopted, s *space.Skill)) {
	for i := range st.spaces {
		of := &st.spaces[i]
		for j := range of.manifest.Skills {
			fn(of, &of.manifest.Skills[j])
		}
	}
}

// skill returns the skill of a name, nil if there is none. Names are unique in a
// stack.
func (st *stack) skill(name string) (*adopted, *space.Skill) {
	for i := range st.spaces {
		if s := st.spaces[i].manifest.Skill(name); s != nil {
			return &st.spaces[i], s
		}
	}
	return nil, nil
}

// lacking returns the first unmet need of a skill, or "": then it is eligible.
func (a *adopted) lacking(s *space.Skill) string {
	for _, need := range s.Needs {
		if !strings.HasSuffix(need, "?") && slices.Contains(a.Lacks, need) {
			return need
		}
	}
	return ""
}

// hasActive reports whether a skill of a space is active in the active run.
func (s *State) hasActive(of *adopted, name string) bool {
	return s.Run != nil && slices.Contains(s.Run.Skills, ActiveSkill{Name: name, Space: of.Space})
}

// unusable returns why a model can't use a skill, or "".
func (s *State) unusable(of *adopted, skill *space.Skill) string {
	switch need := of.lacking(skill); {
	case need != "":
		return planner.Missing(need)
	case skill.Hidden && !s.hasActive(of, skill.Skill):
		return "only the config of a run can name it"
	}
	return ""
}

// hasSkills reports whether a stack has a skill that a model can use.
func (s *State) hasSkills(st *stack) (has bool) {
	st.eachSkill(func(of *adopted, skill *space.Skill) { has = has || s.unusable(of, skill) == "" })
	return has
}

// startSkills activates the skills in the active run's config, except those with an
// unmet need.
func (s *State) startSkills(st *stack) {
	for _, name := range s.Run.Config.Skills {
		if of, skill := st.skill(name); skill != nil && of.lacking(skill) == "" {
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
	of, skill := st.skill(skillNamed(c.Arguments))
	if skill == nil || s.hasActive(of, skill.Skill) || len(s.Run.Skills) >= SkillsActiveMax {
		return
	}
	s.Run.Skills, s.toolsMoved = append(s.Run.Skills, ActiveSkill{Name: skill.Skill, Space: of.Space}), true
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
		return planner.Rejection{Code: code, Detail: clip(detail, DetailBytesMax)}
	}
	name, st := skillNamed(arguments), s.turnStack()
	of, skill := st.skill(name)
	if skill == nil {
		return refused(planner.InvalidArguments, "there is no skill "+quoted(name)+"; there are: "+s.usableSkills(&st))
	}
	if why := s.unusable(of, skill); why != "" {
		return refused(planner.InvalidArguments, "the skill "+quoted(name)+" can't be used: "+why+"; there are: "+s.usableSkills(&st))
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
func (s *State) usableSkills(st *stack) string {
	var names []string
	st.eachSkill(func(of *adopted, skill *space.Skill) {
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
		of, skill := st.skill(active.Name)
		if skill == nil || of.Space != active.Space || skill.AllowedTools == nil {
			continue
		}
		var list []string
		for _, name := range skill.AllowedTools {
			if tool, ok := allowedTool(s.turnRegistry, of.tool(s.turnRegistry, name)); ok {
				list = append(list, s.turnRegistry.Tool(tool).ToolID)
			}
		}
		names, lists = append(names, skill.Skill), append(lists, list)
	}
	return names, lists
}

// foreignTools maps names that skills use for tools to tool_ids.
var foreignTools = map[string]string{
	"Bash": "host.exec", "Edit": "host.fs.edit_file", "Glob": "host.fs.glob", "Grep": "host.fs.grep", "Read": "host.fs.read_file", "Write": "host.fs.write_file",
}

// allowedTool finds a tool that allowed-tools names: by tool_id, by tool_name, or
// by a foreign name.
func allowedTool(registry *planner.Registry, name string) (planner.ToolIndex, bool) {
	if tool, ok := registry.Lookup(name); ok {
		return tool, true
	}
	return registry.Lookup(foreignTools[name])
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
	for i := range st.spaces {
		names = append(names, st.spaces[i].Space)
	}
	return names
}
