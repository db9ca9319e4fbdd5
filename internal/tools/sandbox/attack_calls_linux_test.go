package sandbox_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/refold/refold/internal/tools/sandbox"
)

// caller is the program of testdata/call.c.
var caller = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "refold-call-")
	if err != nil {
		return "", err
	}
	callerDir = dir
	if err := os.Chmod(dir, 0o755); err != nil { // for a user without rights, too
		return "", err
	}
	name := filepath.Join(dir, "call")
	if out, err := exec.Command("gcc", "-O1", "-o", name, "testdata/call.c").CombinedOutput(); err != nil {
		return "", fmt.Errorf("gcc: %w: %s", err, out)
	}
	return name, nil
})

// hasI386 reports whether this machine carries out calls of the ABI i386: some
// kernels and virtual machines end a program that makes one, with no sandbox either.
var hasI386 = sync.OnceValue(func() bool {
	program, err := caller()
	const getpid = "20"
	return err == nil && exec.Command(program, "i386", getpid).Run() == nil
})

// callerDir is where it is built. TestMain removes it.
var callerDir string

// A call is one system call, by its number in each ABI; 0: it has none there.
type call struct {
	name   string
	native uintptr
	i386   uintptr
	args   []string
}

// abis are the ABIs of this machine in which a command can make calls.
func (c call) abis() map[string]uintptr {
	all := map[string]uintptr{}
	if c.native != 0 {
		all["native"] = c.native
	}
	if runtime.GOARCH == "amd64" {
		if c.native != 0 {
			all["x32"] = c.native
		}
		if c.i386 != 0 && hasI386() {
			all["i386"] = c.i386
		}
	}
	return all
}

// legacy is the number of a call that newer architectures don't have.
func legacy(amd64 uintptr) uintptr {
	if runtime.GOARCH == "amd64" {
		return amd64
	}
	return 0
}

// withCaller returns a config in which commands may run the program.
func withCaller(t *testing.T, c sandbox.Config) sandbox.Config {
	t.Helper()
	program, err := caller()
	must(t, err)
	c.Read = append(c.Read, program)
	return c
}

// TestAttackSetID: a program with a set-user-ID bit runs with its owner's
// rights for every user of the machine, wherever it is started.
func TestAttackSetID(t *testing.T) {
	t.Parallel()
	const create, tmpfile, at = "0101", "020200002", "-100" // O_CREAT|O_WRONLY, O_TMPFILE|O_RDWR, AT_FDCWD
	var calls []call
	for _, mode := range []string{"04755", "02755", "06000", "0104755"} {
		calls = append(
			calls,
			call{"chmod " + mode, legacy(90), 15, []string{"s:old", mode}},
			call{"fchmod " + mode, unix.SYS_FCHMOD, 94, []string{"1", mode}},
			call{"fchmodat " + mode, unix.SYS_FCHMODAT, 306, []string{at, "s:old", mode}},
			call{"fchmodat2 " + mode, unix.SYS_FCHMODAT2, 452, []string{at, "s:old", mode, "0"}},
			call{"open " + mode, legacy(2), 5, []string{"s:new1", create, mode}},
			call{"openat " + mode, unix.SYS_OPENAT, 295, []string{at, "s:new2", create, mode}},
			call{"open a temporary file " + mode, unix.SYS_OPENAT, 295, []string{at, "s:.", tmpfile, mode}},
			call{"openat2 " + mode, unix.SYS_OPENAT2, 437, []string{at, "s:new3", "z", "24"}},
			call{"creat " + mode, legacy(85), 8, []string{"s:new4", mode}},
			call{"mknod " + mode, legacy(133), 14, []string{"s:new5", mode, "0"}},
			call{"mknodat " + mode, unix.SYS_MKNODAT, 297, []string{at, "s:new6", mode, "0"}},
		)
	}
	boxes(t, withCaller(t, sandbox.Config{}), sandbox.Privileges, func(t *testing.T, b *sandbox.Box) {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "old"), nil, 0o755))
		refusedCalls(t, b, dir, calls)
		entries, err := os.ReadDir(dir)
		must(t, err)
		for _, e := range entries {
			if fi, err := e.Info(); err != nil || fi.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 || e.Name() != "old" && e.Name() != "script" {
				t.Errorf("afterwards there is %s, %v, %v; want no new file, and none with such a bit", e.Name(), fi, err)
			}
		}
		const line = `PATH=/usr/bin:/bin; cp /bin/sh b; ! chmod u+s b && ! chmod 2755 b && ! install -m 4755 /bin/sh c && ! mkdir -m 2755 d && chmod 0751 b && mkdir -m 1777 e && : >f`
		if out, end := run(t, b, dir, nil, "/bin/sh", "-c", line); end.Exit != 0 {
			t.Errorf("%s: %q, %+v; want set-id modes refused, and others not", line, out, end)
		}
	})
}

