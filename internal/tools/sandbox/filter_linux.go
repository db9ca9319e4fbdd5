package sandbox

import (
	"encoding/binary"
	"errors"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A filter refuses system calls that neither mounts nor Landlock nor limits can
// prevent. The command's descendants inherit it. calls_linux.go lists the calls.
//
// The filter sees numbers, and not what an address points to. So it can't
// decide about paths, and calls whose arguments are in memory are refused whole.

// filterCalls refuses calls to this thread and its descendants, and all network
// sockets unless network is set. It needs no_new_privs. If the filter can't be
// set, nothing changes.
func filterCalls(network bool) error {
	f := program(network)
	p := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&p)), 0, 0)
}

// program returns the filter of this architecture.
func program(network bool) (f filter) {
	native := nativeABI()
	switch runtime.GOARCH {
	case "amd64":
		var foreign filter // a number is another call there: 288 is accept4 in 64 bits
		foreign.decide(i386ABI(), network)
		f.load(abiAt)
		f.equal(unix.AUDIT_ARCH_I386, 1, 0)
		f.skip(len(foreign))
		f = append(f, foreign...)
		// x32 is amd64 with other numbers. Almost no kernel has it, and a kernel
		// without it answers the same.
		f.load(numberAt)
		f.equal(nothing, 2, 0) // a tracer skips a call by this number
		f.anyOf(x32Bit, 0, 1)
		f.end(absent)
		f.load(abiAt)
		f.equal(unix.AUDIT_ARCH_X86_64, 1, 0)
		f.end(refused)
	case "386":
		native = i386ABI()
		f.load(abiAt)
		f.equal(unix.AUDIT_ARCH_I386, 1, 0)
		f.end(refused)
	case "arm64":
		f.load(abiAt)
		f.equal(unix.AUDIT_ARCH_AARCH64, 1, 0)
		f.end(refused)
	}
	f.decide(native, network)
	return f
}

// decide appends the whole decision about a call of one ABI.
func (f *filter) decide(a abi, network bool) {
	f.load(numberAt)
	for _, n := range a.absent {
		f.equal(n, 0, 1)
		f.end(absent)
	}
	for _, n := range a.refused {
		f.equal(n, 0, 1)
		f.end(refused)
	}
	for _, c := range a.masked {
		f.equal(c.number, 0, 2*len(c.all)+2)
		for i, m := range c.all {
			f.load(argumentAt(m.argument))
			f.anyOf(m.bits, 0, 2*(len(c.all)-1-i)+1)
		}
		f.end(refused)
		f.end(unix.SECCOMP_RET_ALLOW)
	}
	for _, n := range a.multiplex {
		f.equal(n, 0, 5)
		f.load(argumentAt(0))
		f.equal(multiplexSocket, 1, 0)
		f.equal(multiplexPair, 0, 1)
		f.end(refused)
		f.end(unix.SECCOMP_RET_ALLOW)
	}
	families := []uint32{unix.AF_UNIX}
	if network {
		families = append(families, unix.AF_INET, unix.AF_INET6)
	}
	for _, n := range a.sockets {
		f.equal(n, 0, len(families)+6)
		f.load(argumentAt(0))
		for i, family := range families {
			f.equal(family, len(families)-i+3, 0)
		}
		f.equal(unix.AF_NETLINK, 0, 2) // queries the kernel for addresses
		f.load(argumentAt(2))
		f.equal(unix.NETLINK_ROUTE, 1, 0)
		f.end(refused)
		f.end(unix.SECCOMP_RET_ALLOW)
	}
	f.end(unix.SECCOMP_RET_ALLOW)
}

// The results of calls that are not carried out. A program that gets absent uses
// an older call.
const (
	refused = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	absent  = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

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

// anyOf is equal for a word that has any of the bits.
func (f *filter) anyOf(bits uint32, then, otherwise int) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, Jt: uint8(then), Jf: uint8(otherwise), K: bits})
}

// skip skips instructions, of which there may be more than 255.
func (f *filter) skip(n int) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA, K: uint32(n)})
}

// end decides about the call.
func (f *filter) end(how uint32) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: how})
}

// The offsets of a call's number and ABI (struct seccomp_data).
const (
	numberAt = 0
	abiAt    = 4
)

// argumentAt is the offset of the low half of an argument.
func argumentAt(n int) uint32 {
	at := uint32(16 + 8*n)
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 {
		at += 4
	}
	return at
}

// unfiltered reports whether this thread may do what the filter refuses: use the
// keyring of its user, and leave the user namespace.
func unfiltered() bool {
	_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, true)
	keyring := !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.ENOSYS)
	return keyring || !errors.Is(unix.Unshare(unix.CLONE_NEWUSER), os.ErrPermission)
}
