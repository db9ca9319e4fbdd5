package spacefiles_test

// Skills as other products have them: what is not read costs no skill, and what
// costs one names it.

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/internal/spacefiles"
	"github.com/refold/refold/space"
)

// TestForeignFrontmatter: every skill is loaded, with this description and this
// warning, if any.
func TestForeignFrontmatter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, description, warning string }{
		{"byte order mark", "\ufeff---\nname: x\ndescription: d\n---\nbody", "d", ""},
		{"byte order mark and crlf", "\ufeff---\r\nname: x\r\ndescription: >\r\n  d\r\n  e\r\nmetadata:\r\n  author: me\r\n---\r\nbody\r\n", "d e", ""},
		// https://code.claude.com/docs/en/skills: hints and lists of the frontmatter
		{"a hint in brackets", "---\nname: x\ndescription: d\nargument-hint: [issue-number]\n---\nbody", "d", ""},
		{"two hints in brackets", "---\nname: x\ndescription: d\nargument-hint: [file] [options]\n---\nbody", "d", ":4: argument-hint: bad_frontmatter: is no YAML, and read as text"},
		{"a colon in the description", "---\nname: x\ndescription: Use when: a test fails\n---\nbody", "Use when: a test fails", "description: bad_frontmatter"},
		{"a colon, and lines after it", "---\nname: x\ndescription: Use when: a\n  test fails\nlicense: MIT\n---\nbody", "Use when: a test fails", "description: bad_frontmatter"},
		{"lists where text belongs", "---\nname: x\ndescription: d\nlicense: [MIT, Apache-2.0]\ncompatibility:\n  - linux\n---\nbody", "d", ""},
		{"maps where text belongs", "---\nname: x\ndescription: d\ncompatibility: {os: [linux]}\nuser-invocable: {a: b}\n---\nbody", "d", "compatibility: wrong_type"},
		{"hooks and tags", "---\nname: x\ndescription: d\nhooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks: [{type: command}]\nmodel: opus\nmetadata:\n  tags: [a, b]\n  nested: {a: {b: c}}\n---\nbody", "d", "metadata.nested: wrong_type"},
		{"metadata of another kind", "---\nname: x\ndescription: d\nmetadata: none\n---\nbody", "d", "metadata: wrong_type"},
		{"needs that are none", "---\nname: x\ndescription: d\nmetadata: {openclaw: {requires: {bins: ['a b', 7], config: {x: y}}, os: linux}}\n---\nbody", "d", "metadata: bad_name: is not read"},
		{"tools of another kind", "---\nname: x\ndescription: d\nallowed-tools: {Bash: true}\ndisable-model-invocation: 'false'\n---\nbody", "d", "allowed-tools: wrong_type"},
		{"empty values", "---\nname: x\ndescription:\nlicense:\nallowed-tools:\n---\nThe text.\n", "The text.", "description: wrong_type"},
		{"a key twice", "---\nname: x\ndescription: d\nlicense: MIT\nlicense: MIT\n---\nbody", "d", "license: duplicate"},
		{"anchors", "---\nname: x\ndescription: d\ncommon: &c {a: b}\nother: *c\n---\nbody", "d", "common: unknown_key"},
		{"a template", "---\nname: x\ndescription: d\nargument-hint: {{file}}\nversion: @latest\n---\nbody", "d", "argument-hint: bad_frontmatter"},
		{"a long licence", "---\nname: x\ndescription: d\nlicense: " + strings.Repeat("x", 501) + "\n---\nbody", "d", "license: too_large: is not read"},
		// https://github.com/tech-leads-club/agent-skills/issues/52 and others: a long description
		{"a long description", "---\nname: x\ndescription: " + strings.Repeat("ä", 1025) + "\n---\nbody", strings.Repeat("ä", 1023) + "…", ":3: description: too_large: of the skill x has 1025 characters, and models are shown 1023"},
		{"a blank description", "---\nname: x\ndescription: '  '\n---\nThe text.", "The text.", ""},
		{"a long frontmatter", "---\nhooks: " + strings.Repeat("x", 17<<10) + "\nname: x\ndescription: d\nlicense: MIT\ndisable-model-invocation: true\n---\nbody", "d", ":1: too_large: the frontmatter has "},
		{"a longer description", "---\nname: x\ndescription: \"" + strings.Repeat("ä", 17<<10) + "\"\nlicense: MIT\n---\nbody", "\"" + strings.Repeat("ä", 1022) + "…", "description: too_large: of the skill x has "},
		{"many tools", "---\nname: x\ndescription: d\nallowed-tools: " + many("Tool%d ", 129) + "\n---\nbody", "d", ":4: allowed-tools: too_many: the skill x has 129 of them"},
		{"many needs", "---\nname: x\ndescription: d\nmetadata: {openclaw: {requires: {bins: [" + many("b%d, ", 33) + "]}}}\n---\nbody", "d", "metadata: too_many: the skill x has 33 needs"},
		{"a name in words", "---\nname: My Skill\ndescription: d\n---\nbody", "d", "name: bad_name"},
		{"a number as name", "---\nname: 7\ndescription: 1.5\n---\nbody", "1.5", "name: name_mismatch"},
	} {
		built := build(t, folder(map[string]string{"skills/x/SKILL.md": c.text}), spacefiles.Options{Space: "s"})
		if built.Manifest == nil || len(built.Manifest.Skills) != 1 || built.Manifest.Skills[0].Description != c.description {
			t.Errorf("%s: got %+v, %v, %v", c.name, built.Manifest, built.Problems, built.Warnings)
			continue
		}
		said := ""
		for _, w := range built.Warnings {
			said += w.String() + "\n"
		}
		if !strings.Contains(said, c.warning) || c.warning == "" && len(built.Warnings) > 1 { // one is of the missing index
			t.Errorf("%s: warned of\n%swant %q", c.name, said, c.warning)
		}
	}
}

