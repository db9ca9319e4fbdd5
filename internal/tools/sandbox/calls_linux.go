package sandbox

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// abi are the numbers of the calls that a filter knows, in one ABI.
type abi struct {
	absent    []uint32 // as if the kernel didn't have them
	refused   []uint32
	masked    []masked
	sockets   []uint32 // they have a family, a kind and a protocol
	multiplex []uint32 // socketcall, whose other arguments are in memory
}

// masked is a call that is refused if each of some arguments has any of some
// bits.
type masked struct {
	number uint32
	all    []mask
}

type mask struct {
	argument int
	bits     uint32
}

const (
	setID   = unix.S_ISUID | unix.S_ISGID
	creates = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY

	multiplexSocket = 1
	multiplexPair   = 8

	x32Bit  = 0x40000000 // marks a call of the x32 ABI
	nothing = 0xffffffff
)

// nativeABI returns the calls of this architecture. Refused are:
//
//   - set-id modes: such a program has its owner's rights, wherever it is
//     started. Without a number for it, a mount outside of the sandbox is not
//     nosuid;
//   - user namespaces and setns, which give capabilities, and what needs them
//     and is not refused to all commands by the kernel itself;
//   - kernel code with a history of vulnerabilities: bpf, perf events, io_uring
//     (which also makes calls that a filter does not see) and userfaultfd;
//   - keyrings (Kerberos tickets, keys of encrypted disks, tokens): they are not
//     files, and every process of the user can use them;
//   - sockets except local ones, those of the internet, and routing
//     information. AF_VSOCK reaches the host of a virtual machine.
//
// Not refused are ptrace and process_vm_readv: Landlock keeps them within the
// sandbox, where debuggers need them.
func nativeABI() abi {
	flags := 0 // of clone
	if runtime.GOARCH == "s390x" {
		flags = 1
	}
	a := abi{
		absent: []uint32{unix.SYS_OPENAT2, unix.SYS_CLONE3}, // their flags are in memory
		refused: []uint32{
			unix.SYS_SETNS, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
			unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
			unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
			unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR,
			unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
			unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
		},
		masked: []masked{
			{unix.SYS_FCHMOD, []mask{{1, setID}}}, {unix.SYS_FCHMODAT, []mask{{2, setID}}}, {unix.SYS_FCHMODAT2, []mask{{2, setID}}},
			{unix.SYS_MKNODAT, []mask{{2, setID}}}, {unix.SYS_OPENAT, []mask{{2, creates}, {3, setID}}},
			{unix.SYS_UNSHARE, []mask{{0, unix.CLONE_NEWUSER}}}, {unix.SYS_CLONE, []mask{{flags, unix.CLONE_NEWUSER}}},
		},
		sockets: []uint32{unix.SYS_SOCKET, unix.SYS_SOCKETPAIR},
	}
	switch runtime.GOARCH { // calls that other architectures don't have
	case "amd64":
		a.refused = append(a.refused, 320) // kexec_file_load
		a.masked = append(a.masked, oldCalls(2, 85, 90, 133)...)
	case "arm64":
		a.refused = append(a.refused, 294) // kexec_file_load
	case "arm":
		a.refused = append(a.refused, 401) // kexec_file_load
		a.masked = append(a.masked, oldCalls(5, 8, 15, 14)...)
	}
	return a
}

// oldCalls are the calls with a path that newer architectures don't have.
func oldCalls(open, creat, chmod, mknod uint32) []masked {
	return []masked{
		{open, []mask{{1, creates}, {2, setID}}}, {creat, []mask{{1, setID}}}, {chmod, []mask{{1, setID}}}, {mknod, []mask{{1, setID}}},
	}
}

// i386ABI are the calls of 32-bit programs on x86, in the same order.
func i386ABI() abi {
	return abi{
		absent: []uint32{437, 435},
		refused: []uint32{
			346, 357, 336, 374, // setns, bpf, perf_event_open, userfaultfd
			425, 426, 427, // io_uring
			21, 22, 52, 217, 430, 431, 432, 433, // mount, umount, umount2, pivot_root, fsopen, fsconfig, fsmount, fspick
			428, 467, 429, 442, // open_tree, open_tree_attr, move_mount, mount_setattr
			283, 128, 350, 129, // kexec_load, init_module, finit_module, delete_module
			286, 287, 288, // add_key, request_key, keyctl
		},
		masked: append(
			[]masked{
				{94, []mask{{1, setID}}}, {306, []mask{{2, setID}}}, {452, []mask{{2, setID}}}, // fchmod, fchmodat, fchmodat2
				{297, []mask{{2, setID}}}, {295, []mask{{2, creates}, {3, setID}}}, // mknodat, openat
				{310, []mask{{0, unix.CLONE_NEWUSER}}}, {120, []mask{{0, unix.CLONE_NEWUSER}}}, // unshare, clone
			},
			oldCalls(5, 8, 15, 14)...,
		),
		sockets:   []uint32{359, 360},
		multiplex: []uint32{102},
	}
}
