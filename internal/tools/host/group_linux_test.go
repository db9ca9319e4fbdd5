package host

// The end of processes, by their ids. A command writes the ids to a named pipe,
// from which the test reads: then they run. The test waits for their end with
// the kernel's own notification (pidfd).

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/tools/sandbox"
)

// Modes in which the test binary runs itself.
const (
	envMode   = "HOST_TEST_MODE"
	modeHold  = "hold"  // leave the process group, say the id, hold the output
	modeServe = "serve" // execute one call in HOST_TEST_ROOT
	envRoot   = "HOST_TEST_ROOT"
	envShell  = "HOST_TEST_SHELL" // what it executes; default: say the id and wait
)

func TestMain(m *testing.M) {
	sandbox.Child()
	switch os.Getenv(envMode) {
	case modeHold:
		os.Exit(hold())
	case modeServe:
		os.Exit(serve())
	}
	os.Exit(m.Run())
}

// hold is a process that leaves its group and then waits to be ended.
func hold() int {
	if _, err := syscall.Setsid(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	if err := os.WriteFile("ids", fmt.Appendf(nil, "%d\n", os.Getpid()), 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	<-ended
	return 0
}

// serve is a bridge's process in the middle of a command.
func serve() int {
	h := New(os.Getenv(envRoot), Options{})
	open, err := h.Execute(context.Background(), executor.Call{Session: rigSession, ToolID: ToolSessionOpen, IdempotencyKey: "k"})
	if err != nil || open.Error != nil {
		fmt.Fprintln(os.Stderr, err, open.Error)
		return 1
	}
	arguments, err := json.Marshal(execArguments{Command: cmp.Or(os.Getenv(envShell), "echo $$ > ids; read never < gate; echo unreachable")})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_, err = h.Execute(context.Background(), executor.Call{Session: rigSession, ToolID: ToolExec, HostSession: open.HostSession, Arguments: arguments})
	fmt.Fprintln(os.Stderr, "the command ended", err)
	return 1
}

// process is a running process that the test holds on to.
type process struct{ pid, fd int }

// readIDs waits until a command has written n process ids to the pipe.
func readIDs(t *testing.T, pipe string, n int) []process {
	t.Helper()
	// Open for both, the pipe neither waits for a writer nor ends with it, and
	// can have a deadline.
	f, err := os.OpenFile(pipe, os.O_RDWR|syscall.O_NONBLOCK, 0)
	must(t, err)
	defer f.Close()
	must(t, f.SetReadDeadline(time.Now().Add(time.Minute)))
	var found []process
	for lines := bufio.NewScanner(f); len(found) < n && lines.Scan(); {
		var p process
		if _, err := fmt.Sscan(lines.Text(), &p.pid); err != nil {
			t.Fatal(err)
		}
		if p.fd, err = unix.PidfdOpen(p.pid, 0); err != nil {
			t.Fatalf("process %d doesn't run: %v", p.pid, err)
		}
		t.Cleanup(func() { _ = unix.Close(p.fd) })
		if p.gone(t, 0) {
			t.Fatalf("process %d has ended already", p.pid)
		}
		found = append(found, p)
	}
	if len(found) < n {
		t.Fatalf("read %d process ids, want %d", len(found), n)
	}
	return found
}

// gone reports whether the process ends within a time.
func (p process) gone(t *testing.T, within time.Duration) bool {
	t.Helper()
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}, int(within.Milliseconds()))
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		must(t, err)
		return n == 1
	}
}

func wantGone(t *testing.T, all []process) {
	t.Helper()
	for _, p := range all {
		if !p.gone(t, time.Minute) {
			t.Errorf("process %d still runs", p.pid)
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
	}
}

// family starts a child in the background and a grandchild below it, writes
// three ids to the pipe, and then goes on as said.
const family = `sh -c 'sleep 300 & echo $! > kid; sleep 300' &
	while ! [ -s kid ]; do :; done
	{ echo $$; echo $!; cat kid; } > ids
	`

// TestGroupIsKilled: on cancel and on timeout, the command ends with all its
// descendants, also those in the background.
func TestGroupIsKilled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		timeout int
		cancel  bool
	}{
		{"cancel", 600_000, true},
		{"timeout", 15_000, false}, // in which a busy machine, too, starts three processes,
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Options{}, nil)
			mkfifo(t, filepath.Join(r.dir, "ids"))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			call := r.newCall(ToolExec, args{"command": family + "echo partial; wait", "timeout_ms": c.timeout})
			done := make(chan executor.Result, 1)
			go func() {
				got, _ := r.h.Execute(ctx, call)
				done <- got
			}()
			all := readIDs(t, filepath.Join(r.dir, "ids"), 3)
			if c.cancel {
				cancel()
			}
			got := <-done
			wantGone(t, all)
			if got.Unknown != c.cancel {
				t.Errorf("unknown is %t, want %t: %+v", got.Unknown, c.cancel, got)
			}
			if !c.cancel && (got.Error == nil || got.Error.Code != CodeTimeout) {
				t.Errorf("got %+v, want %s", got, CodeTimeout)
			}
			if c.cancel {
				wantIn(t, got.Output, "stopped: the call was cancelled")
			}
		})
	}
}

