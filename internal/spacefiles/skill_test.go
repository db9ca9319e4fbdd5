package spacefiles_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/internal/spacefiles"
	"github.com/refold/refold/space"
)

const index = `{"v": 1, "skills": ["skills/x/SKILL.md"]}`

// TestSkills checks the problem that each SKILL.md has, if any.
func TestSkills(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"whole", "---\nname: x\ndescription: d\nlicense: MIT\ncompatibility: any\nuser-invocable: true\nargument-hint: N\nallowed-tools: [Read, Write]\ndisable-model-invocation: true\nmetadata: {author: me, openclaw: {requires: {anyBins: [a, b]}, always: false, primaryEnv: KEY}}\n---\nbody", ""},
		{"empty frontmatter", "---\n---\nA text.\n", ""},
		{"crlf", "---\r\nname: x\r\ndescription: d\r\n---\r\nbody\r\n", ""},
		{"none", "# X\n", "skills/x/SKILL.md:1: bad_frontmatter"},
		{"unclosed", "---\nname: x\n", "skills/x/SKILL.md:1: bad_frontmatter"},
		{"an anchor", "---\nname: &a x\ndescription: d\n---\n", "skills/x/SKILL.md:2: bad_frontmatter"},
		{"a tag", "---\nname: !!str x\ndescription: d\n---\n", "skills/x/SKILL.md:2: bad_frontmatter"},
		{"a key twice", "---\nname: x\nname: x\n---\nt", "skills/x/SKILL.md:3: bad_frontmatter"},
		{"capitals", "---\nname: X\ndescription: d\n---\n", "skills/x/SKILL.md:2: name: bad_name"},
		{"another folder's name", "---\ndescription: d\nname: y\n---\n", "skills/x/SKILL.md:3: name: name_mismatch"},
		{"1,025 characters", "---\nname: x\ndescription: " + strings.Repeat("ä", 1025) + "\n---\n", ""},
		{"1,024 characters", "---\nname: x\ndescription: " + strings.Repeat("ä", 1024) + "\n---\n", ""},
		{"a list where text belongs", "---\nname: [x]\n---\nt", "skills/x/SKILL.md:2: name: wrong_type"},
		{"no YAML", "---\nname: {x\n---\nt", "bad_frontmatter"},
		{"no description, no text", "---\nname: x\n---\n# Heading\n", "description: too_large"},
		{"long frontmatter", "---\n# " + strings.Repeat("x", 17<<10) + "\n---\nt", ""},
		{"long text", "---\nname: x\n---\n" + strings.Repeat("x", 129<<10), "too_large"},
		{"a need that is none", "---\nname: x\ndescription: d\nmetadata: {refold: {requires: {bins: ['a b']}}}\n---\n", "metadata: bad_name"},
		{"not UTF-8", "---\nname: x\n---\n\xff", "skills/x/SKILL.md:4: not_utf8"},
		{"billion laughs", "---\na: &a [x,x]\nb: &b [*a,*a]\n---\nt", ""}, // not read
		{"billion laughs of the name", "---\na: &a [x,x]\nname: [*a,*a]\n---\nt", "bad_frontmatter"},
	} {
		built := build(t, folder(map[string]string{"agent.workspace.json": index, "skills/x/SKILL.md": c.text}), spacefiles.Options{})
		switch {
		case c.want == "" && built.Manifest == nil:
			t.Errorf("%s: got %v, want none", c.name, built.Problems)
		case c.want != "" && !slices.ContainsFunc(built.Problems, func(p space.Problem) bool { return strings.Contains(p.String(), c.want) }):
			t.Errorf("%s: got %v, want %s", c.name, built.Problems, c.want)
		}
	}
}

