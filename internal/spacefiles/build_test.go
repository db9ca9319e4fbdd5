package spacefiles_test

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/spacefiles"
	"github.com/refold/refold/space"
)

const png = "\x89PNG\r\n\x1a\n0123456789"

// support is a folder with everything that a workspace may have.
func support() map[string]string {
	return map[string]string{
		"agent.workspace.json": `{
  "$schema": "https://example.com/schema.json",
  "v": 1, "name": "support", "version": "1.4.2", "description": "Support agents.",
  "prompts": {
    "default": "prompts/packs/default.json",
    "short": "prompts/short.md",
    "chat": "prompts/packs/chat.json"
  },
  "tools": {"default": "tools/catalogs/default.json", "one": "tools/catalogs/one.json"},
  "context": {"docs": ["docs/**/*.md", "docs/plan.png"]}
}`,
		"prompts/packs/default.json": `{"parts": [
  "prompts/base.md",
  {"context": "docs"},
  {"skills": true},
  {"text": "Region: {{fact.region}}."}
 ], "params": {"temperature": 0}}`,
		"prompts/packs/chat.json":     `[{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}, {"role": "assistant", "content": [{"type": "text", "text": "Hello"}]}]`,
		"prompts/base.md":             "You are {{session}}.\n",
		"prompts/short.md":            "Short.\n",
		"tools/catalogs/default.json": `{"tools": ["crm.lookup", {"descriptor": "tools/shell.json"}, {"type": "function", "function": {"name": "read_file", "description": "Read.", "parameters": {"type": "object"}}}], "tool_choice": "auto"}`,
		"tools/catalogs/one.json":     `{"name": "crm.lookup", "description": "Look a customer up."}`,
		"tools/shell.json":            `{"name": "shell", "description": "Run.", "input_schema": {"type": "object"}}`,
		"docs/a.md":                   "A\n",
		"docs/deep/b.md":              "B\n",
		"docs/plan.png":               png,
		"skills/refunds/SKILL.md":     "---\nname: refunds\ndescription: How to refund.\nallowed-tools: Read, Bash(git add:*)\nmetadata:\n  version: 1.0\n  refold:\n    requires: {bins: [gh], env: [TOKEN]}\n    os: [linux, darwin]\n---\n# Refunds\n",
		"skills/refunds/run.sh":       "#!/bin/sh\n",
		"unused.md":                   "nobody names this",
	}
}

func folder(files map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, content := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return fsys
}

func build(t testing.TB, fsys fs.FS, o spacefiles.Options) spacefiles.Built {
	t.Helper()
	o.Space = cmp.Or(o.Space, "support")
	built, err := spacefiles.Read(context.Background(), func(context.Context) (fs.FS, error) { return fsys, nil }, func() spacefiles.Options { return o })
	must(t, err)
	return built
}

func mustBuild(t testing.TB, fsys fs.FS, o spacefiles.Options) *space.Manifest {
	t.Helper()
	built := build(t, fsys, o)
	if built.Manifest == nil {
		t.Fatalf("got problems: %v", built.Problems)
	}
	return built.Manifest
}