// TestBackgroundEndsWithItsCall: a process in the background that holds the
// output neither delays the call nor outlives it.
func TestBackgroundEndsWithItsCall(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}, nil)
	mkfifo(t, filepath.Join(r.dir, "ids"))
	mkfifo(t, filepath.Join(r.dir, "gate"))
	call := r.newCall(ToolExec, args{"command": family + "read go < gate; echo shell done"})
	done := make(chan executor.Result, 1)
	go func() {
		got, _ := r.h.Execute(t.Context(), call)
		done <- got
	}()
	all := readIDs(t, filepath.Join(r.dir, "ids"), 3)
	must(t, os.WriteFile(filepath.Join(r.dir, "gate"), []byte("go\n"), 0))
	got := <-done
	wantOutput(t, "output", got.Output, "exit status 0\nshell done\n")
	if got.Error != nil {
		t.Errorf("got %v", got.Error)
	}
	wantGone(t, all)
}

// TestHeldOutputDoesNotBlockTheCall: a process that left the group and holds
// the output delays the call only for a moment, and the result says so.
func TestHeldOutputDoesNotBlockTheCall(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	must(t, err)
	r := newRig(t, Options{EnvironAdd: []string{envMode + "=" + modeHold}}, nil)
	mkfifo(t, filepath.Join(r.dir, "ids"))
	mkfifo(t, filepath.Join(r.dir, "gate"))
	call := r.newCall(ToolExec, args{"command": "'" + self + "' & read go < gate; echo shell done"})
	done := make(chan executor.Result, 1)
	go func() {
		got, _ := r.h.Execute(t.Context(), call)
		done <- got
	}()
	holder := readIDs(t, filepath.Join(r.dir, "ids"), 1)[0]
	defer func() { _ = syscall.Kill(holder.pid, syscall.SIGKILL) }()
	must(t, os.WriteFile(filepath.Join(r.dir, "gate"), []byte("go\n"), 0))
	got := <-done
	wantIn(t, got.Output, "exit status 0\nshell done\n", "still holds its output")
	if holder.gone(t, 0) {
		t.Error("the process outside of the group was ended; the tool can't have meant to")
	}
}

// TestKilledBridgeEndsItsShell: when a bridge is killed, its shell ends, and
// another bridge continues with the session.
func TestKilledBridgeEndsItsShell(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := filepath.Join(root, rigSession)
	must(t, os.Mkdir(dir, 0o755))
	mkfifo(t, filepath.Join(dir, "ids"))
	mkfifo(t, filepath.Join(dir, "gate"))
	self, err := os.Executable()
	must(t, err)
	var out bytes.Buffer
	b := exec.Command(self)
	b.Env = append(os.Environ(), envMode+"="+modeServe, envRoot+"="+root)
	b.Stdout, b.Stderr = &out, &out
	must(t, b.Start())
	shell := readIDs(t, filepath.Join(dir, "ids"), 1)
	must(t, b.Process.Kill())
	_ = b.Wait()
	wantGone(t, shell)
	if strings.Contains(out.String(), "ended") {
		t.Errorf("the bridge says %q", out.String())
	}
	h := New(root, Options{})
	hs := &executor.HostSession{ID: hostSessionID(executor.Call{IdempotencyKey: "k"}), Status: statusReady}
	got, err := h.Execute(t.Context(), executor.Call{
		Session: rigSession, ToolID: ToolExec, HostSession: hs, Arguments: []byte(`{"command":"ls"}`),
	})
	if err != nil || got.Error != nil || got.Output != "exit status 0\ngate\nids\n" {
		t.Errorf("got %q %v, %v, want the files of the session", got.Output, got.Error, err)
	}
}
