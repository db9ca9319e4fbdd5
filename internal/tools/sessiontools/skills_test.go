package sessiontools_test

import (
	"strings"
	"testing"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/tools/sessiontools"
)

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
		text := says(t, tools, "refold.skill."+c.tool, c.arguments, of)
		if text != c.want && !strings.HasPrefix(text, c.want+"\n\nFiles of this skill") {
			t.Errorf("%s %.80s: got %q, want %q", c.tool, c.arguments, text, c.want)
		}
	}
	if got := says(t, tools, "refold.skill.read", `{"skill":"greet","path":"data/long.txt"}`, of); !strings.HasSuffix(got, "x\n[bytes 0 to 65536 of 70000]") {
		t.Errorf("a long file: got …%s", got[max(0, len(got)-40):])
	}
	if got := says(t, tools, "refold.skill.load", `{"skill":"x"}`, gone); !strings.HasPrefix(got, "fault ") {
		t.Errorf("a manifest that is not stored: got %q, want an error", got)
	}
}
