package mcp_test

// Agents with the tools of an MCP server, which is killed and changed; and files that
// are refused.

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/refold/refold"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/refoldtest"
	"github.com/refold/refold/tools/mcp"
)

// servers writes the file of one server, peer: this test binary.
func servers(t *testing.T) (file, ledger string) {
	t.Helper()
	dir := t.TempDir()
	ledger = filepath.Join(dir, "ledger")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return write(t, filepath.Join(dir, "servers.yaml"), fmt.Sprintf("servers:\n  peer:\n    command: %q\n    env: [%q]\n", self, ledgerVar+"="+ledger)), ledger
}

func write(t *testing.T, file, text string) string {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// calls is a model that calls a tool of the server, and then says what it was shown.
func calls(tool string) refold.ModelRef {
	return refoldtest.Model(
		refoldtest.Calls(refoldtest.To(tool, nil)),
		func(r executor.Request) (executor.Answer, error) {
			return executor.Answer{Text: r.Messages[len(r.Messages)-1].Text}, nil
		},
	)
}

func TestServerThatIsKilledIsStartedAgain(t *testing.T) {
	t.Parallel()
	file, ledger := servers(t)
	rt := refoldtest.Open(t)
	helper, err := rt.Agent("helper", refold.Model(calls("peer_look")), refold.ToolsFrom(mcp.File(file)))
	if err != nil {
		t.Fatal(err)
	}
	look := func() (pid int) {
		t.Helper()
		if got := refoldtest.Ask(t, helper, "Look."); got.Text != "seen" || got.Calls[0].Status != "succeeded" {
			t.Fatalf("got %+v", got)
		}
		pids := noted(t, ledger, "look")
		return pids[len(pids)-1]
	}
	first := look()
	if again := look(); again != first {
		t.Errorf("two calls had the processes %d and %d, want one", first, again)
	}
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	second := look()
	if second == first {
		t.Errorf("the killed process %d answers", first)
	}
	if starts := noted(t, ledger, "start"); len(starts) != 3 || starts[1] != first || starts[2] != second {
		t.Errorf("started: %v, want one for the list of tools, then %d and %d", starts, first, second)
	}
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(second, 0); err == nil {
		t.Errorf("process %d lives after Close", second)
	}
}

// A call that its server does not survive starts again, since the server declares that
// it changes nothing.
func TestCallThatKillsItsServerIsSentAgain(t *testing.T) {
	t.Parallel()
	file, ledger := servers(t)
	helper, err := refoldtest.Open(t).Agent("helper", refold.Model(calls("peer_die_once")), refold.ToolsFrom(mcp.File(file)))
	if err != nil {
		t.Fatal(err)
	}
	got := refoldtest.Ask(t, helper, "Look.")
	if pids := noted(t, ledger, "die_once"); got.Text != "seen" || len(got.Calls) != 1 || len(pids) != 2 || pids[0] == pids[1] {
		t.Errorf("got %+v by processes %v, want one call of two processes", got, pids)
	}
}

// The tools of an agent are its definition: another process of it that only asks has the
// same one.
func TestProcessThatOnlyAsksHasTheSameDefinition(t *testing.T) {
	t.Parallel()
	file, _ := servers(t)
	model := refold.Model(refold.ModelRef{Provider: "refoldtest", Model: "turns"})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	rt := refoldtest.Open(t)
	asks, err := rt.Agent("helper", model, refold.ToolsFrom(mcp.File(file)), refold.ServedElsewhere())
	if err != nil {
		t.Fatal(err)
	}
	run, err := asks.Session("s").Ask(ctx, "Look.")
	if err != nil {
		t.Fatal(err)
	}
	_, err = rt.Agent("other", refold.Model(calls("peer_look"))) // it serves the model
	if err != nil {
		t.Fatal(err)
	}
	waiting := false
	for u, err := range run.Updates(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if w, ok := u.(refold.Waiting); ok && w.Target == "helper-mcp" {
			waiting = true
			break
		}
	}
	if !waiting {
		t.Error("the run does not wait for a process that serves helper-mcp")
	}
}

func TestToolsThatChangeBetweenStartsAreRefused(t *testing.T) {
	t.Parallel()
	file, _ := servers(t)
	agent := func() (*refold.Agent, error) {
		return refoldtest.Open(t).Agent("helper", refold.Model(calls("peer_new")), refold.ToolsFrom(mcp.File(file)))
	}
	if _, err := agent(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, strings.Replace(string(text), "env: [", "env: ["+extraVar+"=1, ", 1))
	_, err = agent()
	for _, want := range []string{"server peer", "mcp.peer.look", "schema", "refold tools import mcp " + file, file + ".lock"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a changed tool: got %v, want %q in it", err, want)
		}
	}
	unpin(t, file, "mcp.peer.look")
	if _, err = agent(); err != nil {
		t.Errorf("without the changed tool: %v", err)
	}
	if err := os.Remove(file + ".lock"); err != nil {
		t.Fatal(err)
	}
	helper, err := agent()
	if err != nil {
		t.Fatal(err)
	}
	if got := refoldtest.Ask(t, helper, "Look."); got.Calls[0].Status != "succeeded" || got.Text != "seen" {
		t.Errorf("got %+v", got)
	}
}

