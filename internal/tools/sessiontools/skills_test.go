package sessiontools_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/spaces"
	"github.com/refold/refold/internal/tools/sessiontools"
)

// addSkills stores a folder with skills, and returns it as a call has it.
func (s store) addSkills(t *testing.T, name string, files map[string]string) executor.CallSpace {
	t.Helper()
	fsys := fstest.MapFS{}
	for path, content := range files {
		fsys[path] = &fstest.MapFile{Data: []byte(content)}
	}
	built, err := spaces.Read(t.Context(), func(context.Context) (fs.FS, error) { return fsys, nil }, func() spaces.Options { return spaces.Options{Space: name} })
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

func TestSkillTools(t *testing.T) {
	t.Parallel()
	s := store{}
	of := []executor.CallSpace{
		s.addSkills(t, "a", map[string]string{
			"skills/greet/SKILL.md":      "---\ndescription: d\n---\n\nSay $2 to $1; all: $ARGUMENTS, $12, $HOME.\n",
			"skills/greet/run.sh":        "#!/bin/sh\n",
			"skills/greet/data/a.json":   `{"a": 1}`,
			"skills/greet/data/b.bin":    "\x00\x01",
			"skills/plain/SKILL.md":      "---\ndescription: d\n---\nPlain.\n",
			"skills/greet/data/long.txt": strings.Repeat("x", 70_000),
		}),
		s.addSkills(t, "b", map[string]string{".claude/skills/big/SKILL.md": "---\ndescription: d\n---\n" + strings.Repeat("$ARGUMENTS ", 5_000)}),
	}
	tools := sessiontools.New(s.get)
	for _, c := range []struct{ tool, arguments, want string }{
		{"load", `{"skill":"greet"}`, "Say $2 to $1; all: $ARGUMENTS, $12, $HOME.\n\nFiles of this skill, to read with skill_read:\n- data/a.json (8 bytes)\n- data/b.bin (2 bytes)\n- data/long.txt (70000 bytes)\n- run.sh (10 bytes)"},
		{"load", `{"skill":"greet","arguments":"ann \"good day\""}`, "Say good day to ann; all: ann \"good day\", , $HOME."},
		{"load", `{"skill":"plain","arguments":"it's ann"}`, "Plain.\n\nARGUMENTS: it's ann"},
		{"load", `{"skill":"plain","arguments":"  "}`, "Plain."},
		{"load", `{"skill":"big","arguments":"` + strings.Repeat("y", 100) + `"}`, "error invalid_arguments"},
		{"load", `{"skill":"nosuch"}`, "error invalid_arguments"},
		{"read", `{"skill":"greet","path":"run.sh"}`, "#!/bin/sh\n"},
		{"read", `{"skill":"greet","path":"./data/../run.sh","offset":2,"max_bytes":4}`, "/bin\n[bytes 2 to 6 of 10]"},
		{"read", `{"skill":"greet","path":"data/a.json"}`, `{"a": 1}`},
		{"read", `{"skill":"greet","path":"data/b.bin"}`, "data/b.bin + application/octet-stream"},
		{"read", `{"skill":"greet","path":"SKILL.md"}`, "\nSay $2 to $1; all: $ARGUMENTS, $12, $HOME.\n"},
		{"read", `{"skill":"greet","path":"../plain/SKILL.md"}`, "error invalid_arguments"},
		{"read", `{"skill":"greet","path":"/etc/passwd"}`, "error invalid_arguments"},
		{"read", `{"skill":"greet","path":"data"}`, "error invalid_arguments"},
		{"unpack", `{"skill":"greet"}`, "error tool_not_served"},
	} {
		got, err := tools.Execute(t.Context(), executor.Call{ToolID: "refold.skill." + c.tool, Arguments: json.RawMessage(c.arguments), Spaces: of})
		text := got.Output
		for _, f := range got.Files {
			text += " + " + f.MediaType
		}
		if got.Error != nil {
			text = "error " + got.Error.Code
		}
		if err != nil || text != c.want && !strings.HasPrefix(text, c.want+"\n\nFiles of this skill") {
			t.Errorf("%s %.80s: got %q, %v, want %q", c.tool, c.arguments, text, err, c.want)
		}
	}
	got, err := tools.Execute(t.Context(), executor.Call{ToolID: "refold.skill.read", Arguments: json.RawMessage(`{"skill":"greet","path":"data/long.txt"}`), Spaces: of})
	if err != nil || !strings.HasSuffix(got.Output, "x\n[bytes 0 to 65536 of 70000]") {
		t.Errorf("a long file: got …%s, %v", got.Output[max(0, len(got.Output)-40):], err)
	}
	if _, err := tools.Execute(t.Context(), executor.Call{ToolID: "refold.skill.load", Arguments: json.RawMessage(`{"skill":"x"}`), Spaces: []executor.CallSpace{{Space: "gone", Manifest: codec.RefOf(nil).String()}}}); err == nil {
		t.Error("a manifest that is not stored: no error")
	}
}