func TestBuildReadsAFolder(t *testing.T) {
	t.Parallel()
	built := build(t, folder(support()), spacefiles.Options{})
	m := built.Manifest
	if m == nil {
		t.Fatalf("got problems: %v", built.Problems)
	}
	var paths []string
	for _, f := range m.Files {
		paths = append(paths, f.Path+" "+f.MediaType)
		content, ok := built.Files[f.Ref]
		if !ok || codec.RefOf(content) != f.Ref || int64(len(content)) != f.Size {
			t.Errorf("%s: the content is not what the manifest says", f.Path)
		}
	}
	want := []string{
		"docs/a.md text/markdown", "docs/deep/b.md text/markdown", "docs/plan.png image/png", "prompts/base.md text/markdown",
		"prompts/packs/chat.json#0 text/plain", "prompts/packs/chat.json#1 text/plain", "prompts/packs/chat.json#2 text/plain",
		"prompts/packs/default.json#3 text/plain", "prompts/short.md text/markdown",
		"skills/refunds/SKILL.md#body text/plain", "skills/refunds/run.sh text/plain",
	}
	if !slices.Equal(paths, want) {
		t.Errorf("got files %q, want %q", paths, want)
	}
	if d := m.Defaults; d == nil || d.PromptPack != "default" || d.ToolCatalog != "default" {
		t.Errorf("got defaults %+v", d)
	}
	entries, _ := m.Catalog("default").Entries()
	if len(entries) != 3 || entries[0].Tool != "crm.lookup" || m.Words[*entries[1].Word].Tool != "shell" || m.Words[*entries[2].Word].Description != "Read." {
		t.Errorf("got entries %+v of words %+v", entries, m.Words)
	}
	s := m.Skills[0]
	if !slices.Equal(s.AllowedTools, []string{"Bash", "Read"}) || !slices.Equal(s.Needs, []string{"bin:gh", "env:TOKEN", "os:darwin|linux"}) || len(s.Info) != 1 {
		t.Errorf("got skill %+v", s)
	}
	if string(built.Files[m.Files[s.Body].Ref]) != "# Refunds\n" {
		t.Error("the skill's body is not the text after the frontmatter")
	}
	if chat := m.Prompt("chat").Parts; chat[0].Role != "" || chat[1].Role != "user" || chat[2].Role != "assistant" {
		t.Errorf("got messages %+v", chat)
	}
}

// TestManifestsDependOnContentAlone: unnamed files, another order of the index,
// and globs instead of paths give the same hash.
func TestManifestsDependOnContentAlone(t *testing.T) {
	t.Parallel()
	want := mustBuild(t, folder(support()), spacefiles.Options{}).Hash()
	for name, change := range map[string]func(map[string]string){
		"an unused file changes": func(f map[string]string) { f["unused.md"] = "other" },
		"paths for globs": func(f map[string]string) {
			f["agent.workspace.json"] = strings.Replace(f["agent.workspace.json"], `["docs/**/*.md", "docs/plan.png"]`, `["docs/plan.png", "docs/deep/b.md", "docs/a.md"]`, 1)
		},
		"skills are named": func(f map[string]string) {
			f["agent.workspace.json"] = strings.Replace(f["agent.workspace.json"], `"v": 1,`, `"v": 1, "skills": ["skills/refunds/SKILL.md"],`, 1)
		},
		"the index is written otherwise": func(f map[string]string) {
			f["agent.workspace.json"] = strings.Replace(f["agent.workspace.json"], `"name": "support", "version": "1.4.2",`, `"version": "1.4.2","name":"support",`, 1)
		},
	} {
		files := support()
		change(files)
		if got := mustBuild(t, folder(files), spacefiles.Options{}).Hash(); got != want {
			t.Errorf("%s: the hash is another one", name)
		}
	}
	files := support()
	files["docs/a.md"] = "A!\n"
	if mustBuild(t, folder(files), spacefiles.Options{}).Hash() == want {
		t.Error("a context file changed, and the hash is the same")
	}
}

