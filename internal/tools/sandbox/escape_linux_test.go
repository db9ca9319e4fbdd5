package sandbox_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/refold/refold/internal/tools/sandbox"
)

// Every escape is tried in every way to start children that works on this
// system. If a guarantee does not hold, the report must say so; then the escape
// is not tried. Nothing is skipped silently.

// giveUp is when a test stops waiting for a command: all of them end by
// themselves, or are killed by what is tested.
const giveUp = 60 * time.Second

// boxes runs test in each way that works here.
func boxes(t *testing.T, c sandbox.Config, g sandbox.Guarantee, test func(t *testing.T, b *sandbox.Box)) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	c.Read = append(c.Read, self) // commands are this program, played otherwise
	for i, means := range sandbox.Means() {
		t.Run(strings.ReplaceAll(means, " ", "_"), func(t *testing.T) {
			t.Parallel()
			b, report, err := sandbox.NewBy(c, means)
			if err != nil {
				if i == len(sandbox.Means())-1 {
					t.Fatalf("the way without namespaces: %v", err)
				}
				// New goes on to the next way, and says what it lacks.
				_, report, again := sandbox.New(c)
				if again != nil || report.Means == means {
					t.Fatalf("New: %v, %v; want another way than %s, which fails: %v", report, again, means, err)
				}
				return
			}
			if !report.Holds(g) {
				if !strings.Contains(report.String(), "not enforced: ") || !strings.Contains(report.Lacks(), string(g)+" (") {
					t.Errorf("%s does not hold, and the report does not say so: %s", g, report)
				}
				return
			}
			test(t, b)
		})
	}
}

// run runs a command and returns what it wrote and how it ended.
func run(t *testing.T, b *sandbox.Box, dir string, env []string, argv ...string) (string, sandbox.End) {
	t.Helper()
	return outcome(t, b.Command(argv, dir, env))
}

// outcome starts a command, and returns what it wrote and how it ended.
func outcome(t *testing.T, cmd *sandbox.Confined) (string, sandbox.End) {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	must(t, cmd.Start())
	late := time.AfterFunc(giveUp, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	_ = cmd.Wait() // End tells
	end, err := cmd.End()
	if err != nil {
		t.Fatalf("end of the command: %v; it wrote %q", err, out.String())
	}
	if end.Fault != "" {
		t.Fatalf("the command did not start: %s", end.Fault)
	}
	return out.String(), end
}

// escape runs this program as a command that wants to get out.
func escape(t *testing.T, b *sandbox.Box, dir string, args ...string) (string, sandbox.End) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	// The shell gives the name, as a command line would.
	line := `exec_self() { exec -a escape "$@"; }; exec_self "$@"`
	return run(t, b, dir, []string{"PATH=/usr/bin:/bin"}, append([]string{"/bin/bash", "-c", line, "bash", self}, args...)...)
}

func TestFilesOutside(t *testing.T) {
	t.Parallel()
	boxes(t, sandbox.Config{}, sandbox.Files, func(t *testing.T, b *sandbox.Box) {
		dir, outside := t.TempDir(), t.TempDir()
		secret := filepath.Join(outside, "secret")
		must(t, os.WriteFile(secret, []byte("x"), 0o644))
		source, err := filepath.Abs("escape_linux_test.go")
		must(t, err)
		for _, name := range []string{"/etc/shadow", secret, "/proc/" + strconv.Itoa(os.Getpid()) + "/environ", source} {
			if out, end := escape(t, b, dir, "read", name); end.Exit != 7 {
				t.Errorf("read %s: %q, %+v; want it refused", name, out, end)
			}
		}
		for _, name := range []string{filepath.Join(outside, "new"), secret, "/usr/refold-was-here", "/etc/passwd", "/tmp/refold-was-here"} {
			if out, end := escape(t, b, dir, "write", name); end.Exit != 7 {
				t.Errorf("write %s: %q, %+v; want it refused", name, out, end)
			}
		}
		if out, end := escape(t, b, dir, "write", filepath.Join(dir, "own")); end.Exit != 0 {
			t.Errorf("write inside: %q, %+v; want it allowed", out, end)
		}
		line := "mkdir a b && echo hi > a/f && mv a/f b/g && ln -s " + secret + " link && ! cat link && cat b/g /etc/passwd > /dev/null"
		if out, end := run(t, b, dir, nil, "/bin/sh", "-c", "PATH=/usr/bin:/bin; "+line); end.Exit != 0 {
			t.Errorf("%s: %q, %+v; want exit status 0", line, out, end)
		}
	})
}

