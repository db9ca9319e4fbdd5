package sandbox_test

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/refold/refold/internal/tools/sandbox"
)

// What a memory cgroup does, where this machine lets the tests make one. Where it
// does not, the report must say so.

// killedName is what this program is called where it plays a bridge that is
// killed while a command runs.
const killedName = "is-killed"

func init() {
	maps.Copy(escapes, map[string]func(args []string) error{
		"fill sockets": fillSockets,
		"cgroup": func([]string) error {
			text, err := os.ReadFile("/proc/self/cgroup")
			fmt.Print(string(text))
			return err
		},
		"enter": func(args []string) error { return enter(args[0]) },
		"leave": func(args []string) error { return leave(args[0]) },
	})
}

// cgroupDir returns the directory in which commands of this process get memory
// cgroups, or "", and the memory cgroup of this process.
func cgroupDir(t *testing.T) (dir, own string) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/cgroup")
	must(t, err)
	at, path, v1 := "/sys/fs/cgroup/memory", "", false
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if v1 = v1 || fields[1] == "memory"; fields[1] == "memory" || fields[1] == "" && !v1 {
			path = fields[2]
		}
	}
	if !v1 {
		at = "/sys/fs/cgroup"
	}
	if own = at + path; path == "/" {
		own = at
	}
	if _, err := os.Stat(own); err != nil { // a container shows its own as the top
		own = at
	}
	dir = own
	if !v1 {
		dir = filepath.Dir(own)
		value := make([]byte, 1)
		if n, err := unix.Getxattr(dir, "user.delegate", value); own == at || err != nil || string(value[:n]) != "1" {
			return "", own
		}
	}
	try, err := os.MkdirTemp(dir, "test-") //nolint:usetesting // cgroups are made only here
	if err != nil {
		return "", own
	}
	must(t, os.Remove(try))
	return dir, own
}

// wantReport fails the test unless a report says how memory is bounded on this
// machine. It returns whether commands get cgroups.
func wantReport(t *testing.T, report sandbox.Report) bool {
	t.Helper()
	dir, _ := cgroupDir(t)
	want, line := "count and cgroup", "; memory by count and cgroup"
	if dir == "" {
		want, line = "count", "; memory by count (no cgroup: "
	}
	if report.Memory != want || !strings.Contains(report.String(), line) || (report.NoCgroup == "") != (dir != "") {
		t.Errorf("memory is bounded by %q (%s), and the report says %s; want %q: cgroups can be made in %q", report.Memory, report.NoCgroup, report, want, dir)
	}
	return dir != ""
}

// cgroupBoxes is boxes for tests of cgroups. It checks the report on every
// machine, and runs test where commands get cgroups.
func cgroupBoxes(t *testing.T, limits sandbox.Limits, test func(t *testing.T, b *sandbox.Box)) {
	t.Helper()
	boxes(t, sandbox.Config{Limits: limits}, sandbox.Memory, func(t *testing.T, b *sandbox.Box) {
		if wantReport(t, b.Report()) {
			test(t, b)
		}
	})
}

// TestAttackMemoryInSockets: no file in /proc shows what sockets carry, so the
// count misses it. Where commands have a cgroup, it is charged to that.
func TestAttackMemoryInSockets(t *testing.T) {
	t.Parallel()
	cgroupBoxes(t, sandbox.Limits{Memory: memoryLimit << 20}, func(t *testing.T, b *sandbox.Box) {
		if out, end := escape(t, b, t.TempDir(), "fill sockets", strconv.Itoa(2*memoryLimit)); end.Over != "memory" {
			t.Errorf("%d of %d MiB: %.300q, %+v; want it ended for its memory", 2*memoryLimit, memoryLimit, out, end)
		}
	})
}

// fillSockets holds memory in the queues of sockets.
func fillSockets(args []string) error {
	mib, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	piece, sent := make([]byte, 64<<10), 0
	for sent < mib<<20 {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return fmt.Errorf("after %d bytes: %w", sent, err)
		}
		for _, fd := range pair {
			if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 1<<20); err != nil {
				return err
			}
			for err = nil; err == nil; sent += len(piece) {
				_, err = unix.Write(fd, piece)
			}
			if sent -= len(piece); !errors.Is(err, unix.EAGAIN) {
				return err
			}
		}
	}
	fmt.Println("held")
	<-time.After(heldUntil)
	return nil
}

// TestAttackLeavesCgroup: root owns the files of its cgroups, and a command of
// root's has the same user.
func TestAttackLeavesCgroup(t *testing.T) {
	t.Parallel()
	cgroupBoxes(t, sandbox.Limits{}, func(t *testing.T, b *sandbox.Box) {
		out, end := escape(t, b, t.TempDir(), "cgroup")
		_, path, _ := strings.Cut(out, "/refold-")
		name, _, found := strings.Cut(path, "\n")
		if !found || end.Exit != 0 {
			t.Fatalf("cgroups of a command: %q, %+v; want one that was made for it", out, end)
		}
		dir, own := cgroupDir(t)
		if _, err := os.Stat(filepath.Join(dir, "refold-"+name)); !os.IsNotExist(err) {
			t.Errorf("the cgroup after the command: %v; want it removed", err)
		}
		control := exec.Command("/proc/self/exe")
		if control.Args = []string{escapeName, "enter", own}; control.Run() != nil {
			t.Error("without a sandbox the attack fails too, so it shows nothing")
		}
		for _, to := range []string{own, dir, filepath.Dir(dir), "/sys/fs/cgroup/memory", "/sys/fs/cgroup", "own"} {
			if out, end := escape(t, b, t.TempDir(), "leave", to); end.Exit != 7 {
				t.Errorf("enter %s, or raise its limit: %q, %+v; want it refused", to, out, end)
			}
		}
	})
}

