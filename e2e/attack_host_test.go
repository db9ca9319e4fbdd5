package e2e_test

// Models that attack their tools' machine, through the shipped programs.

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
)

// attack starts a system whose model opens a host session, then goes by the
// rules when it is asked. It returns what the model says at last.
func attack(t *testing.T, ask string, env []string, rules string, flags ...string) string {
	t.Helper()
	s := startSystem(t, nil)
	s.models(opening+rules, "scripted")
	url := strings.Replace(s.url, "://", "://me:do-not-tell@", 1) // this server takes everybody
	args := append([]string{"--nats", url, "--tools", "host", "--workdir", t.TempDir()}, flags...)
	startDaemonWith(t, env, "bridge", args...)
	heard := listen(t, s.nc, "refold.out.s1")
	s.run(session.DoorIn, "s1", "open", scripted)
	s.run(session.DoorIn, "s1", ask, scripted)
	end := waitFinished(t, heard, 2)
	if end.Lifecycle != "completed" {
		t.Fatalf("the run ended %+v", end)
	}
	return end.Output.Text
}

// TestAttackKeysOfTheBridge: a command without a sandbox has the bridge's user,
// and tries to read the bridge's environment.
func TestAttackKeysOfTheBridge(t *testing.T) {
	t.Parallel()
	env := []string{"OPENAI_API_KEY=sk-do-not-tell", "GOPROXY=https://me:do-not-tell@proxy.test,direct", "NATS_TOKEN=do-not-tell"}
	got := attack(t, "steal", env, `
  - shown: {asked: ^steal, last: user}
    calls: [{tool: shell, arguments: {command: "tr '\\0' '\\n' < /proc/$PPID/environ; tr '\\0' '\\n' < /proc/$PPID/cmdline; env; echo done"}}]
  - shown: {asked: ^steal, results: [{tool: shell, text: do-not-tell}]}
    say: stolen
  - shown: {asked: ^steal, results: [{tool: shell, error: false, text: [--workdir, "GOPROXY=https://proxy.test,direct", done]}]}
    say: nothing to steal
`, "--sandbox", "off", "--model-may-control-every-session")
	if got != "nothing to steal" {
		t.Errorf("the model says %q, want nothing to steal", got)
	}
}

// TestAttackGlob: a pattern that expands to millions is refused, and the run
// continues.
func TestAttackGlob(t *testing.T) {
	t.Parallel()
	got := attack(t, "burn", nil, `
  - shown: {asked: ^burn, last: user}
    calls: [{tool: glob, arguments: {pattern: "`+strings.Repeat("{a,b}", 26)+`"}}]
  - shown: {asked: ^burn, results: [{tool: glob, error: true, text: [too_large, more than 256]}]}
    say: refused
`)
	if got != "refused" {
		t.Errorf("the model says %q, want that the pattern was refused", got)
	}
}

// TestAttackShellOnOpenServer: a bridge serves no shell that could publish
// events, unless a flag allows it.
func TestAttackShellOnOpenServer(t *testing.T) {
	t.Parallel()
	s := startSystem(t, nil)
	for _, how := range [][]string{{"--sandbox", "off"}, {"--sandbox-network"}} {
		args := append([]string{"--nats", s.url, "--tools", "host", "--workdir", t.TempDir()}, how...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		said, err := exec.CommandContext(ctx, program("bridge"), args...).CombinedOutput()
		if err == nil || ctx.Err() != nil {
			t.Errorf("%v: the bridge ended with %v, want it to refuse at its start", how, err)
		}
		for _, want := range []string{"NATS accepts clients without credentials", "--model-may-control-every-session"} {
			if !strings.Contains(string(said), want) {
				t.Errorf("%v: it says %q, want %q in it", how, said, want)
			}
		}
	}
}