func TestNetworkOutside(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	boxes(t, sandbox.Config{}, sandbox.Network, func(t *testing.T, b *sandbox.Box) {
		dir := t.TempDir()
		if out, end := escape(t, b, dir, "connect", listener.Addr().String()); end.Exit != 7 {
			t.Errorf("connect: %q, %+v; want it refused", out, end)
		}
		out, end := escape(t, b, dir, "loopback")
		if b.Command(nil, dir, nil).KillsDescendants() && end.Exit != 0 {
			t.Errorf("its own loopback: %q, %+v; want it to work in a namespace", out, end)
		}
	})
}

func TestNetworkAllowed(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	boxes(t, sandbox.Config{Network: true}, sandbox.CPU, func(t *testing.T, b *sandbox.Box) {
		if out, end := escape(t, b, t.TempDir(), "connect", listener.Addr().String()); end.Exit != 0 {
			t.Errorf("connect where it is allowed: %q, %+v; want success", out, end)
		}
	})
}

func TestForkBomb(t *testing.T) {
	t.Parallel()
	boxes(t, sandbox.Config{Limits: sandbox.Limits{Processes: 40}}, sandbox.Processes, func(t *testing.T, b *sandbox.Box) {
		// It never ends by itself: each process starts others until it is killed or
		// can start no more.
		out, end := run(t, b, t.TempDir(), nil, "/bin/sh", "-c", `n=0; while [ $n -lt 400 ]; do /bin/sleep 1000 & n=$((n+1)); done || exit 9; wait`)
		if end.Over != "processes" && end.Exit == 0 {
			t.Errorf("400 processes at once: %.200q, %+v; want the command ended, or processes refused", out, end)
		}
	})
}

// The program that uses memory is not the test binary: the race detector
// reserves more than the limit.
func TestMemory(t *testing.T) {
	t.Parallel()
	hold := func(t *testing.T, b *sandbox.Box, mib int) (string, sandbox.End) {
		return run(t, b, t.TempDir(), nil, "/bin/sh", "-c", fmt.Sprintf("head -c %[1]d /dev/zero | tail -c %[1]d >/dev/null", mib<<20))
	}
	const limit = 256
	boxes(t, sandbox.Config{Limits: sandbox.Limits{Memory: limit << 20}}, sandbox.Memory, func(t *testing.T, b *sandbox.Box) {
		if out, end := hold(t, b, 32); end.Exit != 0 {
			t.Errorf("32 of %d MiB: %.200q, %+v; want success", limit, out, end)
		}
		if out, end := hold(t, b, 2*limit); end.Exit == 0 {
			t.Errorf("twice %d MiB: %.200q, %+v; want it ended", limit, out, end)
		}
	})
}

func TestMemoryTogether(t *testing.T) {
	t.Parallel()
	boxes(t, sandbox.Config{Limits: sandbox.Limits{Memory: 256 << 20}}, sandbox.Ends, func(t *testing.T, b *sandbox.Box) {
		// Each tail holds what it has read, until the end that does not come.
		line := fmt.Sprintf(`PATH=/usr/bin:/bin; for i in 1 2 3 4; do (head -c %[1]d /dev/zero; exec sleep 1000) | tail -c %[1]d >/dev/null & done; wait`, 100<<20)
		if out, end := run(t, b, t.TempDir(), nil, "/bin/sh", "-c", line); end.Over != "memory" {
			t.Errorf("four times 100 of 256 MiB: %.200q, %+v; want it ended for its memory", out, end)
		}
	})
}

