package space_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/refold/refold/space"
)

// listed returns so many skills with descriptions of so many characters.
func listed(n, length int) []*space.Skill {
	skills := make([]*space.Skill, n)
	for i := range skills {
		name := fmt.Sprintf("s%03d-%s", i, strings.Repeat("n", space.TokenBytesMax-5))
		skills[i] = &space.Skill{Skill: name, Description: strings.Repeat("ä", length)}
	}
	return skills
}

// TestShownSkills: the index of skills is within its limit, descriptions are
// cut to one length, and names are never cut.
func TestShownSkills(t *testing.T) {
	t.Parallel()
	texts := space.ShownSkills([][]*space.Skill{{{Skill: "a", Description: "one\n  two"}, {Skill: "b", Description: "three"}}, {{Skill: "c", Description: "four"}}})
	if len(texts) != 2 || !strings.HasSuffix(texts[0], "\na: one two\nb: three\n") || texts[1] != "c: four\n" {
		t.Errorf("got %q", texts)
	}
	for _, c := range []struct{ skills, length, description int }{
		{7, 1024, 2048}, // whole
		{30, 1024, 255}, // cut to 256: 126 times two bytes, and three for the sign of the cut
		{70, 1024, 127}, // cut to 128
		{128, 1024, 0},  // left out
		{128, 20, 40},   // whole
		{20, 128, 256},  // whole, just not cut
		{128, 100, 0},   // between: 128 would not be enough
		{space.SkillsMax, 1, 2},
	} {
		texts := space.ShownSkills([][]*space.Skill{listed(c.skills, c.length)})
		if len(texts[0]) > space.SkillIndexBytesMax {
			t.Errorf("%d skills: %d bytes", c.skills, len(texts[0]))
		}
		lines := strings.Split(strings.TrimSpace(texts[0]), "\n")[1:]
		if len(lines) != c.skills {
			t.Errorf("%d skills: %d lines", c.skills, len(lines))
		}
		for _, line := range lines {
			name, description, _ := strings.Cut(line, ": ")
			if len(name) != space.TokenBytesMax || len(description) != c.description {
				t.Errorf("%d skills: %q has a description of %d bytes, want %d", c.skills, name, len(description), c.description)
				break
			}
		}
	}
}

// TestSkillFiles: a skill's files have paths below its folder, SKILL.md first.
func TestSkillFiles(t *testing.T) {
	t.Parallel()
	m := &space.Manifest{
		Files:  []space.File{{Path: "skills/x/SKILL.md#body"}, {Path: "skills/x/a/b.md"}, {Path: "skills/x/c.md"}},
		Skills: []space.Skill{{Skill: "x", Body: 0, Files: []int{1, 2}}},
	}
	got := ""
	for _, f := range m.SkillFiles(m.Skill("x")) {
		got += f.Path + " "
	}
	if want := "SKILL.md a/b.md c.md "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if m.Skill("y") != nil || len(m.Named([]string{"y", "x"})) != 1 {
		t.Error("a skill y is found")
	}
}
