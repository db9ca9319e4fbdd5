//go:build linux

package e2e_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/refold/refold/actors/session"
)

// hostileText is what a model says: it sets the clipboard, in both forms of the
// sequence, clears the screen, turns text around and hides some.
const hostileText = "see\x1b]52;c;cm0gLXJmIC8=\a\u009d52;c;eA==\u009c\x1b[2J file\u202egnp.exe\u2066 zero\u200bwidth\u2060\U000e0041\r."

// hostileTextYAML is hostileText in a script.
var hostileTextYAML = strings.Trim(strconv.QuoteToASCII(hostileText), `"`)

// terminal is a pseudo-terminal, and what was printed on it.
type terminal struct {
	theirs *os.File
	ours   *os.File
	output
	over chan struct{}
}

func openTerminal(t *testing.T) *terminal {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	var theirs *os.File
	var n int
	if err == nil {
		n, err = unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	}
	if err == nil {
		err = unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		theirs, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(errors.Join(errors.New("open a pseudo-terminal"), err))
	}
	tty := &terminal{theirs: theirs, ours: ours, over: make(chan struct{})}
	go func() {
		defer close(tty.over)
		_, _ = io.Copy(&tty.output, ours) // ends when nobody has the terminal open
	}()
	t.Cleanup(func() { theirs.Close(); <-tty.over; ours.Close() })
	return tty
}

