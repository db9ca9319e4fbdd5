package host_test

// Agents with the built-in tools on a directory.

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/refold/refold"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/tools/sandbox"
	"github.com/refold/refold/refoldtest"
	"github.com/refold/refold/tools/host"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shown is a turn that answers with the latest result that the model was shown.
func shown(r executor.Request) (executor.Answer, error) {
	return executor.Answer{Text: r.Messages[len(r.Messages)-1].Text}, nil
}

// names is a turn that answers with the names of the offered tools.
func names(r executor.Request) (executor.Answer, error) {
	var all []string
	for _, t := range r.Tools {
		all = append(all, t.Name)
	}
	return executor.Answer{Text: strings.Join(all, " ")}, nil
}

var (
	opens  = refoldtest.Calls(refoldtest.To("open_session", nil))
	writes = refoldtest.Calls(refoldtest.To("write_file", map[string]string{"path": "a.txt", "content": "first"}))
	reads  = refoldtest.Calls(refoldtest.To("read_file", map[string]string{"path": "a.txt"}))
)

// asks opens a runtime, asks its agent once, and closes it.
func asks(t *testing.T, log, sid string, o ...refold.AgentOption) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	rt, err := refold.Open(ctx, refoldtest.Dir(log), refold.Grace(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	helper, err := rt.Agent("helper", o...)
	if err != nil {
		t.Fatal(err)
	}
	run, err := helper.Session(sid).Ask(ctx, "Work.")
	if err != nil {
		t.Fatal(err)
	}
	answer, err := run.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return answer.Text
}

// The files of a session are in its directory, and the next program that has the log and
// the directory goes on with them.
func TestSessionKeepsItsFilesAfterARestart(t *testing.T) {
	t.Parallel()
	log, dir := t.TempDir(), t.TempDir()
	model := refold.Model(refoldtest.Model(opens, writes, refoldtest.Say("written"), reads, shown))
	if got := asks(t, log, "s1", model, refold.ToolsFrom(host.Dir(dir))); got != "written" {
		t.Errorf("got %q, want written", got)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "s1", "a.txt")); err != nil || string(text) != "first" {
		t.Errorf("the file has %q (%v), want first", text, err)
	}
	if got := asks(t, log, "s1", model, refold.ToolsFrom(host.Dir(dir))); !strings.Contains(got, "first") {
		t.Errorf("after a restart: got %q, want the file", got)
	}
}

func TestOnlyTheNamedToolsAreOffered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		source refold.ToolSource
		want   string
	}{
		{host.Dir(t.TempDir(), host.Only("read_file")), "read_file close_session read_result"},
		{host.Dir(t.TempDir()), "apply_patch edit_file exists glob grep list_dir read_file stat write_file close_session read_result"},
	} {
		if got := asks(t, t.TempDir(), "s1", refold.Model(refoldtest.Model(opens, names)), refold.ToolsFrom(c.source)); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestCommandsRunIfAsked(t *testing.T) {
	t.Parallel()
	runs := refoldtest.Calls(refoldtest.To("shell", map[string]string{"command": "echo $((6*7))"}))
	for _, mode := range []host.Mode{host.Off, host.Auto} {
		got := asks(t, t.TempDir(), "s1", refold.Model(refoldtest.Model(opens, runs, shown)),
			refold.ToolsFrom(host.Dir(t.TempDir(), host.Only("shell"), host.Sandbox(mode))))
		if !strings.Contains(got, "42") {
			t.Errorf("sandbox %s: got %q, want 42", mode, got)
		}
	}
}

// Without the option Sandbox a program with a shell starts only where all of the sandbox
// can be enforced.
func TestShellNeedsAWholeSandbox(t *testing.T) {
	t.Parallel()
	_, _, lacks := sandbox.New(sandbox.Config{Mode: sandbox.Required})
	_, err := refoldtest.Open(t).Agent("helper", refold.Model(refoldtest.Model(names)), refold.ToolsFrom(host.Dir(t.TempDir(), host.Only("shell"))))
	switch {
	case lacks == nil && err != nil:
		t.Errorf("on a system that can enforce it: %v", err)
	case lacks != nil && (err == nil || !strings.Contains(err.Error(), lacks.Error()) || !strings.Contains(err.Error(), "host.Sandbox")):
		t.Errorf("got %v, want %v and the option", err, lacks)
	}
}

func TestWrongSourcesAreRefused(t *testing.T) {
	t.Parallel()
	rt := refoldtest.Open(t)
	model := refold.Model(refoldtest.Model(names))
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, source := range map[string]refold.AgentOption{
		`"read_fil" (did you mean "read_file"?): there are open_session, `: refold.BuiltIn("read_fil"),
		`"rm": there are open_session, `:                                   refold.ToolsFrom(host.Dir(t.TempDir(), host.Only("rm"))),
		"name a directory":                                                 refold.ToolsFrom(host.Dir("")),
		file:                                                               refold.ToolsFrom(host.Dir(file)),
		"say required, auto or off":                                        refold.ToolsFrom(host.Dir(t.TempDir(), host.Only("shell"), host.Sandbox("some"))),
	} {
		if _, err := rt.Agent("helper", model, source); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	if _, err := rt.Agent("helper", model, refold.BuiltIn("grep"), refold.ToolsFrom(host.Dir(t.TempDir(), host.Only("grep")))); err == nil {
		t.Error("a tool of two sources: got no error")
	}
}

// A built-in tool without a directory of this process waits for a bridge that has one.
func TestBuiltInToolsAreServedByBridges(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	helper, err := refoldtest.Open(t).Agent("helper", refold.Model(refoldtest.Model(opens, names)), refold.BuiltIn("read_file"))
	if err != nil {
		t.Fatal(err)
	}
	run, err := helper.Session("s1").Ask(ctx, "Work.")
	if err != nil {
		t.Fatal(err)
	}
	for u, err := range run.Updates(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if w, ok := u.(refold.Waiting); ok && w.For == "tool" {
			if w.Target != "host" || w.Cause != "unserved" {
				t.Errorf("got %+v, want the unserved target host", w)
			}
			return
		}
	}
	t.Error("the run waits for nothing")
}
