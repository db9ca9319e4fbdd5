package places_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// process is how a program runs in a directory of its own, as in a container.
type process struct {
	root     string // its / ; "" is the system's
	netns    string // its network namespace; "" is that of the test
	uid, gid uint32
	dir      string
	env      []string // all of it
	confined bool     // without capabilities, and without a way to get any
	pivot    bool     // its / is that of its mounts, too, as systemd has it: the kernel refuses namespaces to others
}

// pivoted returns the same process with its root as that of its mounts.
func (p process) pivoted() process {
	p.pivot = true
	return p
}

// command prepares a program by its path in the directory.
func (p process) command(argv ...string) *exec.Cmd {
	if p.pivot {
		const script = `cd "$1" && mkdir -p run/old && pivot_root . run/old && umount -l run/old && shift && exec setpriv --reuid="$1" --regid="$2" --clear-groups -- env -C / "${@:3}"`
		enter := []string{"/usr/bin/unshare", "--mount", "bash", "-euc", script, "bash", p.root, fmt.Sprint(p.uid), fmt.Sprint(p.gid)}
		return &exec.Cmd{Path: enter[0], Args: append(enter, argv...), Env: p.env, SysProcAttr: &syscall.SysProcAttr{}}
	}
	return &exec.Cmd{
		Path: argv[0], Args: argv, Env: p.env, Dir: "/" + strings.TrimPrefix(p.dir, "/"),
		SysProcAttr: &syscall.SysProcAttr{Chroot: p.root, Credential: &syscall.Credential{Uid: p.uid, Gid: p.gid}},
	}
}

// found replaces the name of a program by its path, as a container engine and systemd do.
func (p process) found(t testing.TB, argv []string) []string {
	t.Helper()
	for _, dir := range []string{"/usr/local/bin", "/usr/bin", "/bin"} {
		at := filepath.Join(dir, argv[0])
		if info, err := os.Stat(filepath.Join(p.root, at)); err == nil && info.Mode().IsRegular() {
			return append([]string{at}, argv[1:]...)
		}
	}
	t.Fatalf("%s has no program %s", p.root, argv[0])
	return nil
}

// start starts a command of this process on a thread that has its rights and its network.
// The thread ends with the goroutine.
func (p process) start(cmd *exec.Cmd) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- p.startHere(cmd)
	}()
	return <-done
}

func (p process) startHere(cmd *exec.Cmd) error {
	if p.netns != "" {
		f, err := os.Open(filepath.Join(netnsDir, p.netns))
		if err != nil {
			return err
		}
		defer f.Close()
		if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("network namespace %s: %w", p.netns, err)
		}
	}
	if p.confined {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return err
		}
		for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
				return fmt.Errorf("drop capability %d: %w", c, err)
			}
		}
	}
	return cmd.Start()
}

// netnsDir is where iproute2 has network namespaces by name.
const netnsDir = "/run/netns"

// run runs a program to its end and returns what it printed, and its status: -1 if it
// does not start, or not end in time.
func (p process) run(t testing.TB, within time.Duration, argv ...string) (out string, status int) {
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	cmd, said := p.command(argv...), &output{}
	cmd.Stdout, cmd.Stderr = said, said
	if err := p.start(cmd); err != nil {
		return err.Error(), -1
	}
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })()
	_ = cmd.Wait()
	if ctx.Err() != nil {
		return fmt.Sprintf("it does not end within %v:\n%s", within, said), -1
	}
	return said.String(), cmd.ProcessState.ExitCode()
}

// daemon is a started program, which ends with the test.
type daemon struct {
	*exec.Cmd
	out   *output
	ended chan struct{}
}

// daemon starts a program.
func (p process) daemon(t testing.TB, argv ...string) *daemon {
	t.Helper()
	d := &daemon{Cmd: p.command(argv...), out: &output{}, ended: make(chan struct{})}
	d.Stdout, d.Stderr = d.out, d.out
	if err := p.start(d.Cmd); err != nil {
		t.Fatalf("%q: %v", argv, err)
	}
	go func() { defer close(d.ended); _ = d.Wait() }()
	t.Cleanup(func() {
		_ = d.Process.Kill()
		<-d.ended
		if t.Failed() {
			t.Logf("%q:\n%s", argv, tail(d.out.String()))
		}
	})
	return d
}

// says waits for a text of its output.
func (d *daemon) says(t testing.TB, text string) {
	t.Helper()
	until(t, time.Minute, fmt.Sprintf("%q says %q", d.Args, text), func() bool {
		select {
		case <-d.ended:
			t.Fatalf("%q ended before it says %q:\n%s", d.Args, text, tail(d.out.String()))
		default:
		}
		return strings.Contains(d.out.String(), text)
	})
}

// output collects what a process prints.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// tail returns the end of a text.
func tail(text string) string {
	return text[max(0, len(text)-4000):]
}

// until waits for a condition.
func until(t testing.TB, within time.Duration, what string, holds func() bool) {
	t.Helper()
	tick, late := time.NewTicker(20*time.Millisecond), time.After(within)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("not within %v: %s", within, what)
		}
	}
}

// mount mounts a directory or a file of the system at a path, which it makes.
func mount(t testing.TB, source, target string, readOnly bool) {
	t.Helper()
	info, err := os.Stat(source)
	if err != nil {
		t.Fatal(err)
	}
	if info.IsDir() {
		err = os.MkdirAll(target, 0o755)
	} else if err = os.MkdirAll(filepath.Dir(target), 0o755); err == nil {
		err = os.WriteFile(target, nil, 0o644)
	}
	if err == nil {
		err = unix.Mount(source, target, "", unix.MS_BIND, "")
	}
	if err == nil && readOnly {
		err = unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
	}
	if err != nil {
		t.Fatalf("mount %s at %s: %v", source, target, err)
	}
}

// mountKernel gives a directory /proc and a few devices.
func mountKernel(t testing.TB, root string) {
	t.Helper()
	mount(t, "/proc", root+"/proc", false)
	for _, device := range []string{"null", "zero", "random", "urandom"} {
		mount(t, "/dev/"+device, root+"/dev/"+device, false)
	}
}