// many returns n texts of a format with their number.
func many(format string, n int) string {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, format, i)
	}
	return all.String()
}

// TestBracketsStayInHints: a hint is for people, as its author wrote it.
func TestBracketsStayInHints(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"[issue-number]": "[issue-number]", "[file] [options]": "[file] [options]"} {
		m := mustBuild(t, folder(map[string]string{"skills/x/SKILL.md": "---\ndescription: d\nargument-hint: " + text + "\n---\nbody"}), spacefiles.Options{Space: "s"})
		if info := m.Skills[0].Info; len(info) != 1 || !strings.Contains(string(info[0].Value), want) {
			t.Errorf("%s: got %q", text, info)
		}
	}
}

// TestSkillFileInAnyCase: skill.md defines a skill, unless there is a SKILL.md.
func TestSkillFileInAnyCase(t *testing.T) {
	t.Parallel()
	files := map[string]string{"skills/a/skill.md": "---\ndescription: d\n---\nlower", "skills/b/Skill.MD": "---\ndescription: d\n---\nmixed", "skills/c/SKILL.md": "---\ndescription: d\n---\nupper", "skills/c/skill.md": "a file"}
	for name, index := range map[string]string{"scanned": "", "glob": `{"v": 1, "skills": ["skills/*/SKILL.md"]}`, "named": `{"v": 1, "skills": ["skills/a/skill.md", "skills/b/Skill.MD", "skills/c/SKILL.md"]}`} {
		delete(files, "agent.workspace.json")
		if index != "" {
			files["agent.workspace.json"] = index
		}
		m := mustBuild(t, folder(files), spacefiles.Options{Space: "s"})
		if len(m.Skills) != 3 || len(m.LeftOut) > 0 || len(m.Skills[2].Files) != 1 {
			t.Errorf("%s: got %+v, left out %v", name, m.Skills, m.LeftOut)
		}
	}
}

// TestAttackLinkedSkills: links to folders, in the space and out of it, are not
// followed, and named with the skill that they cost. A link out of a skill's
// folder costs that skill.
func TestAttackLinkedSkills(t *testing.T) {
	t.Parallel()
	outside, dir := t.TempDir(), t.TempDir()
	good := "---\ndescription: d\n---\nbody"
	write(t, outside, map[string]string{"far/SKILL.md": good, "secret.txt": "secret"})
	must(t, os.Mkdir(filepath.Join(dir, ".claude"), 0o755))
	write(t, dir, map[string]string{"skills/good/SKILL.md": good, "skills/leaks/SKILL.md": good, "shared/near/SKILL.md": good, "shared/data/a.txt": "a", "skills/holds/SKILL.md": good})
	for name, target := range map[string]string{
		"skills/near": "../shared/near", "skills/far": filepath.Join(outside, "far"), "skills/gone": "nowhere", ".claude/skills": "../shared",
		"skills/leaks/secret.txt": filepath.Join(outside, "secret.txt"), "skills/holds/data": "../../shared/data",
	} {
		must(t, os.Symlink(target, filepath.Join(dir, name)))
	}
	built, err := spacefiles.Read(t.Context(), openDir(dir), asSupport)
	must(t, err)
	if built.Manifest == nil {
		t.Fatal(built.Problems)
	}
	want := []space.LeftOut{
		{Code: space.NotRegular, File: ".claude/skills/SKILL.md"},
		{Code: space.PathEscapes, File: "skills/far/SKILL.md"}, {Code: space.MissingFile, File: "skills/gone/SKILL.md"},
		{Code: space.PathEscapes, File: "skills/leaks/SKILL.md"}, {Code: space.NotRegular, File: "skills/near/SKILL.md"},
	}
	if m := built.Manifest; len(m.Skills) != 2 || !slices.Equal(m.LeftOut, want) {
		t.Errorf("got %+v, left out %v, want %v", m.Skills, m.LeftOut, want)
	}
	said := ""
	for _, w := range built.Warnings {
		said += w.String() + "\n"
	}
	for _, line := range []string{
		".claude/skills: not_regular: left out: all skills of this folder: ", "skills/near: not_regular: left out: the skill near: it is a link to a folder", "skills/far: path_escapes: left out: the skill far: ",
		"skills/gone: missing_file: left out: the skill gone: ", `path_escapes: left out: "skills/leaks/secret.txt"`,
		"skills/holds/data: not_regular: it is a link to a folder, which is not followed: its files are not of the skill holds",
	} {
		if !strings.Contains(said, line) {
			t.Errorf("no warning %q in\n%s", line, said)
		}
	}
	if strings.Contains(said, outside) {
		t.Errorf("a path of this machine is named: %s", said)
	}
}

