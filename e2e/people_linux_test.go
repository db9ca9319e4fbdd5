package e2e_test

// What a new user meets on the first day, at a terminal: programs with names that
// others have, names with typos, keys that are missing, and the deployment page.

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// chatServer answers each chat completion with a text, and reports the models and
// keys of requests.
func chatServer(t *testing.T, text string) (url string, asked chan string) {
	t.Helper()
	asked = make(chan string, 16)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked <- r.Header.Get("Authorization") + string(body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":%q},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", text)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/v1", asked
}

// foreignBridge puts a program called bridge, and one called session-actor, on a
// PATH. Each leaves a file if it is run.
func foreignBridge(t *testing.T) (path, ran string) {
	t.Helper()
	path = t.TempDir()
	ran = filepath.Join(path, "ran")
	for _, name := range []string{"bridge", "session-actor"} {
		if err := os.WriteFile(filepath.Join(path, name), []byte("#!/bin/sh\nenv > "+ran+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return path, ran
}

// TestDevCallsAServerOfOnesOwn as the bridge does, and runs no program that another
// package has put on the PATH under the name bridge.
func TestDevCallsAServerOfOnesOwn(t *testing.T) {
	t.Parallel()
	model, asked := chatServer(t, "hello from my machine")
	path, ran := foreignBridge(t)
	d, _, admin := startDevWith(t, []string{"PATH=" + path + ":" + os.Getenv("PATH"), "OPENAI_API_KEY=sk-of-openai"}, "--model", "local=openai-chat:"+model)
	defer func() { // killed, it would leave the program that asks
		if err := d.drain(time.Minute); err != nil {
			t.Error(err)
		}
	}()
	until(t, time.Minute, "what to do", func() bool { return strings.Contains(d.out.String(), "--provider local --model NAME") })
	if _, errOut := runOnce(t, 1, nil, "--context", admin, "run", "s1", "hi"); !strings.Contains(errOut, "give --provider and --model") {
		t.Errorf("without a model: %s", errOut)
	}
	tty := onTTY(t, "--context", admin, "run", "s1", "hi", "--provider", "local", "--model", "llama3.2:1b")
	if out, _ := tty.ends(0); !strings.Contains(out, "hello from my machine\n") {
		t.Errorf("got %q", out)
	}
	if got := <-asked; !strings.Contains(got, "llama3.2:1b") || strings.Contains(got, "sk-of-openai") {
		t.Errorf("the server is asked %q", got)
	}
	if env, err := os.ReadFile(ran); err == nil {
		t.Errorf("a foreign program ran with %d bytes of environment", len(env))
	}
}

// TestServeRunsTheProgramBesideIt: refold bridge serve and refold actor serve become
// the daemon: it has their process, arguments, signals and exit status.
func TestServeRunsTheProgramBesideIt(t *testing.T) {
	t.Parallel()
	url := startNATS(t)
	for name, args := range map[string][]string{
		"refold-session-actor": {"actor", "serve"},
		"refold-bridge":        {"bridge", "serve", "--model", "scripted:echo"},
	} {
		d := startDaemon(t, "refold", append([]string{"--nats", url, "--prefix", "mine"}, args...)...)
		until(t, time.Minute, name+" runs", func() bool { return strings.Contains(d.out.String(), "prefix=mine") })
		if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", d.cmd.Process.Pid)); err != nil || filepath.Base(exe) != name {
			t.Errorf("%v: the process is %s (%v), want %s", args, exe, err, name)
		}
		if err := d.drain(time.Minute); err != nil {
			t.Errorf("%v: after SIGTERM: %v", args, err)
		}
		d = startDaemon(t, "refold", append(args, "--nats", url)...)
		until(t, time.Minute, name+" runs", func() bool { return strings.Contains(d.out.String(), "prefix=refold") })
		if err := d.cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if err := d.cmd.Wait(); err != nil {
			t.Errorf("%v: after SIGINT: %v", args, err)
		}
		d.cmd = nil
		for flag, status := range map[string]int{"--help": 0, "--version": 0, "--no-such-flag": 2} {
			out, errOut, got := run(t, time.Minute, nil, "refold", append(args[:2:2], flag)...)
			if got != status || !strings.Contains(out+errOut, name) {
				t.Errorf("%v %s: status %d, want %d: %s%s", args, flag, got, status, out, errOut)
			}
		}
		if _, errOut, got := run(t, time.Minute, nil, "refold", append(args, "--nats", "nats://127.0.0.1:1")...); got != 1 || !strings.Contains(errOut, name+": no NATS server answers") {
			t.Errorf("%v without a server: status %d: %s", args, got, errOut)
		}
	}
}

// TestRefoldBecomesRefoldFull for the commands that only that program has: the
// arguments, the exit status and the completion are refold-full's.
func TestRefoldBecomesRefoldFull(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		args   []string
		want   string
	}{
		{0, []string{"bench", "--help"}, "Usage: refold bench"},
		{0, []string{"complete", "--", "bench", "runs", "--dur"}, "--durability\t"},
		{2, []string{"chaos", "--no-such-flag"}, "refold: unknown flag --no-such-flag; see refold chaos --help"},
		{2, []string{"--raw", "bench", "fold", "--runs", "0"}, "refold: bench: --runs must be above zero"},
		{1, []string{"--nats", "nats://127.0.0.1:1", "trace", "s1", "--json"}, "refold: no NATS server answers"},
	} {
		if out, errOut, got := run(t, time.Minute, nil, "refold", c.args...); got != c.status || !strings.Contains(out+errOut, c.want) {
			t.Errorf("%q: status %d, want %d and %q: %s%s", c.args, got, c.status, c.want, out, errOut)
		}
	}
	d := startDaemon(t, "refold", "dev", "--dir", t.TempDir(), "--port", "0", "--http", "127.0.0.1:0")
	until(t, time.Minute, "dev runs", func() bool { return strings.Contains(d.out.String(), "Metrics: http://127.0.0.1:") })
	if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", d.cmd.Process.Pid)); err != nil || filepath.Base(exe) != "refold-full" {
		t.Errorf("dev --http: the process is %s (%v), want refold-full", exe, err)
	}
	if err := d.drain(time.Minute); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}

