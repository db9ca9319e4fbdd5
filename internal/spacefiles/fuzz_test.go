package spacefiles_test

// Untrusted files: any content gives a manifest or a problem, and sessions
// accept the manifest.

import (
	"testing"
	"testing/fstest"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/spacefiles"
	"github.com/refold/refold/space"
)

// wantWhole checks what every build has: a manifest that parses again and whose
// files are there, or problems that an event can hold.
func wantWhole(t *testing.T, built spacefiles.Built) {
	t.Helper()
	if (built.Manifest == nil) != (len(built.Problems) > 0) {
		t.Fatalf("got %v and %v: one of them is there", built.Manifest, built.Problems)
	}
	for _, list := range [][]space.Problem{built.Problems, built.Warnings} {
		for _, p := range list {
			if !p.Code.Known() || p.Detail == "" || len(p.Detail) > space.DetailBytesMax || len(p.Path) > space.ProblemPathBytesMax {
				t.Fatalf("got %+v", p)
			}
		}
		if _, err := codec.Marshal(list); err != nil {
			t.Fatalf("no event can hold %+v: %v", list, err)
		}
	}
	if built.Manifest == nil {
		return
	}
	again, problems := space.Parse(built.Manifest.Bytes())
	if again == nil || again.Hash() != built.Manifest.Hash() {
		t.Fatalf("it is parsed again as %v, %v", again, problems)
	}
	for _, f := range built.Manifest.Files {
		if content, ok := built.Files[f.Ref]; !ok || int64(len(content)) != f.Size || codec.RefOf(content) != f.Ref {
			t.Fatalf("%s: its content is %d bytes of %d", f.Path, len(content), f.Size)
		}
	}
	for i := range built.Manifest.Prompts {
		_ = built.Manifest.SizeOf(&built.Manifest.Prompts[i])
	}
	for i := range built.Manifest.Catalogs {
		if _, ok := built.Manifest.Catalogs[i].Entries(); !ok {
			t.Fatalf("the entries of catalog %d can't be read", i)
		}
	}
	_ = built.Secrets()
}

func FuzzSkill(f *testing.F) {
	f.Add("---\nname: x\ndescription: d\nallowed-tools: Read, Bash(git:*)\nmetadata: {refold: {os: [linux]}}\n---\nbody")
	f.Add("---\na: &a [x]\nb: *a\n---\n")
	f.Add("---\nmetadata: {openclaw: {requires: {bins: [gh], anyBins: [a, b], env: [X]}, primaryEnv: Y, always: true}, other: 1}\n---\n# x\n\nFirst.\n")
	f.Add("---\nallowed-tools: [Read, 'Bash(a, b)']\nlicense: |\n  MIT\ndisable-model-invocation: TRUE\n---\n")
	f.Fuzz(func(t *testing.T, text string) {
		wantWhole(t, build(t, folder(map[string]string{"agent.workspace.json": index, "skills/x/SKILL.md": text}), spacefiles.Options{}))
	})
}

func FuzzIndex(f *testing.F) {
	f.Add(support()["agent.workspace.json"], support()["prompts/packs/default.json"], support()["tools/catalogs/default.json"])
	f.Add(`{"v":1,"prompts":{"a":"b.json"}}`, `[{"role":"user","content":[{"type":"text","text":"{{x}}"}]}]`, `[]`)
	f.Add(`{"v":1,"kind":"pack","name":"p","version":"1.0.0","bindings":"tools/catalogs/default.json"}`, `{}`, `{"tools":[{"tool_id":"p.x"}],"needs":["bin:a|b"]}`)
	f.Add(`{"v":1,"context":{"g":["**","{a,b}*","docs/[!x]*"]},"tools":{"default":["tools/catalogs/default.json","docs/a.md"]}}`, `"text"`, `{"tools":[{"descriptor":"prompts/packs/default.json"},{"function":{"name":"x","parameters":{}}}],"tool_choice":"none"}`)
	f.Fuzz(func(t *testing.T, index, prompt, catalog string) {
		files := support()
		files["agent.workspace.json"], files["prompts/packs/default.json"], files["tools/catalogs/default.json"] = index, prompt, catalog
		built := build(t, folder(files), spacefiles.Options{})
		wantWhole(t, built)
		if built.Manifest == nil {
			return
		}
		for _, part := range spacefiles.Parts { // of what is known, with nothing else that is new
			only := build(t, folder(files), spacefiles.Options{Only: []string{part}, Known: built.Manifest})
			if only.Manifest == nil || only.Manifest.Hash() != built.Manifest.Hash() {
				t.Fatalf("only %s: got %v, %v", part, only.Manifest, only.Problems)
			}
		}
	})
}

// FuzzScan: a folder without an index has the same manifest as with the index
// that is written for it.
func FuzzScan(f *testing.F) {
	f.Add("You help.", `["shell"]`, "---\nname: x\n---\nDo it.")
	f.Add("{{session}}", `{"name":"a.b","description":"d"}`, "")
	f.Fuzz(func(t *testing.T, agents, tool, skill string) {
		fsys := folder(map[string]string{"AGENTS.md": agents, "tools/a.json": tool})
		if skill != "" {
			fsys[".claude/skills/x/SKILL.md"] = &fstest.MapFile{Data: []byte(skill)}
		}
		scanned := build(t, fsys, spacefiles.Options{})
		wantWhole(t, scanned)
		text, err := spacefiles.WriteIndex(t.Context(), fsys)
		must(t, err)
		fsys["agent.workspace.json"] = &fstest.MapFile{Data: text}
		indexed := build(t, fsys, spacefiles.Options{})
		wantWhole(t, indexed)
		if (scanned.Manifest == nil) != (indexed.Manifest == nil) {
			t.Fatalf("scanned: %v; with its index: %v", scanned.Problems, indexed.Problems)
		}
		if scanned.Manifest != nil {
			scanned.Manifest.Scanned = false
			if scanned.Manifest.Hash() != indexed.Manifest.Hash() {
				t.Fatalf("scanned %+v, with its index %+v", scanned.Manifest, indexed.Manifest)
			}
		}
	})
}
