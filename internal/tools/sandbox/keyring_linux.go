package sandbox

import (
	"errors"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A user's keyrings are not files, and every process of the user reaches them:
// Kerberos tickets, keys of encrypted disks, tokens. So the system calls of
// keyrings are refused to a command, by a filter that its descendants inherit.

// Numbers of add_key, request_key and keyctl, of which 32-bit programs on amd64
// have others.
var (
	keyCalls   = []uint32{unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL}
	keyCalls32 = []uint32{286, 287, 288}
)

// x32Bit marks a call of the x32 ABI, whose numbers are amd64's.
const x32Bit = 0x40000000

// denyKeyrings refuses the calls of keyrings to this thread and all that it
// starts. It needs no_new_privs. Without it nothing changes; the trial finds
// that out.
func denyKeyrings() error {
	var program []unix.SockFilter
	add := func(code uint16, k uint32, otherwise int) {
		program = append(program, unix.SockFilter{Code: code, Jf: uint8(otherwise), K: k})
	}
	refuse := func(calls []uint32) {
		add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, numberAt, 0)
		for _, n := range calls {
			add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, n, 1)
			add(unix.BPF_RET|unix.BPF_K, unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM), 0)
		}
		add(unix.BPF_RET|unix.BPF_K, unix.SECCOMP_RET_ALLOW, 0)
	}
	native := slices.Clone(keyCalls)
	if runtime.GOARCH == "amd64" {
		// A number means another call in another ABI: 288 is accept4 in 64 bits.
		add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, abiAt, 0)
		add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, unix.AUDIT_ARCH_I386, 2+2*len(keyCalls32))
		refuse(keyCalls32)
		for _, n := range keyCalls {
			native = append(native, n|x32Bit)
		}
	}
	refuse(native)
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&filter)), 0, 0)
}

// Where a filter finds the number of a call and its ABI (struct seccomp_data).
const (
	numberAt = 0
	abiAt    = 4
)

// reachesKeyring reports whether this thread may use the keyring of its user.
func reachesKeyring() bool {
	_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, true)
	return !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.ENOSYS)
}
