package spacefiles

import (
	"cmp"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/refold/refold/space"
)

// readSkills reads the skills that an index names. If it names none, it reads
// those of the folder skills.
func (b *builder) readSkills(d document, n *node) {
	listed := n != nil
	if !listed {
		n = &node{kind: kindList, items: []*node{{kind: kindText, text: "skills/*/" + skillFile}}}
	}
	items := d.texts(n, "skills")
	isNamed := func(name string) bool {
		return slices.ContainsFunc(items, func(item *node) bool { return item.text == name })
	}
	seen, found := map[string]bool{}, []string(nil)
	var first location // of the first glob
	for i, item := range items {
		at, left := d.at(item, index("skills", i)), len(b.m.LeftOut)
		matched := b.matchSkills(item.text, at)
		if len(matched) == 0 && listed && len(b.m.LeftOut) == left {
			b.tellEmpty(item.text, at)
		}
		for _, name := range matched {
			switch {
			case !strings.EqualFold(path.Base(name), skillFile) || path.Dir(name) == ".":
				d.b.say(at.problem(space.BadName, "%q: a skill is the file %s of a folder", clip(name, 128), skillFile))
			case seen[name]:
			case isNamed(name):
				seen[name] = true
				b.readSkill(name, at, true)
			default:
				seen[name], found = true, append(found, name)
				first = cmp.Or(first, at)
			}
		}
	}
	slices.SortFunc(found, func(x, y string) int {
		return cmp.Or(cmp.Compare(path.Base(path.Dir(x)), path.Base(path.Dir(y))), cmp.Compare(x, y))
	})
	for i, name := range found {
		if len(b.m.Skills) >= space.SkillsMax {
			b.warnings = append(b.warnings, first.problem(space.TooMany, "the first %d skills by name are loaded, and %d are left out", space.SkillsMax, len(found)-i))
			for _, left := range found[i:] {
				b.leaveOut(space.TooMany, left)
			}
			break
		}
		b.trySkill(name, first)
	}
}

// matchSkills is match for files that define skills, in whatever case their name
// is. It reports links to folders that would be skills: they are not followed.
func (b *builder) matchSkills(pattern string, at location) []string {
	found := b.match(pattern, at)
	matches, ok := Glob(pattern)
	if !ok || path.Base(pattern) != skillFile || pattern == path.Clean(pattern) && !strings.ContainsAny(pattern, "*?[{\\") {
		return found
	}
	for _, name := range b.list() {
		dir, base := path.Split(name)
		switch {
		case base != skillFile && strings.EqualFold(base, skillFile) && matches(dir+skillFile) && !slices.Contains(found, dir+skillFile):
			found = append(found, name)
		case matches(name + "/" + skillFile):
			b.tellLink(name, "the skill "+path.Base(name))
		case matches(name + "/x/" + skillFile):
			b.tellLink(name, "all skills of this folder")
		}
	}
	return found
}

// tellLink reports a link where a folder of skills would be, and what it costs.
func (b *builder) tellLink(name, cost string) {
	p := space.Problem{File: name, Code: space.NotRegular, Detail: "it is a link to a folder, which is not followed: move the folder here"}
	if info, err := fs.Stat(b.fsys, name); err != nil {
		p.Code, p.Detail = codeOf(err), "it is a link that can't be followed: "+textOf(err)
	} else if !info.IsDir() {
		return // a file
	}
	p.Detail = "left out: " + cost + ": " + p.Detail
	b.warnings = append(b.warnings, p)
	b.leaveOut(p.Code, name+"/"+skillFile)
}

// leaveOut lists a skill that is left out, as far as a manifest lists them.
func (b *builder) leaveOut(code space.ProblemCode, file string) {
	if len(b.m.LeftOut) < space.LeftOutMax && !slices.ContainsFunc(b.m.LeftOut, func(l space.LeftOut) bool { return l.File == file }) {
		b.m.LeftOut = append(b.m.LeftOut, space.LeftOut{Code: code, File: file})
	}
}

// trySkill reads a SKILL.md that a glob found. A faulty one is left out, and
// its problems become warnings.
func (b *builder) trySkill(name string, at location) {
	problems, files, size := len(b.problems), len(b.m.Files), b.bytes
	b.readSkill(name, at, false)
	if len(b.problems) == problems {
		return
	}
	b.leaveOut(b.problems[problems].Code, name)
	b.demote(problems, "left out: ")
	b.bytes = size
	for _, f := range b.m.Files[files:] {
		delete(b.at, f.Path)
	}
	b.m.Files = b.m.Files[:files]
	b.m.Skills = slices.DeleteFunc(b.m.Skills, func(s space.Skill) bool { return s.Body >= files })
}