func TestBuildReportsEveryProblem(t *testing.T) {
	t.Parallel()
	files := support()
	files["agent.workspace.json"] = `{
  "v": 1,
  "naem": "support",
  "prompts": {
    "default": "prompts/packs/default.json",
    "gone": "prompts/gone.json",
    "bad": "prompts/bad.json",
    "none": "prompts/short.md",
    "default": "prompts/short.md"
  },
  "tools": {"default": 17, "words": "tools/words.json"},
  "context": {"docs": ["../secrets.txt", "docs/bin.dat"]},
  "defaults": {"prompt_pack": "nope"},
  "skills": ["skills/Bad/SKILL.md"]
}`
	files["prompts/base.md"] = "line 1\n{{facts.x}} \n{{open"
	files["prompts/bad.json"] = "{\n \"parts\": [\n}"
	files["prompts/packs/default.json"] = `{"parts": ["prompts/base.md", {"context": "other"}, {"image": 1}, "prompts/latin.md"]}`
	files["prompts/latin.md"] = "ok\ncaf\xe9"
	files["docs/bin.dat"] = strings.Repeat("x", 5<<20)
	files["tools/words.json"] = `["crm.lookup", {"tool": "shell", "tool_name": "bash"}, {"tool": "x", "args_schema": [1]}, "crm.lookup"]`
	files["skills/Bad/SKILL.md"] = "no frontmatter"
	built := build(t, folder(files), spacefiles.Options{})
	var got []string
	for _, p := range built.Problems {
		at := p.File
		if p.Line > 0 {
			at += fmt.Sprint(":", p.Line)
		}
		got = append(got, at+" "+p.Path+" "+string(p.Code))
	}
	want := []string{
		"agent.workspace.json:3 naem unknown_field",
		"agent.workspace.json:6 prompts.gone missing_file",
		"agent.workspace.json:8 prompts.none bad_name",
		"agent.workspace.json:9 default duplicate",
		"agent.workspace.json:11 tools.default wrong_type",
		"agent.workspace.json:12 context.docs[0] path_escapes",
		"agent.workspace.json:13 defaults.prompt_pack missing_field",
		"docs/bin.dat  too_large",
		"prompts/bad.json:3  not_json",
		"prompts/base.md:2  unknown_variable",
		"prompts/base.md:3  unknown_variable",
		"prompts/latin.md:2  not_utf8",
		"prompts/packs/default.json:1 parts[1].context missing_field",
		"prompts/packs/default.json:1 parts[2] unknown_part",
		"prompts/packs/default.json:1 parts[2].image unknown_field",
		"skills/Bad/SKILL.md:1  bad_frontmatter",
		"tools/words.json:1 [1].tool_name renames_tool",
		"tools/words.json:1 [2].args_schema bad_schema",
		"tools/words.json:1 [3] duplicate",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if built.Manifest != nil || built.Files != nil {
		t.Error("there is a manifest in spite of problems")
	}
}

func TestBuildRefusesForbiddenContent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		edit func(map[string]string)
		want string
	}{
		{"messages that don't alternate", func(f map[string]string) {
			f["prompts/packs/chat.json"] = `[{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]`
		}, "prompts/packs/chat.json: prompts[0].parts[1].role: wrong_type"},
		{"too large a prompt pack", func(f map[string]string) {
			for i := range 16 {
				f[fmt.Sprintf("docs/%d.md", i)] = strings.Repeat("x", 64<<10)
			}
		}, "prompts/packs/default.json: prompts[1]: too_large"},
		{"1,025 files", func(f map[string]string) {
			for i := range 1025 {
				f[fmt.Sprintf("docs/%d.md", i)] = "x"
			}
		}, "agent.workspace.json: too_many"},
		{"another name", func(f map[string]string) {
			f["agent.workspace.json"] = strings.Replace(f["agent.workspace.json"], `"name": "support"`, `"name": "other"`, 1)
		}, "name: name_mismatch"},
		{"tools", func(f map[string]string) {
			f["agent.workspace.json"] = strings.Replace(f["agent.workspace.json"], `"v": 1,`, `"v": 1, "bindings": "x.json",`, 1)
		}, "bindings: binding_in_workspace"},
		{"a glob of many alternatives", func(f map[string]string) {
			f["agent.workspace.json"] = strings.Replace(f["agent.workspace.json"], `docs/plan.png`, strings.Repeat("{a,a}", 30), 1)
		}, "context.docs[1]: wrong_type"},
	} {
		files := support()
		c.edit(files)
		built := build(t, folder(files), spacefiles.Options{})
		if !slices.ContainsFunc(built.Problems, func(p space.Problem) bool { return strings.Contains(p.String(), c.want) }) || built.Manifest != nil {
			t.Errorf("%s: got %v, want %s", c.name, built.Problems, c.want)
		}
	}
}

