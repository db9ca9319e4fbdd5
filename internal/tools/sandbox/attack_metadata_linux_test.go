package sandbox_test

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/refold/refold/internal/tools/sandbox"
)

func init() {
	escapes["metadata"] = func(targets []string) error { // it says what succeeds
		succeeded := false
		for how, try := range metadataEscapes {
			for _, name := range targets {
				fi, err := os.Stat(name)
				if how == "hard link" && (err != nil || fi.IsDir()) {
					continue
				}
				if try([]string{name}) == nil {
					fmt.Println(how, name)
					succeeded = true
				}
			}
		}
		if !succeeded {
			return errors.New("all were refused")
		}
		return nil
	}
}

// metadataEscapes change what is known about a file, and not its content. Each
// sets what is already there, so that a success does no harm: the targets are
// files of this machine.
var metadataEscapes = map[string]func(args []string) error{
	"chmod":  func(args []string) error { return os.Chmod(args[0], modeOf(args[0])) },
	"chown":  func(args []string) error { return os.Chown(args[0], -1, -1) },
	"touch":  func(args []string) error { return unix.UtimesNanoAt(unix.AT_FDCWD, args[0], timesOf(args[0]), 0) },
	"utimes": func(args []string) error { return os.Chtimes(args[0], time.Time{}, modified(args[0])) },
	"chmod by a path in proc": func(args []string) error {
		fd, err := unix.Open(args[0], unix.O_PATH, 0)
		if err != nil {
			return err
		}
		return os.Chmod("/proc/self/fd/"+strconv.Itoa(fd), modeOf(args[0]))
	},
	"chmod by a descriptor": func(args []string) error {
		fd, err := unix.Open(args[0], unix.O_PATH, 0)
		if err != nil {
			return err
		}
		return unix.Fchmodat(fd, "", uint32(modeOf(args[0])), unix.AT_EMPTY_PATH)
	},
	"chmod by a link": func(args []string) error {
		if err := os.Symlink(args[0], "link"); err != nil {
			return err
		}
		defer os.Remove("link")
		return os.Chmod("link", modeOf(args[0]))
	},
	"setxattr": func(args []string) error {
		value := make([]byte, 8)
		n, err := unix.Getxattr(args[0], "user.theirs", value)
		if errors.Is(err, unix.ENODATA) { // none of ours
			return err
		}
		return unix.Setxattr(args[0], "user.theirs", value[:max(n, 0)], 0)
	},
	"removexattr": func(args []string) error {
		err := unix.Removexattr(args[0], "user.none")
		if errors.Is(err, unix.ENODATA) { // it might have removed one
			return nil
		}
		return err
	},
	"hard link": func(args []string) error { return os.Link(args[0], "hard") },
	"standard input": func([]string) error { // a device of this machine that is open
		fi, err := os.Stdin.Stat()
		if err != nil {
			return err
		}
		return os.Stdin.Chmod(fi.Mode().Perm())
	},
}

func modeOf(name string) os.FileMode {
	if fi, err := os.Stat(name); err == nil {
		return fi.Mode() & (os.ModePerm | os.ModeSticky)
	}
	return 0o644
}

func modified(name string) time.Time {
	if fi, err := os.Stat(name); err == nil {
		return fi.ModTime()
	}
	return time.Now()
}

func timesOf(name string) []unix.Timespec {
	var st unix.Stat_t
	_ = unix.Stat(name, &st)
	return []unix.Timespec{st.Atim, st.Mtim}
}

// TestAttackMetadata: Landlock has no rule for modes, owners, times and
// attributes. A command could make a key file readable to every user, or the
// directories above its own.
func TestAttackMetadata(t *testing.T) {
	t.Parallel()
	for _, network := range []bool{false, true} {
		boxesNamed(t, fmt.Sprint("network ", network), sandbox.Config{Network: network}, sandbox.Metadata, func(t *testing.T, b *sandbox.Box) {
			base := t.TempDir()
			dir := filepath.Join(base, "work")
			must(t, os.MkdirAll(filepath.Join(dir, "sub"), 0o755))
			secret := filepath.Join(base, "secret")
			must(t, os.WriteFile(secret, []byte("x"), 0o600))
			must(t, unix.Setxattr(secret, "user.theirs", []byte("x"), 0))
			targets := []string{secret, base, "/dev/null", "/etc/passwd", "/usr", "/proc/version", "/proc", "/"}
			before := map[string]string{}
			for _, name := range targets {
				before[name] = metadata(t, name)
			}
			if out, end := escape(t, b, dir, append([]string{"metadata"}, targets...)...); end.Exit != 7 {
				t.Errorf("changed: %s%+v; want all refused", out, end)
			}
			for _, name := range targets {
				if after := metadata(t, name); after != before[name] {
					t.Errorf("%s was changed from %s to %s", name, before[name], after)
				}
			}
			// Inside, programs do all of it.
			line := `PATH=/usr/bin:/bin; echo x >f && chmod 0640 f && touch -d 2001-01-01 f && chown $(id -u):$(id -g) f && chmod 0755 . && mkdir d && ln f d/g && mv d/g sub/h && echo x >$TMPDIR/t && ln $TMPDIR/t t && mv $TMPDIR/t sub/t && mknod p p && mkfifo q`
			if out, end := run(t, b, dir, []string{"TMPDIR=" + filepath.Join(dir, "d")}, "/bin/sh", "-c", line); end.Exit != 0 {
				t.Errorf("%s: %q, %+v; want exit status 0", line, out, end)
			}
		})
	}
}