// TestServeLooksBesideItAlone: without the daemon beside it, refold names the path
// that it looked at, and does not search the PATH.
func TestServeLooksBesideItAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	self := filepath.Join(dir, "refold")
	if err := os.Link(program("refold"), self); err != nil {
		t.Fatal(err)
	}
	path, ran := foreignBridge(t)
	for name, args := range map[string][]string{
		"refold-session-actor": {"actor", "serve"},
		"refold-bridge":        {"bridge", "serve", "--model", "openai"},
		"refold-full":          {"bench"},
		"refold-bridge, dev":   {"dev", "--dir", t.TempDir(), "--port", "0", "--model", "openai:m"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := exec.CommandContext(ctx, self, args...)
		cmd.Env = append(os.Environ(), "PATH="+path, "OPENAI_API_KEY=k")
		out, _ := cmd.CombinedOutput()
		cancel()
		name, _, _ = strings.Cut(name, ",")
		if got := cmd.ProcessState.ExitCode(); got != 1 || !strings.Contains(string(out), "no program at "+filepath.Join(dir, name)+":") {
			t.Errorf("%v: status %d: %s", args, got, out)
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a foreign program ran")
	}
}

// TestMissingKeyIsNamedAtTheStart, before any run waits for it.
func TestMissingKeyIsNamedAtTheStart(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"bridge", "serve", "--model", "openai"}, {"dev", "--dir", t.TempDir(), "--port", "0", "--model", "openai:m"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := exec.CommandContext(ctx, program("refold"), args...)
		cmd.Env = append(os.Environ(), "OPENAI_API_KEY=", "OPENAI_BASE_URL=")
		out, _ := cmd.CombinedOutput()
		cancel()
		if got := cmd.ProcessState.ExitCode(); got != 1 || !strings.Contains(string(out), "no key: set OPENAI_API_KEY") {
			t.Errorf("%v: status %d: %s", args, got, out)
		}
	}
}

