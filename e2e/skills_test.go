package e2e_test

// Skills with real processes: a bridge syncs a folder with skills and checks
// their needs, and a model loads one, reads a file of it, unpacks it, and runs
// its script with the shell.

import (
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
)

// skillFiles are a folder as people have them: skills at both places, without an
// index.
func skillFiles() map[string]string {
	return map[string]string{
		"skills/greet/SKILL.md":         "---\nname: greet\ndescription: Greet somebody.\nallowed-tools: Bash, open_session\n---\nRun scripts/greet.sh for $1, as $ARGUMENTS says.\n",
		"skills/greet/scripts/greet.sh": "#!/bin/sh\necho \"hello $1\"\n",
		"skills/greet/notes/tone.md":    "Be kind.\n",
		"skills/greet/logo.bin":         "\x00\x01\x02",
		".claude/skills/other/SKILL.md": "---\ndescription: Something else.\n---\nNothing.\n",
		"skills/nowhere/SKILL.md":       "---\ndescription: Needs a program.\nmetadata: {refold: {requires: {bins: [no-such-program-here]}}}\n---\nNothing.\n",
		"skills/by-config/SKILL.md":     "---\ndescription: For configs.\ndisable-model-invocation: true\n---\nAlways say please.\n",
	}
}

const skillScript = `
turns:
  - shown:
      system: ["greet: Greet somebody.\nother: Something else.", "Always say please."]
      tools: {include: [skill_load, skill_read, open_session], exclude: [skill_unpack]}
    calls: [{tool: open_session}]
  - shown: {tools: {include: [grep, shell, skill_unpack]}}
    calls:
      - {tool: skill_load, arguments: {skill: greet, arguments: "ann \"and bob\""}}
      - {tool: skill_load, arguments: {skill: nowhere}}
      - {tool: skill_load, arguments: {skill: by-config}}
      - {tool: skill_load, arguments: {skill: nosuch}}
      - {tool: skill_read, arguments: {skill: greet, path: ./notes/tone.md}}
      - {tool: skill_read, arguments: {skill: greet, path: ../other/SKILL.md}}
      - {tool: skill_read, arguments: {skill: greet, path: logo.bin}}
  - shown:
      results:
        - {tool: skill_load, error: false, text: ["greet.sh for ann, as ann \"and bob\" says.", "- scripts/greet.sh (26 bytes)"]}
        - {tool: skill_load, error: true, text: [invalid_arguments]}
        - {tool: skill_load, error: false, text: ["Always say please."]}
        - {tool: skill_load, error: true, text: ["there is no skill", "greet"]}
        - {tool: skill_read, error: false, text: ["Be kind."]}
        - {tool: skill_read, error: true, text: ["has no file"]}
        - {tool: skill_read, error: false, text: [logo.bin]}
      tools: {include: [skill_unpack, shell], exclude: [grep]}
    calls: [{tool: skill_unpack, arguments: {skill: greet}}]
  - shown: {results: [{tool: skill_unpack, error: false, text: [".refold/skills/greet/scripts/greet.sh (26 bytes)"]}]}
    calls: [{tool: shell, arguments: {command: ".refold/skills/greet/scripts/greet.sh ann"}}]
  - shown: {results: [{tool: shell, error: false, text: [hello ann]}]}
    say: hello ann
  - shown: {tools: {include: [grep, shell]}}
    say: Done.
`

// TestSkillsAreLoadedReadAndRun: the index, loading with arguments, files, needs,
// unpacking, and a script in the shell; the next run is offered all tools again.
func TestSkillsAreLoadedReadAndRun(t *testing.T) {
	t.Parallel()
	record := builtinAnd(t)
	record["spaces"] = list{object{"space": "team"}}
	s := startSystem(t, record)
	dir := t.TempDir()
	folder(t, dir, skillFiles())
	s.spacesBridge("targets:\n  team:\n    spaces:\n      team: {dir: "+dir+"}\n", skillScript, "--tools", "host", "--workdir", t.TempDir())
	heard := listen(t, s.nc, "refold.out.s1")
	s.sync("s1", "team", object{"apply": "immediate_if_idle"})
	staged := nth[spaces.WorkspaceStaged](t, heard, spaces.NoticeWorkspaceStaged, 1)
	if len(staged.Lacks) != 1 || staged.Lacks[0] != "bin:no-such-program-here" {
		t.Errorf("lacks: got %v", staged.Lacks)
	}
	config := object{"provider": "scripted", "model": "scripted", "skills": list{"by-config", "nowhere"}}
	s.run(session.DoorCtl, "s1", "Greet Ann.", config)
	s.wantEnd("s1", 1, session.Completed, "")
	s.run(session.DoorIn, "s1", "And now?", nil)
	s.wantEnd("s1", 2, session.Completed, "")
	verifyAll(t, s.url)
}