// metadata describes a file, but for when it was read.
func metadata(t *testing.T, name string) string {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Stat(name, &st))
	text := fmt.Sprintf("mode %o, owner %d:%d", st.Mode, st.Uid, st.Gid)
	if strings.HasPrefix(name, os.TempDir()) {
		value := make([]byte, 256)
		n, err := unix.Listxattr(name, value)
		must(t, err)
		text += fmt.Sprintf(", modified %v, changed %v, attributes %q", st.Mtim, st.Ctim, value[:n])
	}
	return text
}

// TestMountsAreNosuid: what is mounted inside the directory keeps its
// flags, and the command stays where it was started.
func TestMountsAreNosuid(t *testing.T) {
	t.Parallel()
	boxes(t, sandbox.Config{}, sandbox.Metadata, func(t *testing.T, b *sandbox.Box) {
		dir := t.TempDir()
		must(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
		cmd := b.Command([]string{"/bin/sh", "-c", "PATH=/usr/bin:/bin; pwd -P; cat /proc/self/mountinfo"}, dir, nil)
		cmd.Dir = filepath.Join(dir, "sub")
		out, end := outcome(t, cmd)
		if end.Exit != 0 {
			t.Fatalf("%q, %+v; want exit status 0", out, end)
		}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if lines[0] != filepath.Join(dir, "sub") {
			t.Errorf("the command runs in %s, want %s", lines[0], filepath.Join(dir, "sub"))
		}
		writable := 0
		for _, line := range lines[1:] {
			fields := strings.Fields(line)
			at, flags := fields[4], ","+fields[5]+","
			if !strings.Contains(flags, ",nosuid,") || !strings.Contains(flags, ",nodev,") && at != "/dev" && !strings.HasPrefix(at, "/dev/") {
				t.Errorf("mount: %s; want nosuid, and outside of /dev nodev", line)
			}
			if strings.Contains(flags, ",rw,") {
				writable++
				if at != dir {
					t.Errorf("mount: %s; want %s alone to be writable", line, dir)
				}
			}
		}
		if writable != 1 {
			t.Errorf("%d writable mounts, want 1:\n%s", writable, out)
		}
	})
}

// TestAttackAbstractSockets: the network is allowed, and abstract
// sockets, which belong to it, and signals still end at the sandbox.
func TestAttackAbstractSockets(t *testing.T) {
	t.Parallel()
	name := fmt.Sprintf("@refold-attack-%d", os.Getpid())
	listener, err := net.Listen("unix", name)
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	for _, network := range []bool{false, true} {
		boxesNamed(t, fmt.Sprint("network ", network), sandbox.Config{Network: network}, sandbox.Privileges, func(t *testing.T, b *sandbox.Box) {
			if out, end := escape(t, b, t.TempDir(), "unix", name); end.Exit != 7 {
				t.Errorf("connect to an abstract socket: %q, %+v; want it refused", out, end)
			}
			if out, end := escape(t, b, t.TempDir(), "unix datagram", name); end.Exit != 7 {
				t.Errorf("send to an abstract socket: %q, %+v; want it refused", out, end)
			}
			if out, end := escape(t, b, t.TempDir(), "own abstract socket"); end.Exit != 0 {
				t.Errorf("an abstract socket of its own: %q, %+v; want it to work", out, end)
			}
			for _, pid := range []int{os.Getpid(), os.Getppid()} {
				out, end := escape(t, b, t.TempDir(), "signal", strconv.Itoa(pid))
				if end.Exit != 7 {
					t.Errorf("signal process %d: %q, %+v; want it refused", pid, out, end)
				}
			}
		})
	}
}

func init() {
	maps.Copy(escapes, map[string]func(args []string) error{
		"unix": func(args []string) error {
			conn, err := net.Dial("unix", args[0])
			if err == nil {
				conn.Close()
			}
			return err
		},
		"unix datagram": func(args []string) error {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
			if err != nil {
				return err
			}
			err = unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrUnix{Name: args[0]})
			if errors.Is(err, unix.EPROTOTYPE) { // it was reached, and is of another kind
				return nil
			}
			return err
		},
		"own abstract socket": func([]string) error {
			listener, err := net.Listen("unix", "@refold-own")
			if err != nil {
				return err
			}
			defer listener.Close()
			conn, err := net.Dial("unix", "@refold-own")
			if err == nil {
				conn.Close()
			}
			return err
		},
		"signal": func(args []string) error {
			pid, err := strconv.Atoi(args[0])
			if err != nil {
				return err
			}
			return syscall.Kill(pid, 0)
		},
	})
}

// TestAttackLinkedDirectory: a command of another session may have replaced the
// directory by a link that leads out.
func TestAttackLinkedDirectory(t *testing.T) {
	t.Parallel()
	boxes(t, sandbox.Config{}, sandbox.Files, func(t *testing.T, b *sandbox.Box) {
		base := t.TempDir()
		for _, name := range []string{"real/sub", "outside/sub"} {
			must(t, os.MkdirAll(filepath.Join(base, name), 0o755))
		}
		must(t, os.Symlink("outside", filepath.Join(base, "link")))
		for _, dir := range []string{"link", "link/sub"} {
			cmd := b.Command([]string{"/bin/sh", "-c", "echo x >escaped"}, filepath.Join(base, dir), nil)
			must(t, cmd.Start())
			_ = cmd.Wait() // End tells
			if end, err := cmd.End(); err != nil || end.Fault == "" {
				t.Errorf("in %s: %+v, %v; want that it does not start", dir, end, err)
			}
		}
		if _, err := os.Stat(filepath.Join(base, "outside/sub/escaped")); err == nil {
			t.Error("a file was written outside")
		}
	})
}
