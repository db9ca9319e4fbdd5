package sessiontools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/spacefiles"
	"github.com/refold/refold/internal/tools/sessiontools"
)

// store is blobs in memory.
type store map[string][]byte

func (s store) get(_ context.Context, _, name string) ([]byte, error) {
	if content, ok := s[name]; ok {
		return content, nil
	}
	return nil, errors.New("not stored")
}

// add stores a space of context files and returns it as a call has it.
func (s store) add(t *testing.T, name string, files map[string]string) executor.CallSpace {
	t.Helper()
	files = maps.Clone(files)
	files["agent.workspace.json"] = `{"v": 1, "context": {"docs": ["docs/**"]}, "prompts": {"p": "hidden.md"}}`
	files["hidden.md"] = "needle hidden"
	return s.addSkills(t, name, files)
}

// addSkills stores a folder without an index, and returns it as a call has it.
func (s store) addSkills(t *testing.T, name string, files map[string]string) executor.CallSpace {
	t.Helper()
	fsys := fstest.MapFS{}
	for path, content := range files {
		fsys[path] = &fstest.MapFile{Data: []byte(content)}
	}
	built, err := spacefiles.Read(t.Context(), func(context.Context) (fs.FS, error) { return fsys, nil }, func() spacefiles.Options { return spacefiles.Options{Space: name} })
	if err != nil || built.Manifest == nil {
		t.Fatal(err, built.Problems)
	}
	for ref, content := range built.Files {
		s[ref.String()] = content
	}
	manifest := built.Manifest.Bytes()
	ref := codec.RefOf(manifest).String()
	s[ref] = manifest
	return executor.CallSpace{Space: name, Kind: "workspace", Manifest: ref}
}

// gone is a space whose manifest is not stored.
var gone = []executor.CallSpace{{Space: "gone", Manifest: codec.RefOf(nil).String()}}

// says is what a call of a tool comes to, as text.
func says(t *testing.T, tools executor.Executor, tool, arguments string, of []executor.CallSpace) string {
	t.Helper()
	got, err := tools.Execute(t.Context(), executor.Call{ToolID: tool, Arguments: json.RawMessage(arguments), Spaces: of})
	switch {
	case err != nil:
		return "fault " + err.Error()
	case got.Error != nil:
		return "error " + got.Error.Code
	}
	for _, f := range got.Files {
		got.Output += " + " + f.MediaType
	}
	return got.Output
}

func TestSessionTools(t *testing.T) {
	t.Parallel()
	s := store{}
	of := []executor.CallSpace{
		s.add(t, "support", map[string]string{"docs/a.md": "one\nneedle two\nüber\n", "docs/b.bin": "\x00\x01", "docs/c.png": "\x89PNG\r\n\x1a\n0123456789"}),
		s.add(t, "other", map[string]string{"docs/a.md": "needle three\n", "docs/d.md": strings.Repeat("needle\n", 200)}),
	}
	tools := sessiontools.New(s.get)
	for _, c := range []struct{ tool, arguments, want string }{
		{"list", `{}`, `{"files":[{"path":"docs/a.md","size":21,"media_type":"text/markdown","space":"support"},{"path":"docs/b.bin"`},
		{"list", `{"path_glob":"**/*.png"}`, `{"files":[{"path":"docs/c.png","size":18,"media_type":"image/png","space":"support"}]}`},
		{"list", `{"space":"nope"}`, `{"files":[]}`},
		{"list", `{"path_glob":"["}`, "error invalid_arguments"},
		{"read", `{"path":"docs/a.md"}`, "error invalid_arguments"}, // of which space?
		{"read", `{"path":"docs/a.md","space":"support"}`, "one\nneedle two\nüber\n"},
		{"read", `{"path":"docs/a.md","space":"support","offset":4,"max_bytes":6}`, "needle\n[bytes 4 to 10 of 21]"},
		{"read", `{"path":"docs/a.md","space":"support","offset":15,"max_bytes":1}`, "\n[bytes 15 to 15 of 21]"}, // half a character
		{"read", `{"path":"docs/a.md","space":"support","offset":999}`, "\n[bytes 21 to 21 of 21]"},
		{"read", `{"path":"docs/b.bin"}`, `{"media_type":"application/octet-stream","path":"docs/b.bin","sha256":"b413f47d13ee2fe6c845b2ee141af81de858df4ec549a58b7970bb96645bc8d2","size":2}`},
		{"read", `{"path":"docs/c.png"}`, "docs/c.png + image/png"},
		{"read", `{"path":"hidden.md"}`, "error invalid_arguments"}, // a prompt is no context file
		{"read", `{"path":"../docs/d.md"}`, "error invalid_arguments"},
		{"search", `{"pattern":"^needle t"}`, "docs/a.md:2: needle two\ndocs/a.md:1: needle three"},
		{"search", `{"pattern":"needle","path_glob":"docs/d.md","max_results":2}`, "docs/d.md:1: needle\ndocs/d.md:2: needle\n[more than 2 lines match: narrow the pattern or path_glob]"},
		{"search", `{"pattern":"hidden"}`, "no line matches"},
		{"search", `{"pattern":"("}`, "error invalid_arguments"},
		{"other", `{}`, "error tool_not_served"},
	} {
		text := says(t, tools, "refold.space."+c.tool, c.arguments, of)
		if text != c.want && (c.tool != "list" || !strings.HasPrefix(text, c.want)) {
			t.Errorf("%s %s: got %q, want %q", c.tool, c.arguments, text, c.want)
		}
	}
	many := make(map[string]string)
	for i := range 1_001 {
		many[fmt.Sprintf("docs/%d.md", i)] = "x"
	}
	delete(many, "docs/0.md")
	delete(many, "docs/1.md")
	if got := says(t, tools, "refold.space.list", `{}`, append(of, s.add(t, "many", many))); !strings.HasSuffix(got, `"truncated":true}`) {
		t.Errorf("more than 1,000 files: got …%s", got[max(0, len(got)-40):])
	}
	if got := says(t, tools, "refold.space.list", `{}`, gone); !strings.HasPrefix(got, "fault ") {
		t.Errorf("a manifest that is not stored: got %q, want an error", got)
	}
}
