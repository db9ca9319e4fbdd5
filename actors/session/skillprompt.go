package session

import (
	"path"
	"slices"
	"strconv"

	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// skillParts returns the skills of a prompt: an index for each space, then the
// bodies of those in the run's config.
func (s *State) skillParts(st *stack) (parts []PromptPart) {
	for i := range st.spaces {
		of := &st.spaces[i]
		var names []string
		for j := range of.manifest.Skills {
			if skill := &of.manifest.Skills[j]; !skill.Hidden && of.lacking(skill) == "" {
				names = append(names, skill.Skill)
			}
		}
		if names != nil {
			parts = append(parts, PromptPart{Names: names, Ref: of.Hash, Role: PromptSkills})
		}
	}
	for _, name := range s.Run.Config.Skills {
		if of, skill := st.skill(name); skill != nil && s.hasActive(of, name) {
			parts = append(parts, PromptPart{Input: s.Run.Seq, Names: []string{name}, Ref: of.manifest.Files[skill.Body].Ref.Hash, Role: PromptSkill})
		}
	}
	return parts
}

// promptSize is an upper bound of what a run with a config shows before the
// transcript, whichever skills are eligible. It counts prompt refs, but not their
// sizes.
func (st *stack) promptSize(c *RunConfig) (size space.Size) {
	var index [][]*space.Skill
	for i := range st.spaces {
		var listed []*space.Skill
		for j := range st.spaces[i].manifest.Skills {
			if skill := &st.spaces[i].manifest.Skills[j]; !skill.Hidden {
				listed = append(listed, skill)
			}
		}
		if listed != nil {
			index = append(index, listed)
		}
	}
	var bodies []*space.File
	for _, name := range c.Skills {
		if of, skill := st.skill(name); skill != nil {
			bodies = append(bodies, &of.manifest.Files[skill.Body])
		}
	}
	size = st.sizeOf(c).WithSkills(index, bodies)
	size.Parts += len(listOf(c.PromptRefs))
	return size
}

// skillsFault checks, under a stack, a config's skills and the size of what it
// shows before the transcript.
func (st *stack) skillsFault(c *RunConfig) *refusal {
	for i, name := range c.Skills {
		path := "config.skills[" + strconv.Itoa(i) + "]: "
		if slices.Contains(c.Skills[:i], name) {
			return refuse(RejectInvalidData, path+quoted(name)+" stands twice")
		}
		if _, skill := st.skill(name); skill == nil {
			return refuse(RejectWorkspaceInvalid, path+"no applied space has a skill "+quoted(name))
		}
	}
	if len(st.spaces) == 0 {
		return nil
	}
	if over := st.promptSize(c).Over(); over != "" {
		return refuse(RejectLimitExceeded, "config: "+over)
	}
	return nil
}

// skillProblems returns the skills of a space that other spaces of a stack have
// too, and whether all skills together are too many.
func (st *stack) skillProblems(a *adopted) (problems []space.Problem) {
	count := 0
	st.eachSkill(func(of *adopted, s *space.Skill) {
		count++
		if of.Space == a.Space {
			return
		}
		for i := range a.manifest.Skills {
			if a.manifest.Skills[i].Skill == s.Skill {
				problems = append(problems, space.Problem{
					Code: space.SkillTaken, Path: "skills[" + strconv.Itoa(i) + "].skill", Detail: "space " + of.Space + " has the skill " + s.Skill + " too",
				})
			}
		}
	})
	if count > space.SkillsMax && len(a.manifest.Skills) > 0 {
		problems = append(problems, space.Problem{
			Code: space.TooMany, Path: "skills", Detail: strconv.Itoa(count) + " skills in all applied spaces, at most " + strconv.Itoa(space.SkillsMax),
		})
	}
	return problems
}

// unknownAllowed returns a warning for each allowed-tools name that a registry has
// no tool for: it allows nothing.
func (a *adopted) unknownAllowed(registry *planner.Registry) (warnings []space.Problem) {
	for i := range a.manifest.Skills {
		skill := &a.manifest.Skills[i]
		for _, name := range skill.AllowedTools {
			if _, ok := allowedTool(registry, a.tool(registry, name)); !ok {
				warnings = append(warnings, space.Problem{
					Code: space.AllowedToolUnknown, File: a.manifest.SkillPath(skill), Path: "skills[" + strconv.Itoa(i) + "].allowed_tools",
					Detail: clip("skill "+skill.Skill+" allows "+quoted(name)+", which the registry does not have", DetailBytesMax),
				})
			}
		}
	}
	return warnings
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
	st.eachSkill(func(of *adopted, skill *space.Skill) {
		skills = append(skills, ViewSkill{Skill: skill.Skill, Space: of.Space, Active: s.hasActive(of, skill.Skill), Why: s.unusable(of, skill)})
	})
	for i := range st.spaces {
		of := &st.spaces[i]
		for _, l := range of.manifest.LeftOut {
			if name := path.Base(path.Dir(l.File)); space.IsSkillName(name) && len(skills) < space.SkillsMax {
				skills = append(skills, ViewSkill{Skill: name, Space: of.Space, Why: l.File + " is faulty (" + string(l.Code) + ") and was left out"})
			}
		}
	}
	return skills
}

func (r *Run) checkSkills(queued bool) bool {
	if len(r.Skills) > SkillsActiveMax || queued && len(r.Skills) > 0 {
		return false
	}
	for i, active := range r.Skills {
		if !space.IsSkillName(active.Name) || !space.IsSpaceName(active.Space, space.Workspace) || slices.Contains(r.Skills[:i], active) {
			return false
		}
	}
	return true
}