// TestAttackNamespaces: a user namespace gives all capabilities in it, and with
// them much kernel code that is never reached without.
func TestAttackNamespaces(t *testing.T) {
	t.Parallel()
	const user, userAndNet = "0x10000000", "0x50000000"
	calls := []call{
		{"unshare a user namespace", unix.SYS_UNSHARE, 310, []string{user}},
		{"unshare a user and a network namespace", unix.SYS_UNSHARE, 310, []string{userAndNet}},
		{"clone into a user namespace", unix.SYS_CLONE, 120, []string{"0x10000011", "0", "0", "0", "0"}},
		{"clone3", unix.SYS_CLONE3, 435, []string{"z", "88"}},
		{"setns", unix.SYS_SETNS, 346, []string{"1", "0"}},
		{"bpf", unix.SYS_BPF, 357, []string{"0", "z", "64"}},
		{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, 336, []string{"z", "0", "-1", "-1", "0"}},
		{"io_uring_setup", unix.SYS_IO_URING_SETUP, 425, []string{"1", "z"}},
		{"io_uring_enter", unix.SYS_IO_URING_ENTER, 426, []string{"1", "0", "0", "0"}},
		{"io_uring_register", unix.SYS_IO_URING_REGISTER, 427, []string{"1", "0", "z", "0"}},
		{"userfaultfd", unix.SYS_USERFAULTFD, 374, []string{"1"}},
		{"fsopen", unix.SYS_FSOPEN, 430, []string{"s:tmpfs", "0"}},
		{"fsconfig", unix.SYS_FSCONFIG, 431, []string{"1", "6", "0", "0", "0"}},
		{"fsmount", unix.SYS_FSMOUNT, 432, []string{"1", "0", "0"}},
		{"fspick", unix.SYS_FSPICK, 433, []string{"-100", "s:/", "0"}},
		{"open_tree", unix.SYS_OPEN_TREE, 428, []string{"-100", "s:.", "0"}},
		{"open_tree_attr", unix.SYS_OPEN_TREE_ATTR, 467, []string{"-100", "s:.", "0", "z", "32"}},
		{"move_mount", unix.SYS_MOVE_MOUNT, 429, []string{"-100", "s:.", "-100", "s:.", "0"}},
		{"mount_setattr", unix.SYS_MOUNT_SETATTR, 442, []string{"-100", "s:.", "0", "z", "32"}},
		{"mount", unix.SYS_MOUNT, 21, []string{"s:none", "s:.", "s:tmpfs", "0", "0"}},
		{"umount2", unix.SYS_UMOUNT2, 52, []string{"s:.", "2"}},
		{"umount", 0, 22, []string{"s:."}},
		{"pivot_root", unix.SYS_PIVOT_ROOT, 217, []string{"s:.", "s:."}},
		{"chroot", unix.SYS_CHROOT, 61, []string{"s:."}},
		{"kexec_load", unix.SYS_KEXEC_LOAD, 283, []string{"0", "0", "0", "0"}},
		{"kexec_file_load", legacy(320), 0, []string{"1", "1", "0", "0", "0"}},
		{"init_module", unix.SYS_INIT_MODULE, 128, []string{"z", "64", "z"}},
		{"finit_module", unix.SYS_FINIT_MODULE, 350, []string{"1", "z", "0"}},
		{"delete_module", unix.SYS_DELETE_MODULE, 129, []string{"s:none", "0"}},
		{"add_key", unix.SYS_ADD_KEY, 286, []string{"s:user", "s:refold", "s:x", "1", "-4"}},
		{"request_key", unix.SYS_REQUEST_KEY, 287, []string{"s:user", "s:refold", "0", "-4"}},
		{"keyctl", unix.SYS_KEYCTL, 288, []string{"0", "-4", "1"}},
	}
	for _, network := range []bool{false, true} {
		boxesNamed(t, fmt.Sprint("network ", network), withCaller(t, sandbox.Config{Network: network}), sandbox.Privileges, func(t *testing.T, b *sandbox.Box) {
			refusedCalls(t, b, t.TempDir(), calls)
		})
	}
}

