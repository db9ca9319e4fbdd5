package sandbox_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/refold/refold/internal/tools/sandbox"
)

func init() {
	maps.Copy(escapes, map[string]func(args []string) error{
		"read some": func(args []string) error { // one that can be opened but not read is refused as well
			f, err := os.Open(args[0])
			if err == nil {
				defer f.Close()
				_, err = f.ReadAt(make([]byte, 8), 0x400000)
			}
			return err
		},
		"open": func(args []string) error {
			fd, err := unix.Open(args[0], unix.O_RDWR|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
			if err == nil {
				unix.Close(fd)
			}
			return err
		},
		"trace": func(args []string) error {
			pid, err := strconv.Atoi(args[0])
			if err != nil {
				return err
			}
			return syscall.PtraceAttach(pid)
		},
		"read memory": func(args []string) error {
			pid, err := strconv.Atoi(args[0])
			if err != nil {
				return err
			}
			to := make([]byte, 8)
			local := []unix.Iovec{{Base: &to[0], Len: 8}}
			_, err = unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: 0x400000, Len: 8}}, 0)
			if errors.Is(err, unix.EFAULT) { // it may read, and there is nothing
				return nil
			}
			return err
		},
		"link out": func(args []string) error { return os.Link(args[0], args[1]) },
		"move out": func(args []string) error { return os.Rename(args[0], args[1]) },
		"device": func(args []string) error { // the numbers of /dev/kmsg
			if err := unix.Mknod("device", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 11))); err != nil {
				return err
			}
			f, err := os.Open("device")
			if err == nil {
				f.Close()
			}
			return err
		},
		"type into the terminal": func(args []string) error {
			fd, err := unix.Open(args[0], unix.O_RDWR|unix.O_NOCTTY, 0)
			if err != nil {
				return err
			}
			return unix.IoctlSetPointerInt(fd, unix.TIOCSTI, 'x')
		},
	})
}

// TestAttackProcesses: the supervisor of a command and the program that started
// it have the command's user.
func TestAttackProcesses(t *testing.T) {
	t.Parallel()
	boxes(t, sandbox.Config{}, sandbox.Privileges, func(t *testing.T, b *sandbox.Box) {
		pids := []string{strconv.Itoa(os.Getpid()), "1"}
		for _, pid := range pids {
			for _, how := range []string{"trace", "read memory"} {
				if out, end := escape(t, b, t.TempDir(), how, pid); end.Exit != 7 {
					t.Errorf("%s of process %s: %q, %+v; want it refused", how, pid, out, end)
				}
			}
			for how, names := range map[string][]string{"read some": {"mem"}, "read": {"environ", "auxv", "root/etc/shadow", "cwd/escape_linux_test.go"}} {
				for _, name := range names {
					at := "/proc/" + pid + "/" + name
					if out, end := escape(t, b, t.TempDir(), how, at); end.Exit != 7 {
						t.Errorf("%s %s: %q, %+v; want it refused", how, at, out, end)
					}
				}
			}
		}
	})
}

// TestAttackDevices: only five devices, which hold nothing, can be opened, and
// none can be made.
func TestAttackDevices(t *testing.T) {
	t.Parallel()
	terminal := openTerminal(t)
	boxes(t, sandbox.Config{}, sandbox.Files, func(t *testing.T, b *sandbox.Box) {
		names, err := filepath.Glob("/dev/*")
		must(t, err)
		for _, name := range append(names, terminal.Name()) {
			fi, err := os.Lstat(name)                                                             // a link leads to one's own files
			if err != nil || fi.Mode()&os.ModeDevice == 0 || strings.Contains(name, "watchdog") { // opening one restarts the machine later
				continue
			}
			want := 7
			switch filepath.Base(name) {
			case "null", "zero", "full", "random", "urandom":
				want = 0
			}
			if out, end := escape(t, b, t.TempDir(), "open", name); end.Exit != want {
				t.Errorf("open %s: %q, %+v; want exit status %d", name, out, end, want)
			}
		}
		for _, args := range [][]string{{"device"}, {"type into the terminal", "/dev/tty"}, {"type into the terminal", terminal.Name()}, {"write", "/dev/shm/refold-was-here"}} {
			if out, end := escape(t, b, t.TempDir(), args...); end.Exit != 7 {
				t.Errorf("%v: %q, %+v; want it refused", args, out, end)
			}
		}
	})
}

// TestAttackLinksOut: a file that is moved or linked out would stay there, and
// one that is linked in could be written.
func TestAttackLinksOut(t *testing.T) {
	t.Parallel()
	boxes(t, sandbox.Config{}, sandbox.Files, func(t *testing.T, b *sandbox.Box) {
		base := t.TempDir()
		dir := filepath.Join(base, "work")
		must(t, os.Mkdir(dir, 0o755))
		must(t, os.WriteFile(filepath.Join(dir, "own"), []byte("x"), 0o644))
		must(t, os.WriteFile(filepath.Join(base, "theirs"), []byte("x"), 0o644))
		before := fmt.Sprint(os.ReadDir(base))
		for _, args := range [][]string{
			{"link out", "own", "../new"}, {"move out", "own", "../new"}, {"move out", "own", "../theirs"},
			{"link out", "../theirs", "in"}, {"move out", "../theirs", "in"}, {"link out", "/etc/passwd", "in"},
		} {
			if out, end := escape(t, b, dir, args...); end.Exit != 7 {
				t.Errorf("%v: %q, %+v; want it refused", args, out, end)
			}
		}
		if after := fmt.Sprint(os.ReadDir(base)); after != before {
			t.Errorf("outside is %s, and was %s", after, before)
		}
	})
}