// TestFirstDayAtATerminal: typos open no session, a request says what its number is,
// and a trace is of the latest run.
func TestFirstDayAtATerminal(t *testing.T) {
	t.Parallel()
	_, admin := startDev(t)
	onScreen := func(status int, want string, args ...string) {
		t.Helper()
		out, _ := onTTY(t, append([]string{"--context", admin}, args...)...).ends(status)
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("%q: got %q, want %s", args, out, want)
		}
	}
	onScreen(0, `^session hello: run 1 \(event \d+ of the log\)\n$`, "run", "hello", "wait", "--no-follow")
	onScreen(0, `^{"session":"hello","seq":\d+,"run":2,"queued":true}\n$`, "run", "hello", "hi", "--no-follow", "--json")
	onScreen(1, `^refold: rejected: run_active: `, "run", "hello", "hi", "--no-follow", "--when-busy", "reject")
	for _, verb := range []string{"steer", "cancel", "interrupt", "pause", "resume", "close"} {
		args := []string{verb, "helo"}
		if verb == "steer" {
			args = append(args, "Use the other file.")
		}
		onScreen(1, `^refold: session helo: the log holds no event of this session\n  refold sessions lists all`, args...)
	}
	onScreen(0, `(?s)SESSION.*hello`, "sessions", "--all")
	if out, _ := runOnce(t, 0, nil, "--context", admin, "sessions", "--all"); strings.Contains(out, "helo ") || strings.Contains(out, "helo\t") {
		t.Errorf("a typo opened a session:\n%s", out)
	}
	onScreen(0, `run 1 cancelled|run 2 is `, "cancel", "hello", "--run", "1")
	onScreen(0, `(?s)You said: bye.*run 3: `, "run", "hello", "bye")
	onScreen(0, `^r3 run scripted completed`, "trace", "hello")
	onScreen(0, `(?s)^r1 run scripted cancelled.*\nr2 run scripted.*\nr3 run`, "trace", "hello", "--all")
	onScreen(0, `^no run was active: the steer started run 1`, "steer", "fresh", "hi", "--new")
}

// TestWorkdirOfDevHoldsNoKeys: the default directory lies in the current one, where
// commands run with --workdir.
func TestWorkdirOfDevHoldsNoKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program("refold"), "dev", "--workdir", ".", "--port", "0")
	cmd.Dir = dir
	out, _ := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != 2 || !strings.Contains(string(out), "as in --dir "+dir+"-refold") {
		t.Errorf("status %d: %s", got, out)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("files %v, %v", files, err)
	}
}

// TestDeploymentPageIsValid: the role file of docs/deployment.md is accepted, and the
// daemons of the units take the flags of their settings with what refold roles writes.
// --version makes them read both and exit.
func TestDeploymentPageIsValid(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/deployment.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	roles := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)
	if roles == nil {
		t.Fatal("the page has no file of roles")
	}
	runOnce(t, 0, nil, "roles", "--file", writeFile(t, "roles.yaml", string(roles[1])), "--dir", dir)
	users := regexp.MustCompile(`users/refold/([\w-]+)`)
	text := page
	for name, program := range map[string]string{"session-actor": "session-actor", "bridge-models": "bridge", "bridge-tools": "bridge"} {
		settings, err := os.ReadFile("../deploy/systemd/" + name + ".env")
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, settings...)
		m := regexp.MustCompile(`(?m)^REFOLD_FLAGS="(.*)"$`).FindSubmatch(settings)
		if m == nil {
			t.Errorf("%s.env has no flags", name)
			continue
		}
		args := strings.Fields(strings.ReplaceAll(string(m[1]), "/etc/refold/roles", dir))
		if out, errOut, status := run(t, time.Minute, nil, program, append(args, "--version")...); status != 0 {
			t.Errorf("%s %q: status %d: %s%s", program, args, status, out, errOut)
		}
	}
	for _, m := range users.FindAllSubmatch(text, -1) {
		if _, err := os.Stat(filepath.Join(dir, "users", "refold", string(m[1]), "seed.nk")); err != nil {
			t.Errorf("the page or the settings name a user that it has not made: %v", err)
		}
	}
}