// start starts refold on the terminal.
func (tty *terminal) start(ctx context.Context, t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(ctx, program("refold"), args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty.theirs, tty.theirs, tty.theirs
	cmd.Env = append(os.Environ(), "TERM=xterm")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// onTerminal runs refold on a terminal of its own and returns what it printed there.
func onTerminal(t *testing.T, args ...string) string {
	t.Helper()
	tty := openTerminal(t)
	ctx, cancel := context.WithTimeout(t.Context(), endWithin)
	defer cancel()
	_ = tty.start(ctx, t, args...).Wait() // some of them fail
	if ctx.Err() != nil {
		t.Errorf("refold %v does not end", args)
	}
	tty.theirs.Close()
	<-tty.over
	return tty.String()
}

// clearStatus is what takes refold's own status line away.
const clearStatus = "\r\x1b[K"

// obeyed returns the characters of hostileText that a terminal would obey and that
// are in a text. Lines end with a carriage return on a terminal.
func obeyed(text string) (found []string) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.ReplaceAll(text, clearStatus, "")
	for _, r := range []rune{'\x1b', '\a', '\u009d', '\u009c', '\u202e', '\u2066', '\u200b', '\u2060', '\U000e0041', '\r'} {
		if strings.ContainsRune(text, r) {
			found = append(found, strconv.QuoteRuneToASCII(r))
		}
	}
	return found
}

// answers waits for a first run.
func (s *system) answers(t *testing.T) {
	t.Helper()
	heard := listen(t, s.nc, "refold.out.s1")
	s.run(session.DoorIn, "s1", "hello", scripted)
	waitFinished(t, heard, 1)
}

// TestAttackTerminal: texts of models and errors are escaped on a terminal, in
// every command; --raw and a pipe get them unchanged.
func TestAttackTerminal(t *testing.T) {
	t.Parallel()
	s := startSystem(t, nil)
	s.models("rules:\n  - shown: {asked: ^fail}\n    fail: {code: bad, detail: \""+hostileTextYAML+"\"}\n  - say: \""+hostileTextYAML+"\"\n", "scripted")
	s.answers(t)
	conn := []string{"--nats", s.url, "--provider", "scripted", "--model", "m"}
	command := func(args ...string) []string { return append(args, conn...) }

	if got := onTerminal(t, command("run", "s1", "hello")...); len(obeyed(got)) > 0 || !strings.Contains(got, `see\x1b]52;c;cm0gLXJmIC8=\x07\x9d52`) || !strings.Contains(got, `zero\u200bwidth`) {
		t.Errorf("run: %q, of which the terminal obeys %v", got, obeyed(got))
	}
	if got := onTerminal(t, command("--raw", "run", "s1", "again")...); !strings.Contains(got, hostileText) {
		t.Errorf("run --raw: %q, want what the model says as it is", got)
	}
	if out, errOut, status := run(t, endWithin, nil, "refold", command("run", "s1", "more")...); status != 0 || !strings.Contains(out, hostileText) {
		t.Errorf("run into a pipe: %q, %s, want what the model says as it is", out, errOut)
	}
	for name, args := range map[string][]string{
		"a failure":          command("run", "s1", "fail"),
		"view":               {"view", "s1", "--nats", s.url},
		"replay":             {"replay", "s1", "--nats", s.url},
		"a session's name":   {"view", hostileText, "--nats", s.url},
		"an unknown flag":    {"run", "--" + hostileText},
		"an unknown command": {hostileText},
		"a value of a flag":  {"run", "s1", "x", "--when-busy", hostileText},
		"a server":           {"view", "s1", "--nats", "nats://" + hostileText},
		"a file":             {"install", "/" + hostileText, "--nats", s.url},
	} {
		if got := onTerminal(t, args...); len(obeyed(got)) > 0 || got == "" {
			t.Errorf("%s: %q, of which the terminal obeys %v", name, got, obeyed(got))
		}
	}
}

// TestAttackTerminalTail: the same for notices and streamed text of a followed
// session.
func TestAttackTerminalTail(t *testing.T) {
	t.Parallel()
	s := startSystem(t, nil)
	s.models("rules:\n  - say: \""+hostileTextYAML+"\"\n", "scripted")
	s.answers(t)
	tty := openTerminal(t)
	ctx, cancel := context.WithCancel(t.Context())
	tail := tty.start(ctx, t, "tail", "s1", "--nats", s.url)
	defer func() { cancel(); _ = tail.Wait() }()
	asked := time.Time{}
	until(t, endWithin, "tail shows a run", func() bool {
		if time.Since(asked) > time.Second { // it may not listen yet
			asked = time.Now()
			s.run(session.DoorIn, "s1", hostileText, scripted)
		}
		return strings.Contains(tty.String(), `see\x1b]52;c;`)
	})
	if got := tty.String(); len(obeyed(got)) > 0 {
		t.Errorf("tail: %q, of which the terminal obeys %v", got, obeyed(got))
	}
}

// TestAttackTerminalDaemon: the same for a daemon's log.
func TestAttackTerminalDaemon(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bridge", "session-actor"} {
		tty := openTerminal(t)
		cmd := exec.CommandContext(t.Context(), program(name), "--nats", "nats://127.0.0.1:1", "--prefix", "a", "--"+hostileText)
		cmd.Stdout, cmd.Stderr = tty.theirs, tty.theirs
		if err := cmd.Run(); err == nil {
			t.Errorf("%s starts", name)
		}
		tty.theirs.Close()
		<-tty.over
		if got := tty.String(); len(obeyed(got)) > 0 || !strings.Contains(got, `\x1b`) {
			t.Errorf("%s: %q, of which the terminal obeys %v", name, got, obeyed(got))
		}
	}
}

// TestApproveAsksOnTerminal: the writer that spells out is a terminal still.
func TestApproveAsksOnTerminal(t *testing.T) {
	t.Parallel()
	if got := onTerminal(t, "approve", "s1", "r1t1c0", "--nats", "nats://127.0.0.1:1"); strings.Contains(got, "there is none") || got == "" {
		t.Errorf("approve on a terminal says %q, want that it asks", got)
	}
}

// TestAttackTerminalFileName: the name of a file in a workspace that somebody else made
// is escaped on a terminal.
func TestAttackTerminalFileName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := "docs/\x1b]52;c;cm0gLXJmIC8=\a\u009d.md"
	folder(t, dir, map[string]string{
		"agent.workspace.json": `{"v": 1, "name": "support", "context": {"docs": ["docs/**/*.md"]}}`,
		name:                   "x",
	})
	for _, args := range [][]string{{"space", "check", dir}, {"space", "check", dir + "/" + name}} {
		if got := onTerminal(t, args...); len(obeyed(got)) > 0 || len(got) == 0 {
			t.Errorf("refold %q: %q, of which the terminal obeys %v", args, got, obeyed(got))
		}
	}
}
