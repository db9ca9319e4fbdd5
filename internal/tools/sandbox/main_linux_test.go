package sandbox_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/refold/refold/internal/tools/sandbox"
)

// escapeName is what this program is called where it plays a command that wants
// to get out.
const escapeName = "escape"

func TestMain(m *testing.M) {
	sandbox.Child()
	if os.Args[0] == terminalName {
		os.Exit(fromTerminal(os.Args[1:]))
	}
	if os.Args[0] == killedName {
		fmt.Println(isKilled(os.Args[1])) // returns only if it fails
		os.Exit(1)
	}
	if os.Args[0] == refusesName {
		fmt.Println(refuseNamespaces(os.Args[1:])) // returns only if it fails
		os.Exit(1)
	}
	if os.Args[0] == escapeName {
		if err := escapes[os.Args[1]](os.Args[2:]); err != nil {
			fmt.Println("failed:", err)
			os.Exit(7)
		}
		fmt.Println("done")
		os.Exit(0)
	}
	code := m.Run()
	if callerDir != "" {
		_ = os.RemoveAll(callerDir)
	}
	os.Exit(code)
}

// escapes are what a command may try; nil: it could.
var escapes = map[string]func(args []string) error{
	"hold":   hold,
	"share":  share,
	"attach": attach,
	"read":   func(args []string) error { _, err := os.ReadFile(args[0]); return err },
	"write":  func(args []string) error { return os.WriteFile(args[0], []byte("x"), 0o600) },
	"connect": func(args []string) error {
		conn, err := net.Dial("tcp", args[0])
		if err == nil {
			conn.Close()
		}
		return err
	},
	"multipath": func(args []string) error { // TCP by another protocol's name
		to, err := net.ResolveTCPAddr("tcp4", args[0])
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP)
		if err != nil {
			return err
		}
		return unix.Connect(fd, &unix.SockaddrInet4{Port: to.Port, Addr: [4]byte(to.IP.To4())})
	},
	"datagram": func(args []string) error {
		conn, err := net.Dial("udp4", args[0])
		if err == nil {
			conn.Close()
		}
		return err
	},
	"ring": func([]string) error { // makes sockets without the call
		_, _, err := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&[120]byte{})), 0)
		if err == unix.ENOSYS || err == 0 {
			return nil
		}
		return err
	},
	"local": func([]string) error { // within the directory
		listener, err := net.Listen("unix", "socket")
		if err != nil {
			return err
		}
		defer listener.Close()
		conn, err := net.Dial("unix", "socket")
		if err == nil {
			conn.Close()
		}
		return err
	},
	"loopback": func([]string) error { // one's own may be used
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer listener.Close()
		conn, err := net.Dial("tcp4", listener.Addr().String())
		if err == nil {
			conn.Close()
		}
		return err
	},
	"stay": func([]string) error { // a grandchild that nobody reaches by group, session or politeness
		cmd := exec.Command("/proc/self/exe")
		cmd.Args = []string{escapeName, "ignore"}
		cmd.Stdout = os.Stdout
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			return err
		}
		return forever()
	},
	"ignore": func([]string) error {
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
		fmt.Println("stays")
		return forever()
	},
	"descriptor": func(args []string) error {
		fd, err := strconv.Atoi(args[0])
		if err == nil {
			_, err = unix.Read(fd, make([]byte, 64))
		}
		return err
	},
	"terminal": func([]string) error { return os.WriteFile("/dev/tty", []byte("\x1b]52;c;cm0gLXJmIC8=\a"), 0) },
	"keyring": func([]string) error {
		_, err := unix.AddKey("user", "refold-was-here", []byte("x"), unix.KEY_SPEC_USER_KEYRING)
		return err
	},
	"privileges": func([]string) error {
		status, err := os.ReadFile("/proc/self/status")
		for line := range strings.Lines(string(status)) {
			if strings.HasPrefix(line, "Cap") || strings.HasPrefix(line, "NoNewPrivs") {
				fmt.Print(line)
			}
		}
		if err != nil {
			return err
		}
		return unix.Mount("tmpfs", "/proc", "tmpfs", 0, "")
	},
}

// forever waits until the process is killed. The runtime would end a process that
// waits for nothing.
func forever() error {
	<-time.After(2 * giveUp)
	return errors.New("nobody killed it")
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
