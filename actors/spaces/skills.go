package spaces

import (
	"slices"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// EachSkill calls fn with all skills of a stack: spaces in the order of
// composition, the skills of each by name.
func (st *Stack) EachSkill(fn func(of *Adopted, s *space.Skill)) {
	for i := range st.Spaces {
		of := &st.Spaces[i]
		for j := range of.Manifest.Skills {
			fn(of, &of.Manifest.Skills[j])
		}
	}
}

// Skill returns the skill of a name, nil if there is none. Names are unique in a
// stack.
func (st *Stack) Skill(name string) (*Adopted, *space.Skill) {
	for i := range st.Spaces {
		if s := st.Spaces[i].Manifest.Skill(name); s != nil {
			return &st.Spaces[i], s
		}
	}
	return nil, nil
}

// Lacking returns the first unmet need of a skill, or "": then it is eligible.
func (a *Adopted) Lacking(s *space.Skill) string {
	for _, need := range s.Needs {
		if !strings.HasSuffix(need, "?") && slices.Contains(a.Lacks, need) {
			return need
		}
	}
	return ""
}

// SkillIndex returns an index of the eligible skills of each space.
func (st *Stack) SkillIndex() (parts []PromptPart) {
	for i := range st.Spaces {
		of := &st.Spaces[i]
		var names []string
		for j := range of.Manifest.Skills {
			if skill := &of.Manifest.Skills[j]; !skill.Hidden && of.Lacking(skill) == "" {
				names = append(names, skill.Skill)
			}
		}
		if names != nil {
			parts = append(parts, PromptPart{Names: names, Ref: of.Hash, Role: PromptSkills})
		}
	}
	return parts
}

// skillProblems returns the skills of a space that other spaces of a stack have
// too, and whether all skills together are too many.
func (st *Stack) skillProblems(a *Adopted) (problems []space.Problem) {
	count := 0
	st.EachSkill(func(of *Adopted, s *space.Skill) {
		count++
		if of.Space == a.Space {
			return
		}
		for i := range a.Manifest.Skills {
			if a.Manifest.Skills[i].Skill == s.Skill {
				problems = append(problems, space.Problem{
					Code: space.SkillTaken, Path: "skills[" + strconv.Itoa(i) + "].skill", Detail: "space " + of.Space + " has the skill " + s.Skill + " too",
				})
			}
		}
	})
	if count > space.SkillsMax && len(a.Manifest.Skills) > 0 {
		problems = append(problems, space.Problem{
			Code: space.TooMany, Path: "skills", Detail: strconv.Itoa(count) + " skills in all applied spaces, at most " + strconv.Itoa(space.SkillsMax),
		})
	}
	return problems
}

// unknownAllowed returns a warning for each allowed-tools name that a registry has
// no tool for: it allows nothing.
func (a *Adopted) unknownAllowed(registry *planner.Registry) (warnings []space.Problem) {
	for i := range a.Manifest.Skills {
		skill := &a.Manifest.Skills[i]
		for _, name := range skill.AllowedTools {
			if _, ok := a.allowed(registry, name); !ok {
				warnings = append(warnings, space.Problem{
					Code: space.AllowedToolUnknown, File: a.Manifest.SkillPath(skill), Path: "skills[" + strconv.Itoa(i) + "].allowed_tools",
					Detail: sentence.Clip("skill "+skill.Skill+" allows "+sentence.Quoted(name)+", which the registry does not have", sentence.BytesMax),
				})
			}
		}
	}
	return warnings
}

// Allowed returns the tool_ids of a registry that a skill's allowed-tools names.
func (a *Adopted) Allowed(registry *planner.Registry, skill *space.Skill) (ids []string) {
	for _, name := range skill.AllowedTools {
		if tool, ok := a.allowed(registry, name); ok {
			ids = append(ids, registry.Tool(tool).ToolID)
		}
	}
	return ids
}

// foreignTools maps names that skills use for tools to tool_ids.
var foreignTools = map[string]string{
	"Bash": "host.exec", "Edit": "host.fs.edit_file", "Glob": "host.fs.glob", "Grep": "host.fs.grep", "Read": "host.fs.read_file", "Write": "host.fs.write_file",
}

// allowed finds a tool that allowed-tools names: by tool_id, by tool_name, or
// by a foreign name.
func (a *Adopted) allowed(registry *planner.Registry, name string) (planner.ToolIndex, bool) {
	name = a.ToolIn(registry, name)
	if tool, ok := registry.Lookup(name); ok {
		return tool, true
	}
	return registry.Lookup(foreignTools[name])
}