func TestCPU(t *testing.T) {
	t.Parallel()
	boxes(t, sandbox.Config{Limits: sandbox.Limits{CPU: time.Second}}, sandbox.CPU, func(t *testing.T, b *sandbox.Box) {
		if out, end := run(t, b, t.TempDir(), nil, "/bin/sh", "-c", "while :; do :; done"); end.Signal != int(syscall.SIGXCPU) {
			t.Errorf("a loop: %q, %+v; want signal %v", out, end, syscall.SIGXCPU)
		}
	})
}

func TestFileSize(t *testing.T) {
	t.Parallel()
	boxes(t, sandbox.Config{Limits: sandbox.Limits{FileSize: 1 << 20}}, sandbox.FileSize, func(t *testing.T, b *sandbox.Box) {
		dir := t.TempDir()
		out, end := run(t, b, dir, nil, "/bin/sh", "-c", "exec /bin/cat /dev/zero > big")
		if end.Exit == 0 {
			t.Errorf("a file without end: %q, %+v; want it ended", out, end)
		}
		if fi, err := os.Stat(filepath.Join(dir, "big")); err != nil || fi.Size() > 1<<20 {
			t.Errorf("the file: %v, %v; want at most 1 MiB", fi, err)
		}
	})
}

func TestPrivileges(t *testing.T) {
	t.Parallel()
	boxes(t, sandbox.Config{}, sandbox.Privileges, func(t *testing.T, b *sandbox.Box) {
		out, end := escape(t, b, t.TempDir(), "privileges")
		if end.Exit != 7 || !strings.Contains(out, "CapEff:\t0000000000000000\n") || !strings.Contains(out, "NoNewPrivs:\t1\n") {
			t.Errorf("mount: %q, %+v; want it refused, without capabilities or a way to get some", out, end)
		}
	})
}

// The limits would end the supervisor too: a runtime may reserve more by itself.
func TestLimitsDoNotApplyToTheSupervisor(t *testing.T) {
	t.Parallel()
	boxes(t, sandbox.Config{Limits: sandbox.Limits{Memory: 123 << 20}}, sandbox.Memory, func(t *testing.T, b *sandbox.Box) {
		const line = `PATH=/usr/bin:/bin; for pid in $$ $PPID; do sed -n 's/^Max data size *\([a-z0-9]*\) .*/\1/p' /proc/$pid/limits; done`
		var own syscall.Rlimit
		must(t, syscall.Getrlimit(syscall.RLIMIT_DATA, &own))
		supervisor := fmt.Sprint(own.Cur)
		if own.Cur == math.MaxUint64 {
			supervisor = "unlimited"
		}
		want := fmt.Sprintf("%d\n%s\n", 123<<20, supervisor)
		if out, end := run(t, b, t.TempDir(), nil, "/bin/sh", "-c", line); out != want || end.Exit != 0 {
			t.Errorf("data size of the command and of its supervisor: %q, %+v; want %q", out, end, want)
		}
	})
}