// TestAttackSocketFamilies: AF_VSOCK reaches the host of a virtual machine.
// Others reach kernel code that no command needs.
func TestAttackSocketFamilies(t *testing.T) {
	t.Parallel()
	var calls []call
	for family := range 50 {
		switch family {
		case unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK:
			continue
		}
		for _, kind := range []string{"1", "2", "3"} {
			args := []string{strconv.Itoa(family), kind, "0"}
			calls = append(
				calls,
				call{fmt.Sprintf("socket of family %d, kind %s", family, kind), unix.SYS_SOCKET, 359, args},
				call{fmt.Sprintf("socketpair of family %d, kind %s", family, kind), unix.SYS_SOCKETPAIR, 360, append(args, "z")},
			)
		}
	}
	for protocol := 1; protocol < 23; protocol++ {
		calls = append(calls, call{fmt.Sprintf("netlink protocol %d", protocol), unix.SYS_SOCKET, 359, []string{"16", "3", strconv.Itoa(protocol)}})
	}
	calls = append(
		calls,
		call{"socketcall for a socket", 0, 102, []string{"1", "z"}},
		call{"socketcall for a pair", 0, 102, []string{"8", "z"}},
	)
	for _, network := range []bool{false, true} {
		boxesNamed(t, fmt.Sprint("network ", network), withCaller(t, sandbox.Config{Network: network}), sandbox.Privileges, func(t *testing.T, b *sandbox.Box) {
			dir := t.TempDir()
			refusedCalls(t, b, dir, calls)
			program, err := caller()
			must(t, err)
			allowed := []string{"1 1 0", "1 2 0", "16 3 0"}
			if network || b.Command(nil, dir, nil).KillsDescendants() {
				allowed = append(allowed, "2 1 0", "2 2 17", "10 1 0")
			}
			for _, socket := range allowed {
				argv := append([]string{program, "native", strconv.Itoa(unix.SYS_SOCKET)}, strings.Fields(socket)...)
				if out, end := run(t, b, dir, nil, argv...); end.Exit != 0 {
					t.Errorf("socket(%s): %q, %+v; want it to work", socket, out, end)
				}
			}
		})
	}
}

// refusedCalls makes each call in each ABI, in dir, and wants it refused.
func refusedCalls(t *testing.T, b *sandbox.Box, dir string, calls []call) {
	t.Helper()
	program, err := caller()
	must(t, err)
	var script strings.Builder
	for _, c := range calls {
		for abi, number := range c.abis() {
			fmt.Fprintf(&script, "out=$(%s %s %d %s); case $out in EPERM|ENOSYS) ;; *) echo '%s in the ABI %s:' $out;; esac\n",
				program, abi, number, strings.Join(c.args, " "), c.name, abi)
		}
	}
	must(t, os.WriteFile(filepath.Join(dir, "script"), []byte(script.String()), 0o644))
	if out, end := run(t, b, dir, nil, "/bin/sh", "script"); out != "" || end.Exit != 0 {
		t.Errorf("not refused: %s%+v; want all calls refused with EPERM or ENOSYS", out, end)
	}
}
