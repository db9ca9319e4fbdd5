package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// systemRead are the directories that every command may read and execute. Of /etc
// they include what programs need to start, but no secrets such as shadow or keys.
var systemRead = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store",
	"/etc/alternatives", "/etc/ca-certificates", "/etc/fonts", "/etc/ld.so.conf.d", "/etc/pki/tls/certs", "/etc/profile.d",
	"/etc/ssl/certs", "/etc/terminfo", "/proc", "/sys/devices/system/cpu", "/sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage",
}

var systemFiles = []string{
	"/etc/bash.bashrc", "/etc/debian_version", "/etc/gitconfig", "/etc/group", "/etc/host.conf", "/etc/hosts", "/etc/inputrc",
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/locale.alias", "/etc/localtime", "/etc/mime.types", "/etc/nsswitch.conf",
	"/etc/os-release", "/etc/passwd", "/etc/profile", "/etc/protocols", "/etc/resolv.conf", "/etc/services", "/etc/shells",
	"/etc/ssl/openssl.cnf", "/etc/timezone",
}

var systemDevices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// confine gives up rights that the command must not have. In a trial, limits
// says why rlimits can't be set. err is any other failure: also of what the trial
// found to work, and of what is promised for the command.
func (s *supervisor) confine() (limits string, err error) {
	for _, dir := range outermost(s.spec.Write) {
		fd, err := openDirectory(dir)
		if err != nil {
			return "", fmt.Errorf("open %s: %w", dir, err)
		}
		s.write = append(s.write, fd)
	}
	if os.Getpid() == 1 {
		s.mounts = s.setUpMounts()
		if s.mounts != nil && s.promises(Metadata) {
			return "", s.mounts
		}
		if !s.spec.Network {
			startLoopback()
		}
	} else if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return "", fmt.Errorf("become the parent of orphans: %w", err)
	}
	if s.spec.Probe != nil {
		if err := s.tryLimits(); err != nil {
			limits = err.Error()
		}
	}
	if err := s.lock(); err != nil {
		return limits, fmt.Errorf("landlock: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return limits, fmt.Errorf("no new privileges: %w", err)
	}
	dropCapabilities()
	// The trial finds out whether the filter works.
	if err := filterCalls(os.Getpid() == 1 || s.spec.Network); err != nil && s.promises(Privileges) {
		return limits, fmt.Errorf("filter of system calls: %w", err)
	}
	// The command has the same user, and must not trace us.
	return limits, unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// promises reports whether the program that started us has reported a guarantee.
func (s *supervisor) promises(g Guarantee) bool { return slices.Contains(s.spec.Promised, g) }

// startLoopback gives the network namespace a loopback.
func startLoopback() {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if lo, err := unix.NewIfreq("lo"); err == nil {
		lo.SetUint16(unix.IFF_UP)
		_ = unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
	}
}

// openDirectory opens a directory whose path has no symbolic link. Another
// command, of a session that shares the directory, could put one there.
func openDirectory(name string) (fd int, err error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	if fd, err = unix.Openat2(unix.AT_FDCWD, name, &how); errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return unix.Open(name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0) // before Linux 5.6, and in some containers
	}
	return fd, err
}

// lock restricts this process and its descendants to the files in the spec, and
// keeps them from abstract sockets and signals of others. Without Landlock it has
// no effect; the trial finds that out.
func (s *supervisor) lock() error {
	rules := []landlock.Rule{
		landlock.RODirs(systemRead...).IgnoreIfMissing(),
		landlock.ROFiles(systemFiles...).IgnoreIfMissing(),
		landlock.RWFiles(systemDevices...).IgnoreIfMissing(),
	}
	for _, fd := range s.write {
		rules = append(rules, landlock.RWDirs(fmt.Sprintf("/proc/self/fd/%d", fd)).WithRefer())
	}
	for _, name := range s.spec.Read {
		if fi, err := os.Stat(name); err == nil && !fi.IsDir() {
			rules = append(rules, landlock.ROFiles(name))
			continue
		}
		rules = append(rules, landlock.RODirs(name).IgnoreIfMissing())
	}
	config := landlock.V7
	if os.Getpid() == 1 || s.spec.Network {
		config.HandledAccessNet = 0 // without rules, all of it is forbidden
	}
	if os.Getpid() == 1 {
		// Signals end at the process namespace. The scope would also hold among
		// our own threads, of which several kill.
		config.Scoped &= ll.ScopeAbstractUnixSocket
	}
	return config.BestEffort().Restrict(rules...)
}