// TestMoreSkillsThanTheLimit: the first ones by name are loaded.
func TestMoreSkillsThanTheLimit(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("skills/s%03d/SKILL.md", 299-i)] = "---\ndescription: d\n---\nbody"
	}
	for name, index := range map[string]string{"scanned": "", "named too": `{"v": 1, "skills": ["skills/*/SKILL.md", "skills/s299/SKILL.md"]}`} {
		delete(files, "agent.workspace.json")
		if index != "" {
			files["agent.workspace.json"] = index
		}
		built := build(t, folder(files), spacefiles.Options{Space: "s"})
		m := built.Manifest
		if m == nil || len(m.Skills) != space.SkillsMax || m.Skills[0].Skill != "s000" || m.LeftOut[0].Code != space.TooMany {
			t.Fatalf("%s: got %v", name, built.Problems)
		}
		if last := m.Skills[space.SkillsMax-1].Skill; (last == "s127") == (index != "") || (last == "s299") != (index != "") {
			t.Errorf("%s: the last skill is %s", name, last)
		}
		want := fmt.Sprintf("the first %d skills by name are loaded, and %d are left out", space.SkillsMax, 300-space.SkillsMax)
		if index != "" {
			want = "are left out"
		}
		if !slices.ContainsFunc(built.Warnings, func(p space.Problem) bool {
			return p.Code == space.TooMany && strings.Contains(p.Detail, want)
		}) {
			t.Errorf("%s: warned of %v", name, built.Warnings)
		}
	}
	many := map[string]string{}
	for i := range 40 {
		for j := range 30 {
			many[fmt.Sprintf("skills/s%03d/f%d.txt", i, j)] = fmt.Sprint(i, j)
		}
		many[fmt.Sprintf("skills/s%03d/SKILL.md", i)] = "---\ndescription: d\n---\nbody"
	}
	if built := build(t, folder(many), spacefiles.Options{Space: "s"}); built.Manifest == nil || len(built.Manifest.Skills) != space.FilesMax/31 {
		t.Errorf("more files than the limit: got %v", built.Problems)
	}
}

// TestPublishedSkills: the frontmatter of published collections, which testdata
// records with their licences, loses no skill.
func TestPublishedSkills(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/skills.json")
	must(t, err)
	var collections []struct {
		Repository, Commit, Licence string
		Skills                      []struct{ Path, Front string }
	}
	must(t, json.Unmarshal(text, &collections))
	if len(collections) < 3 {
		t.Errorf("%d collections", len(collections))
	}
	for _, c := range collections {
		files := map[string]string{}
		for _, s := range c.Skills {
			files["skills/"+path.Base(path.Dir(s.Path))+"/SKILL.md"] = s.Front + "\n\nThe text.\n"
		}
		built := build(t, folder(files), spacefiles.Options{Space: "s"})
		if c.Licence == "" || len(c.Commit) != 40 || built.Manifest == nil || len(c.Skills) < 5 {
			t.Fatalf("%s: %v", c.Repository, built.Problems)
		}
		m := built.Manifest
		if len(m.Skills) != len(c.Skills) || len(m.LeftOut) > 0 {
			t.Errorf("%s (%s): got %v, %v, of %d skills", c.Repository, c.Licence, built.Problems, built.Warnings, len(c.Skills))
		}
	}
}