// enter returns nil if this process can enter a cgroup.
func enter(dir string) error {
	return errors.Join(writeTo(dir, "cgroup.procs", "0"), writeTo(dir, "cgroup.procs", strconv.Itoa(os.Getpid())))
}

func writeTo(dir, name, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(value)
	return err
}

// leave returns nil if this process could enter a cgroup or make one in it; and if
// that is its own ("own"), also if it could raise its limit or change it otherwise.
func leave(dir string) error {
	var all []error
	if dir == "own" {
		text, err := os.ReadFile("/proc/self/cgroup")
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			if fields := strings.Split(strings.TrimSpace(line), ":"); strings.Contains(fields[2], "/refold-") {
				dir = filepath.Join("/sys/fs/cgroup", fields[1], fields[2])
			}
		}
		for _, name := range []string{"memory.max", "memory.memsw.limit_in_bytes", "memory.limit_in_bytes"} {
			all = append(all, writeTo(dir, name, strconv.Itoa(1<<40)))
		}
		all = append(all, os.Rename(dir, dir+"-renamed"), os.Chmod(dir, 0o777))
	}
	below := filepath.Join(dir, "made-by-a-command")
	all = append(all, os.Mkdir(below, 0o755), enter(dir))
	_ = os.Remove(below)
	for _, err := range all {
		if err == nil {
			return nil
		}
	}
	return errors.Join(all...)
}

// least returns a box without namespaces, nil where it has no cgroup.
func least(t *testing.T) *sandbox.Box {
	t.Helper()
	means := sandbox.Means()
	b, report, err := sandbox.NewBy(readsSelf(t), means[len(means)-1])
	must(t, err)
	if !wantReport(t, report) {
		return nil
	}
	return b
}

// TestCommandThatKillsItsSupervisorEnds: without a process namespace a command may
// kill the supervisor that counts and ends it. It stays in its cgroup.
func TestCommandThatKillsItsSupervisorEnds(t *testing.T) {
	t.Parallel()
	b := least(t)
	if b == nil {
		return
	}
	cmd, out := stays(t, b)
	must(t, cmd.Process.Kill())
	ended(t, cmd, out)
}

// TestLeftoverCgroupsAreRemoved: the next start ends what a killed bridge left in
// cgroups, and removes them. Those of bridges that run stay.
func TestLeftoverCgroupsAreRemoved(t *testing.T) {
	t.Parallel()
	b := least(t)
	if b == nil {
		return
	}
	running, itsOut := stays(t, b)
	out, in, err := os.Pipe()
	must(t, err)
	defer out.Close()
	self, err := os.Executable()
	must(t, err)
	killed := &exec.Cmd{Path: self, Args: []string{killedName, t.TempDir()}, Env: os.Environ(), Stdout: in, Stderr: os.Stderr}
	must(t, killed.Start())
	in.Close()
	_ = out.SetReadDeadline(time.Now().Add(giveUp))
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); err != nil || line != "stays\n" {
		t.Fatalf("the command: %q, %v; want it to say that it stays", line, err)
	}
	cgroups := func(of int) []string {
		dir, _ := cgroupDir(t)
		all, err := filepath.Glob(filepath.Join(dir, fmt.Sprintf("refold-*-%d-*", of)))
		must(t, err)
		return all
	}
	must(t, killed.Process.Kill())
	_ = killed.Wait()
	if left := cgroups(killed.Process.Pid); len(left) != 1 {
		t.Errorf("cgroups of the killed bridge: %q; want one", left)
	}
	_, _, err = sandbox.New(sandbox.Config{})
	must(t, err)
	if left := cgroups(killed.Process.Pid); len(left) != 0 {
		t.Errorf("cgroups of the killed bridge after another start: %q; want none", left)
	}
	if rest, err := lines.ReadString('\n'); rest != "" || !strings.Contains(fmt.Sprint(err), "EOF") {
		t.Errorf("the command of the killed bridge: %q, %v; want it ended", rest, err)
	}
	if left := cgroups(os.Getpid()); len(left) == 0 {
		t.Error("the cgroup of a running command was removed")
	}
	running.Stop()
	ended(t, running, itsOut)
}

// isKilled starts a command that kills its supervisor, and waits to be killed.
func isKilled(dir string) error {
	means := sandbox.Means()
	b, _, err := sandbox.NewBy(sandbox.Config{}, means[len(means)-1])
	if err != nil {
		return err
	}
	cmd := b.Command([]string{"/bin/sh", "-c", "kill -9 $PPID; echo stays; exec /bin/sleep 1000"}, dir, nil)
	cmd.Stdout = os.Stdout
	if err := cmd.Start(); err != nil {
		return err
	}
	return forever()
}