// dropCapabilities drops all capabilities of this thread and of what it executes.
func dropCapabilities() {
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	for c := uintptr(0); c <= unix.CAP_LAST_CAP+8; c++ {
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0) // the trial finds out what is left
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	_, _, _ = unix.Syscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none[0])), 0)
}

// try tries everything that a command must not be able to do.
func (s *supervisor) try(t *trial, limits string) *found {
	f := &found{First: os.Getpid() == 1, Sees: s.sees, Limits: limits, Counted: os.Geteuid() != 0}
	f.Measured = (f.Sees || !f.First) && newMeter(0, nil).works()
	f.WroteInside = os.WriteFile(filepath.Join(t.Inside, "probe"), []byte("x"), 0o600) == nil
	_, err := os.ReadFile(t.Forbidden)
	f.ReadOutside = err == nil
	f.WroteOutside = os.WriteFile(t.Outside, []byte("x"), 0o600) == nil
	f.Changed = s.changes(t)
	if conn, err := net.DialTimeout("tcp", t.Connect, dialMax); err == nil {
		f.Connected = true
		conn.Close()
	}
	if fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err == nil {
		f.Connected = f.Connected || !f.First // in a network namespace it leads nowhere
		unix.Close(fd)
	}
	if conn, err := net.DialTimeout("unix", t.Abstract, dialMax); err == nil {
		f.Abstract = true
		conn.Close()
	}
	f.Signals = !f.First && unix.Kill(t.Process, 0) == nil
	f.Unfiltered = unfiltered()
	status, err := os.ReadFile("/proc/thread-self/status")
	f.Privileged = err != nil || holdsCapabilities(string(status))
	return f
}

// changes tries to change metadata outside, and to make a set-user-ID file
// inside. It returns why it could, or "".
func (s *supervisor) changes(t *trial) string {
	now := time.Now()
	outside := os.Chmod(t.Forbidden, 0o640) == nil || os.Chtimes(t.Forbidden, now, now) == nil ||
		unix.Setxattr(t.Forbidden, "user.refold", []byte("x"), 0) == nil
	inside := filepath.Join(t.Inside, "set-id")
	made := os.WriteFile(inside, nil, 0o700) == nil && unix.Chmod(inside, 0o700|setID) == nil
	switch {
	case outside && os.Getpid() != 1:
		return "no mount namespace: modes, times and attributes of the user's other files can be changed"
	case outside && s.mounts != nil:
		return "modes, times and attributes of the user's other files can be changed (Linux 5.12 can prevent it): " + s.mounts.Error()
	case outside:
		return "modes, times and attributes of the user's other files can be changed"
	case made:
		return "this kernel takes no filter of system calls, so set-user-ID programs can be made"
	}
	return ""
}

const dialMax = 2 * time.Second

// holdsCapabilities reports whether a process with that status has
// capabilities, or can gain some by executing a program.
func holdsCapabilities(status string) bool {
	newPrivileges := true
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		value = strings.TrimSpace(value)
		switch name {
		case "CapInh", "CapPrm", "CapEff", "CapAmb":
			if bits, err := strconv.ParseUint(value, 16, 64); err != nil || bits != 0 {
				return true
			}
		case "CapBnd":
			if bits, err := strconv.ParseUint(value, 16, 64); err != nil || bits != 0 && os.Geteuid() == 0 {
				return true
			}
		case "NoNewPrivs":
			newPrivileges = value != "1"
		}
	}
	return newPrivileges
}

func ownerOf(name string) (uid int, ok bool) {
	fi, err := os.Stat(name)
	if err != nil {
		return 0, false
	}
	sys, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(sys.Uid), true
}
