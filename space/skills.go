package space

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Skill returns a skill by name, or nil.
func (m *Manifest) Skill(name string) *Skill {
	return find(m.Skills, func(s Skill) bool { return s.Skill == name })
}

// skillsHead begins the index of skills.
const skillsHead = "Skills. Before you do what a description is about, call skill_load with the skill's name and follow what it says."

// descriptionCuts are lengths to which the index cuts descriptions, in bytes: the
// first one that keeps the index within its limit is used. Names are never cut.
var descriptionCuts = [...]int{4 * SkillTextCharsMax, 256, 128, 0}

// ShownSkills returns the index of skills, one text for each space: a line "name:
// description" for each skill. All texts together have at most SkillIndexBytesMax
// bytes: to fit, descriptions are shortened and then left out.
func ShownSkills(spaces [][]*Skill) []string {
	var texts []string
	for _, most := range descriptionCuts {
		texts = shownSkills(spaces, most)
		size := 0
		for _, text := range texts {
			size += len(text) + len("\n\n")
		}
		if size <= SkillIndexBytesMax {
			break
		}
	}
	return texts
}

// shownSkills formats the index with descriptions of at most most bytes.
func shownSkills(spaces [][]*Skill, most int) []string {
	texts := make([]string, len(spaces))
	for i, skills := range spaces {
		var b strings.Builder
		if i == 0 {
			b.WriteString(skillsHead)
			b.WriteByte('\n')
		}
		for _, s := range skills {
			b.WriteString(s.Skill)
			if description := cutText(strings.Join(strings.Fields(s.Description), " "), most); description != "" {
				b.WriteString(": ")
				b.WriteString(description)
			}
			b.WriteByte('\n')
		}
		texts[i] = b.String()
	}
	return texts
}

func cutText(text string, max int) string {
	const more = "…"
	if len(text) <= max {
		return text
	}
	if max < len(more) {
		return ""
	}
	end := max - len(more)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.TrimRight(text[:end], " ") + more
}

// ShownSkill returns the text by which a model is shown a skill in its prompt.
func ShownSkill(name, body string) string {
	return "<skill name=\"" + attribute.Replace(name) + "\">\n" + strings.TrimSpace(body) + "\n</skill>"
}

// skillBytes is the size of the text around a skill's body, with the longest name.
const skillBytes = int64(len("<skill name=\"\">\n\n</skill>\n\n") + TokenBytesMax)

// WithSkills returns s with the index of skills, and with the texts of skills
// that a run's config names.
func (s Size) WithSkills(index [][]*Skill, bodies []*File) Size {
	s.Parts -= s.Skills // they count the limit of the index
	s.Bytes -= int64(s.Skills) * SkillIndexBytesMax
	s.Skills = len(index)
	for _, text := range ShownSkills(index) {
		s.Parts++
		s.Bytes += int64(len(text) + len("\n\n"))
	}
	for _, f := range bodies {
		s.Parts++
		s.Bytes += f.Size + skillBytes
	}
	return s
}

// Named returns the skills with these names, in their order. Unknown names are
// skipped.
func (m *Manifest) Named(names []string) []*Skill {
	skills := make([]*Skill, 0, len(names))
	for _, name := range names {
		if s := m.Skill(name); s != nil {
			skills = append(skills, s)
		}
	}
	return slices.Clip(skills)
}

// BodySuffix follows the path of a SKILL.md in the path of the file that holds
// its text without the frontmatter.
const BodySuffix = "#body"

// SkillPath returns the path of a skill's SKILL.md.
func (m *Manifest) SkillPath(s *Skill) string {
	return strings.TrimSuffix(m.Files[s.Body].Path, BodySuffix)
}

// SkillFile is one file of a skill.
type SkillFile struct {
	Path string // below the skill's folder
	*File
}

// SkillFiles returns the files of a skill: SKILL.md, without its frontmatter,
// then the others by path.
func (m *Manifest) SkillFiles(s *Skill) []SkillFile {
	top := m.SkillPath(s)
	folder := top[:strings.LastIndexByte(top, '/')+1]
	files := []SkillFile{{top[len(folder):], &m.Files[s.Body]}}
	for _, i := range s.Files {
		if name, ok := strings.CutPrefix(m.Files[i].Path, folder); ok {
			files = append(files, SkillFile{name, &m.Files[i]})
		}
	}
	return files
}