// unpin removes a tool from the lock of a file.
func unpin(t *testing.T, file, id string) {
	t.Helper()
	text, err := os.ReadFile(file + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	var lock struct {
		V     int                        `json:"v"`
		Tools map[string]json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(text, &lock); err != nil || lock.Tools[id] == nil {
		t.Fatalf("the lock %s does not pin %s (%v)", text, id, err)
	}
	delete(lock.Tools, id)
	if text, err = json.Marshal(lock); err != nil {
		t.Fatal(err)
	}
	write(t, file+".lock", string(text))
}

func TestMistakesSayWhereTheyAre(t *testing.T) {
	t.Parallel()
	rt := refoldtest.Open(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"a typo":                     {"servers:\n  peer:\n    comand: x\n", []string{"[3:5]", "comand", "command"}},
		"a wrong value":              {"servers:\n  peer:\n    command: x\n    idle: -1s\n", []string{"servers.peer.idle"}},
		"an unset variable":          {"servers:\n  peer:\n    command: x\n    env: [NO_SUCH_VARIABLE]\n", []string{"servers.peer.env[0]", "NO_SUCH_VARIABLE"}},
		"no servers":                 {"", []string{"servers"}},
		"a program that isn't there": {"servers:\n  peer:\n    command: /no/such/program\n", []string{"server peer", "/no/such/program"}},
		"a server that ends":         {fmt.Sprintf("servers:\n  peer:\n    command: %q\n    env: [%s=/no/such/ledger]\n", self, ledgerVar), []string{"server peer", "exit status 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := write(t, filepath.Join(t.TempDir(), "servers.yaml"), c.text)
			_, err := rt.Agent("helper", refold.Model(calls("x")), refold.ToolsFrom(mcp.File(file)))
			for _, want := range append(c.want, "agent helper", file) {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q in it", err, want)
				}
			}
		})
	}
	if _, err := rt.Agent("helper", refold.Model(calls("x")), refold.ToolsFrom(mcp.File("/no/such/file.yaml"))); err == nil || !strings.Contains(err.Error(), "/no/such/file.yaml") {
		t.Errorf("no file: got %v", err)
	}
	long := strings.Repeat("a", 64)
	file, _ := servers(t)
	if _, err := rt.Agent(long, refold.Model(calls("x")), refold.ToolsFrom(mcp.File(file))); err == nil || !strings.Contains(err.Error(), "shorter name") {
		t.Errorf("a long name: got %v", err)
	}
	if _, err := rt.Agent("helper", refold.Model(calls("x")), refold.ToolsFrom(nil)); err == nil {
		t.Error("a nil source: got no error")
	}
}