// The supervisor's last messages are in the error, and not in the command's output.
func TestFailureOfTheSupervisorIsReported(t *testing.T) {
	t.Parallel()
	boxes(t, sandbox.Config{}, sandbox.CPU, func(t *testing.T, b *sandbox.Box) {
		cmd := b.Command([]string{"/bin/sh", "-c", "echo begun >&2; read line"}, t.TempDir(), nil)
		if _, err := cmd.StdinPipe(); err != nil { // its end ends the command too
			t.Fatal(err)
		}
		out, err := cmd.StderrPipe()
		must(t, err)
		must(t, cmd.Start())
		late := time.AfterFunc(giveUp, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		said := make([]byte, len("begun\n"))
		if _, err := io.ReadFull(out, said); err != nil || string(said) != "begun\n" {
			t.Fatalf("the command: %q, %v; want it to say that it has begun", said, err)
		}
		must(t, cmd.Process.Signal(syscall.SIGABRT))
		_ = cmd.Wait()
		if end, err := cmd.End(); err == nil || !strings.Contains(err.Error(), "the supervisor of the command failed: SIGABRT: abort") {
			t.Errorf("end: %+v, %v; want what the runtime said", end, err)
		}
	})
}

// TestDescendants: a grandchild in a session of its own, which ignores signals,
// holds the pipe that we read. The pipe ends when no process holds it any more.
func TestDescendants(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*sandbox.Confined) error{
		"asked":      func(c *sandbox.Confined) error { c.Stop(); return nil },
		"killed":     func(c *sandbox.Confined) error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) },
		"first dies": func(c *sandbox.Confined) error { return c.Process.Kill() },
	} {
		boxesNamed(t, name, sandbox.Config{}, sandbox.Ends, func(t *testing.T, b *sandbox.Box) {
			cmd, out := stays(t, b)
			must(t, stop(cmd))
			ended(t, cmd, out)
		})
	}
	t.Run("without a namespace", func(t *testing.T) { // asked to, the supervisor ends them all the same
		t.Parallel()
		means := sandbox.Means()
		b, _, err := sandbox.NewBy(readsSelf(t), means[len(means)-1])
		must(t, err)
		cmd, out := stays(t, b)
		cmd.Stop()
		ended(t, cmd, out)
	})
}

func boxesNamed(t *testing.T, name string, c sandbox.Config, g sandbox.Guarantee, test func(t *testing.T, b *sandbox.Box)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		boxes(t, c, g, test)
	})
}

func readsSelf(t *testing.T) sandbox.Config {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	return sandbox.Config{Read: []string{self}}
}

// stays starts a command whose grandchild stays, and returns when it does.
func stays(t *testing.T, b *sandbox.Box) (*sandbox.Confined, *os.File) {
	t.Helper()
	out, in, err := os.Pipe()
	must(t, err)
	t.Cleanup(func() { out.Close() })
	cmd := b.Command([]string{"/bin/bash", "-c", `exec -a escape "$0" stay`, readsSelf(t).Read[0]}, t.TempDir(), nil)
	cmd.Stdout = in
	must(t, cmd.Start())
	in.Close()
	_ = out.SetReadDeadline(time.Now().Add(giveUp))
	said := make([]byte, len("stays\n"))
	if _, err := io.ReadFull(out, said); err != nil || string(said) != "stays\n" {
		t.Fatalf("the grandchild: %q, %v; want it to say that it stays", said, err)
	}
	return cmd, out
}

func ended(t *testing.T, cmd *sandbox.Confined, out *os.File) {
	t.Helper()
	_ = cmd.Wait()
	_, _ = cmd.End()
	if rest, err := io.ReadAll(out); err != nil {
		t.Errorf("the grandchild holds its output after the end of all: %q, %v", rest, err)
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-secret")
	b, _, err := sandbox.New(sandbox.Config{})
	if err != nil || b == nil {
		t.Fatalf("New: %v, %v; want a sandbox", b, err)
	}
	out, end := run(t, b, t.TempDir(), []string{"LANG=C"}, "/usr/bin/env")
	if out != "LANG=C\n" || end.Exit != 0 {
		t.Errorf("environment: %q, %+v; want LANG alone", out, end)
	}
	if out, _ := run(t, b, t.TempDir(), nil, "/bin/sh", "-c", "cat /proc/1/environ; true"); strings.Contains(out, "secret") {
		t.Errorf("environment of the supervisor: %q; want no secret", out)
	}
}