// TestScan: the space of a folder without an index, and the index that gives
// the same manifest except for scanned.
func TestScan(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"tools/b.json": `["crm.lookup"]`, "tools/a.json": `{"name": "shell", "description": "Run."}`, "tools/sub/c.json": `["other"]`,
		"AGENTS.md": "Be brief.\n", "skills/x/SKILL.md": "---\ndescription: X.\n---\n", ".claude/skills/y/SKILL.md": "---\nname: y\n---\n# Y\n\nFirst paragraph\nof y.\n",
	}
	built := build(t, folder(files), spacefiles.Options{})
	m := built.Manifest
	if m == nil || !m.Scanned {
		t.Fatalf("got %+v, %v", m, built.Problems)
	}
	entries, _ := m.Catalog("default").Entries()
	if len(entries) != 2 || entries[0].Tool != "shell" || entries[1].Tool != "crm.lookup" {
		t.Errorf("got entries %+v, want those of a.json before those of b.json", entries)
	}
	if len(m.Skills) != 2 || m.Skills[1].Description != "First paragraph of y." || m.Prompt("default") == nil {
		t.Errorf("got %+v", m)
	}
	if len(built.Warnings) != 1 || built.Warnings[0].Code != space.NoIndex || !strings.Contains(built.Warnings[0].Detail, "refold space index") {
		t.Errorf("got warnings %v", built.Warnings)
	}
	index, err := spacefiles.WriteIndex(t.Context(), folder(files))
	must(t, err)
	files["agent.workspace.json"] = string(index)
	indexed := mustBuild(t, folder(files), spacefiles.Options{})
	indexed.Scanned = true
	if indexed.Hash() != m.Hash() {
		t.Errorf("the index that was written gives another manifest:\n%s\n%+v\n%+v", index, indexed, m)
	}
	if _, err := spacefiles.WriteIndex(t.Context(), folder(files)); err == nil {
		t.Error("an index is written over the one that is there")
	}
	delete(files, "agent.workspace.json")
	for name, built := range map[string]spacefiles.Built{
		"scan: false": build(t, folder(files), spacefiles.Options{NoScan: true}),
		"empty":       build(t, folder(nil), spacefiles.Options{}),
	} {
		if len(built.Problems) != 1 || built.Problems[0].Code != space.MissingFile {
			t.Errorf("%s: got %v, want missing_file", name, built.Problems)
		}
	}
}

// TestOnly: parts that are not requested come from the known manifest, and
// their faults in the folder are ignored.
func TestOnly(t *testing.T) {
	t.Parallel()
	known := mustBuild(t, folder(support()), spacefiles.Options{})
	files := support()
	files["prompts/packs/default.json"] = "broken"
	files["tools/catalogs/default.json"] = `["shell"]`
	files["docs/a.md"] = "A2\n"
	got := mustBuild(t, folder(files), spacefiles.Options{Only: []string{spacefiles.PartTools}, Known: known})
	entries, _ := got.Catalog("default").Entries()
	if len(entries) != 1 || entries[0].Tool != "shell" {
		t.Errorf("got entries %+v", entries)
	}
	got.Catalogs, got.Words = known.Catalogs, known.Words
	if got.Hash() != known.Hash() {
		t.Errorf("other parts changed too: got %+v, want %+v", got, known)
	}
	fresh := mustBuild(t, folder(files), spacefiles.Options{Only: []string{spacefiles.PartTools}})
	if fresh.Prompts != nil || fresh.Context != nil || fresh.Skills != nil || fresh.Defaults.ToolCatalog != "default" {
		t.Errorf("with nothing known: got %+v", fresh)
	}
	built := build(t, folder(files), spacefiles.Options{Only: []string{spacefiles.PartPrompts}, Known: known})
	if len(built.Problems) != 1 || built.Problems[0].Code != space.NotJSON {
		t.Errorf("only the broken part: got %v", built.Problems)
	}
	// The skill's files are known; a context file is shared by nothing else.
	got = mustBuild(t, folder(files), spacefiles.Options{Only: []string{spacefiles.PartContext}, Known: known})
	if slices.Equal(got.Files, known.Files) || len(got.Prompts) != 3 {
		t.Errorf("context alone: got %+v", got)
	}
	if slices.Collect(maps.Keys(build(t, folder(files), spacefiles.Options{Only: []string{spacefiles.PartSkills}, Known: known}).Files)) == nil {
		t.Error("the files of what was read are not there")
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
