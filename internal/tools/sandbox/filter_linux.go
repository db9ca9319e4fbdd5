package sandbox

import (
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A filter refuses system calls that neither Landlock nor limits can prevent.
// The command's descendants inherit it.
//
// A user's keyrings (Kerberos tickets, keys of encrypted disks, tokens) are not
// files, and every process of the user can use them. And without a network
// namespace, Landlock restricts only TCP, by its name: a multipath TCP socket
// reaches the same, and so do UDP and others. So only sockets of the local file
// system are allowed then, and no io_uring, which creates sockets without the call.

// The numbers of add_key, request_key and keyctl, and of socketcall, socket and
// io_uring_setup. 32-bit programs on amd64 have other numbers, and a filter
// can't see the arguments of their socketcall.
var (
	keyCalls      = []uint32{unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL}
	keyCalls32    = []uint32{286, 287, 288}
	socketCalls32 = []uint32{102, 359, unix.SYS_IO_URING_SETUP}
)

// x32Bit marks a call of the x32 ABI, whose numbers are amd64's.
const x32Bit = 0x40000000

// filterCalls refuses calls for keyrings, and all network sockets unless
// network is set, to this thread and its descendants. It needs no_new_privs. If
// the filter can't be set, nothing changes; the trial finds that out.
func filterCalls(network bool) error {
	var f filter
	native, other := slices.Clone(keyCalls), slices.Clone(keyCalls32)
	if !network {
		native, other = append(native, unix.SYS_IO_URING_SETUP), append(other, socketCalls32...)
	}
	// A number is another call in another ABI: 288 is accept4 in 64 bits.
	switch runtime.GOARCH {
	case "amd64":
		for _, n := range slices.Clone(native) {
			native = append(native, n|x32Bit)
		}
		if !network {
			native = append(native, unix.SYS_SOCKET|x32Bit)
		}
		f.load(abiAt)
		f.equal(unix.AUDIT_ARCH_I386, 0, 2+2*len(other))
		f.refuse(other)
		f.end(unix.SECCOMP_RET_ALLOW)
	case "386":
		if !network {
			native = append(native, socketCalls32[0])
		}
	case "arm64":
		f.load(abiAt)
		f.equal(unix.AUDIT_ARCH_AARCH64, 1, 0)
		f.end(refused)
	}
	f.refuse(native)
	if !network {
		f.equal(unix.SYS_SOCKET, 0, 4)
		f.load(argumentAt())
		f.equal(unix.AF_UNIX, 2, 0)
		f.equal(unix.AF_NETLINK, 1, 0) // queries the kernel for addresses
		f.end(refused)
	}
	f.end(unix.SECCOMP_RET_ALLOW)
	program := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}

// refused is the result of a refused call.
const refused = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)

// filter is a BPF program over a system call.
type filter []unix.SockFilter

// load loads the word at an offset of the call.
func (f *filter) load(at uint32) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at})
}

// equal skips then instructions if the word equals value, and otherwise
// instructions if not.
func (f *filter) equal(value uint32, then, otherwise int) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: uint8(then), Jf: uint8(otherwise), K: value})
}

// end decides about the call.
func (f *filter) end(how uint32) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: how})
}

func (f *filter) refuse(calls []uint32) {
	f.load(numberAt)
	for _, n := range calls {
		f.equal(n, 0, 1)
		f.end(refused)
	}
}

// The offsets of a call's number and ABI (struct seccomp_data).
const (
	numberAt = 0
	abiAt    = 4
)

// argumentAt is the offset of the low half of the first argument.
func argumentAt() uint32 {
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 {
		return 20
	}
	return 16
}

// reachesKeyring reports whether this thread may use the keyring of its user.
func reachesKeyring() bool {
	_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, true)
	return !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.ENOSYS)
}
