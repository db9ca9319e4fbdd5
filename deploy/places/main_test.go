// Package places_test runs Refold where its users run it, without engines: the Debian
// package on a copy of this system, the images in their own directories, and
// docker-compose.yml with a network namespace for each service.
//
// All tests run in namespaces of their own: mounts, addresses and processes end with
// them, and change nothing outside. They need root on Linux.
package places_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	// distEnv names the directory of a release that was made for these tests before;
	// without it they make one.
	distEnv = "REFOLD_PLACES_DIST"
	// apartEnv is set inside the namespaces.
	apartEnv = "REFOLD_PLACES_APART"
)

// version is that of the release under test.
const version = "v0.0.0-test"

// dist is the directory of the release under test. Its folder bin has the programs.
var dist string

func TestMain(m *testing.M) {
	dist = os.Getenv(distEnv)
	run := runApart
	if os.Getenv(apartEnv) != "" {
		run = func() (int, error) {
			if err := prepare(); err != nil {
				return 1, err
			}
			return m.Run(), nil
		}
	}
	status, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "deploy/places:", err)
	}
	os.Exit(status)
}

// runApart makes the release, and runs this program again in its own namespaces.
func runApart() (status int, err error) {
	runtime.LockOSThread() // the child ends with this thread
	if os.Geteuid() != 0 {
		return 1, errors.New("these tests mount file systems and make network namespaces: run them as root, in a container with CAP_SYS_ADMIN and CAP_NET_ADMIN")
	}
	for program, of := range map[string]string{"ip": "iproute2", "dpkg": "dpkg", "wget": "wget", "make": "make", "git": "git"} {
		if _, err := exec.LookPath(program); err != nil {
			return 1, fmt.Errorf("%w: install it (Debian: apt-get install %s)", err, of)
		}
	}
	if dist == "" {
		if dist, err = os.MkdirTemp("", "refold-places-"); err != nil {
			return 1, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dist)) }()
		if err := release(); err != nil {
			return 1, err
		}
	}
	apart := exec.Command("/proc/self/exe", os.Args[1:]...)
	apart.Stdin, apart.Stdout, apart.Stderr = os.Stdin, os.Stdout, os.Stderr
	apart.Env = append(os.Environ(), distEnv+"="+dist, apartEnv+"=1")
	apart.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS, Pdeathsig: syscall.SIGKILL,
	}
	err = apart.Run()
	if apart.ProcessState == nil {
		return 1, fmt.Errorf("namespaces: %w: run this as root, in a container with CAP_SYS_ADMIN and CAP_NET_ADMIN", err)
	}
	return apart.ProcessState.ExitCode(), nil // its output tells the rest
}

// release makes a release for this machine, and unpacks it, with a server beside it.
func release() error {
	for _, command := range [][]string{
		{"make", "-C", "../..", "--no-print-directory", "images", "VERSION=" + version, "DIST=" + dist, "PLATFORMS=linux/" + runtime.GOARCH},
		{"tar", "-xzf", filepath.Join(dist, "refold_"+version[1:]+"_linux_"+runtime.GOARCH+".tar.gz"), "-C", dist, "--strip-components=1"},
		{"go", "build", "-C", "../..", "-o", filepath.Join(dist, "bin") + "/", "github.com/nats-io/nats-server/v2"},
	} {
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%q: %w\n%s", command, err, out)
		}
	}
	return nil
}

// scratch is a file system of these namespaces: it ends with them. Nothing below it is
// removed by a test, since directories of the system are mounted there.
const scratch = "/run"

// prepare makes the mounts and the network of these namespaces.
func prepare() error {
	for _, m := range []struct {
		source, target, kind string
		flags                uintptr
		data                 string
	}{
		{"none", "/", "", unix.MS_REC | unix.MS_PRIVATE, ""},
		{"proc", "/proc", "proc", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, ""},
		// The servers have 20 GB each, if somebody fills them.
		{"tmpfs", scratch, "tmpfs", 0, "mode=0755,size=100g"},
	} {
		if err := unix.Mount(m.source, m.target, m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	return ip("link", "set", "lo", "up")
}

// ip runs iproute2.
func ip(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %q: %w: %s", args, err, out)
	}
	return nil
}