func TestSkillsOfAFolder(t *testing.T) {
	t.Parallel()
	built := build(t, folder(map[string]string{
		"agent.workspace.json": `{"v": 1, "skills": ["skills/*/SKILL.md", "skills/x/SKILL.md", "other/SKILL.md"]}`,
		"skills/x/SKILL.md":    "---\nname: x\ndescription: d\nmodel: m\nmetadata: {refold: {requires: {bins: [gh], env: [TOKEN]}, always: true, os: [linux], emoji: x}}\n---\nbody",
		"skills/x/a/b.txt":     "b",
		"skills/x/z.bin":       "\x00\x01",
		"skills/xx/SKILL.md":   "---\nname: xx\ndescription: d\n---\nbody",
		"other/SKILL.md":       "---\ndescription: d\n---\n",
	}), spacefiles.Options{})
	m := built.Manifest
	if m == nil {
		t.Fatal(built.Problems)
	}
	var names []string
	for _, s := range m.Skills {
		names = append(names, s.Skill)
	}
	if want := []string{"other", "x", "xx"}; !slices.Equal(names, want) {
		t.Errorf("got skills %v, want %v", names, want)
	}
	x := m.Skills[1]
	if !slices.Equal(x.Needs, []string{"os:linux"}) || len(x.Files) != 2 || m.Files[x.Files[1]].MediaType != "application/octet-stream" {
		t.Errorf("got %+v", x)
	}
	if len(built.Warnings) != 2 || built.Warnings[0].Code != space.UnknownKey || built.Warnings[0].Line != 4 {
		t.Errorf("got warnings %v, want those of model and emoji", built.Warnings)
	}
}

// TestFaultySkillsOfAGlobAreLeftOut: with a glob or a scan, a space loads without
// its faulty skills and lists them; skills that an index names must be valid.
func TestFaultySkillsOfAGlobAreLeftOut(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"skills/good/SKILL.md":   "---\nname: good\ndescription: d\n---\nbody",
		"skills/other/SKILL.md":  "---\nname: renamed\ndescription: d\n---\nbody",
		"skills/same/SKILL.md":   "---\nname: renamed\ndescription: d\n---\nbody",
		"skills/long/SKILL.md":   "---\nname: long\ndescription: d\n---\n" + strings.Repeat("x", space.SkillBodyBytesMax+1),
		"skills/long/extra.txt":  "a file of a faulty skill",
		"skills/large/SKILL.md":  "---\ndescription: d\n---\nbody",
		"skills/large/a.txt":     "before it",
		"skills/large/model.bin": strings.Repeat("x", space.FileBytesMax+1),
		"skills/none/SKILL.md":   "# None\n",
	}
	want := []space.LeftOut{
		{Code: space.TooLarge, File: "skills/large/SKILL.md"}, {Code: space.TooLarge, File: "skills/long/SKILL.md"},
		{Code: space.BadFrontmatter, File: "skills/none/SKILL.md"}, {Code: space.Duplicate, File: "skills/same/SKILL.md"},
	}
	for name, index := range map[string]string{
		"scanned": "", "default": `{"v": 1}`, "glob": `{"v": 1, "skills": ["skills/*/SKILL.md"]}`,
		"named too": `{"v": 1, "skills": ["skills/*/SKILL.md", "skills/good/SKILL.md"]}`,
	} {
		all := maps.Clone(files)
		if index != "" {
			all["agent.workspace.json"] = index
		}
		built := build(t, folder(all), spacefiles.Options{})
		if built.Manifest == nil {
			t.Errorf("%s: got %v", name, built.Problems)
			continue
		}
		if m := built.Manifest; len(m.Skills) != 2 || m.Skills[0].Skill != "good" || m.Skills[1].Skill != "renamed" || len(m.Files) != 2 || !slices.Equal(m.LeftOut, want) {
			t.Errorf("%s: got skills %+v, files %v, left out %v", name, m.Skills, m.Files, m.LeftOut)
		}
		var said []string
		for _, w := range built.Warnings {
			said = append(said, w.String())
		}
		text := strings.Join(said, "\n")
		for _, line := range []string{
			"skills/long/SKILL.md:1: too_large: left out: the text has 131073 bytes", "skills/none/SKILL.md:1: bad_frontmatter: left out: ",
			"skills/other/SKILL.md:2: name: name_mismatch: ", "model.bin",
		} {
			if !strings.Contains(text, line) {
				t.Errorf("%s: no warning %q in\n%s", name, line, text)
			}
		}
	}
	for _, named := range []string{"long", "none", "other"} {
		all := maps.Clone(files)
		all["agent.workspace.json"] = `{"v": 1, "skills": ["skills/*/SKILL.md", "skills/` + named + `/SKILL.md"]}`
		if built := build(t, folder(all), spacefiles.Options{}); built.Manifest != nil {
			t.Errorf("%s is named by the index, and there is no problem", named)
		}
	}
}
