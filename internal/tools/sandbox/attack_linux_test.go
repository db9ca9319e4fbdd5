package sandbox_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/refold/refold/internal/tools/sandbox"
)

// TestAttackInheritedDescriptor: a program may be started with open files. A
// command must not be able to read them.
func TestAttackInheritedDescriptor(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(secret, []byte("secret"), 0o600))
	fd, err := syscall.Open(secret, syscall.O_RDONLY, 0) // inherited: no O_CLOEXEC
	must(t, err)
	t.Cleanup(func() { _ = syscall.Close(fd) })
	boxes(t, sandbox.Config{}, sandbox.CPU, func(t *testing.T, b *sandbox.Box) {
		if out, end := escape(t, b, t.TempDir(), "descriptor", strconv.Itoa(fd)); end.Exit != 7 {
			t.Errorf("read descriptor %d: %q, %+v; want it refused", fd, out, end)
		}
	})
}

// TestAttackKeyring: a user's keyrings are not files.
func TestAttackKeyring(t *testing.T) {
	t.Parallel()
	boxes(t, sandbox.Config{}, sandbox.Privileges, func(t *testing.T, b *sandbox.Box) {
		if out, end := escape(t, b, t.TempDir(), "keyring"); end.Exit != 7 || !strings.Contains(out, unix.EPERM.Error()) {
			t.Errorf("add a key: %q, %+v; want %v", out, end, unix.EPERM)
		}
		if out, end := escape(t, b, t.TempDir(), "loopback"); end.Exit != 0 && b.Command(nil, "/", nil).KillsDescendants() {
			t.Errorf("other calls: %q, %+v; want them to work", out, end) // accept4 has a number of key calls
		}
	})
}

// TestAttackOtherSockets: multipath TCP reaches listeners on TCP, and datagrams
// reach DNS. Landlock alone restricts neither, and a filter of the socket call
// does not see io_uring.
func TestAttackOtherSockets(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	boxes(t, sandbox.Config{}, sandbox.CPU, func(t *testing.T, b *sandbox.Box) {
		to, firm := listener.Addr().String(), b.Command(nil, "/", nil).KillsDescendants()
		if out, end := escape(t, b, t.TempDir(), "multipath", to); end.Exit != 7 {
			t.Errorf("multipath TCP: %q, %+v; want it refused", out, end)
		}
		for _, how := range []string{"datagram", "ring"} {
			if out, end := escape(t, b, t.TempDir(), how, to); end.Exit != 7 && !firm { // in a namespace they lead nowhere
				t.Errorf("%s: %q, %+v; want it refused", how, out, end)
			}
		}
		if out, end := escape(t, b, t.TempDir(), "local"); end.Exit != 0 {
			t.Errorf("a socket in the directory: %q, %+v; want it to work", out, end)
		}
	})
}

// TestAttackTerminal: output of a command to the bridge's terminal could be
// escape sequences, one of which sets the clipboard.
func TestAttackTerminal(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	must(t, err)
	boxes(t, sandbox.Config{}, sandbox.CPU, func(t *testing.T, b *sandbox.Box) {
		theirs := openTerminal(t)
		var out bytes.Buffer
		cmd := &exec.Cmd{
			Path: self, Args: []string{terminalName, b.Means()}, Env: os.Environ(), Dir: t.TempDir(), Stdin: theirs, Stdout: &out, Stderr: &out,
			SysProcAttr: &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0},
		}
		if err := cmd.Run(); err != nil || out.String() != "own: <nil>\nsandboxed: 7\n" {
			t.Errorf("got %v: %q, want the process itself to reach its terminal and the command not", err, out.String())
		}
	})
}

// terminalName is what this program is called where it has a terminal and starts
// a command.
const terminalName = "has-terminal"

// fromTerminal says whether this process reaches its terminal, and how a command
// ends that wants to.
func fromTerminal(args []string) int {
	fmt.Println("own:", os.WriteFile("/dev/tty", nil, 0))
	self, err := os.Executable()
	if err != nil {
		return 1
	}
	b, _, err := sandbox.NewBy(sandbox.Config{Read: []string{self}}, args[0])
	if err != nil {
		fmt.Println(err)
		return 1
	}
	dir, err := os.Getwd()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	cmd := b.Command([]string{"/bin/bash", "-c", `exec -a escape "$0" terminal`, self}, dir, []string{"PATH=/usr/bin:/bin"})
	if err := cmd.Start(); err != nil {
		fmt.Println(err)
		return 1
	}
	_ = cmd.Wait() // End tells
	end, err := cmd.End()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("sandboxed:", end.Exit)
	return 0
}

// openTerminal opens a pseudo-terminal and returns the side that is a terminal.
func openTerminal(t *testing.T) *os.File {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	var theirs *os.File
	var n int
	if err == nil {
		t.Cleanup(func() { ours.Close() })
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
	t.Cleanup(func() { theirs.Close() })
	return theirs
}
