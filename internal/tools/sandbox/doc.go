// Package sandbox runs untrusted commands.
//
// # Path
//
// A program calls [Child] first in its main, and [New] before it runs commands.
// New tests in a child what this kernel and these rights enforce (probe.go),
// and returns a [Report]. [Box.Command] starts this same program again
// (start_linux.go), in which [Child] takes over (child_linux.go): it makes files
// outside read-only (mount_linux.go), confines itself (confine_linux.go,
// filter_linux.go), starts the command under limits (limit_linux.go),
// watches the resources of the command and its descendants (watch_linux.go;
// memory_linux.go counts their memory), and reports how it ended. Where this
// process may make memory cgroups, each command gets one (cgroup_linux.go).
//
// # Laws
//
//   - Nothing is claimed that was not tested: a guarantee holds if a confined
//     child tried to break it and could not.
//   - Guarantees that are not enforced are reported, and [Mode] required then
//     fails. A command for which mounts or the filter can't be set up, though
//     the report promised it, does not start.
//   - A command's descendants end with it, whatever they do with their
//     sessions, groups and signals; and with this process.
//   - The child is confined, and the command limited, before the command's
//     first instruction. The limits do not apply to the supervisor, unless
//     tracing is forbidden.
//
// # How
//
// On Linux, as far as allowed: namespaces for processes, the network (with a
// loopback of its own), System V IPC and mounts, through a user namespace if we
// are not root; all mounts read-only except those that the command may write to;
// Landlock for files, abstract sockets and signals; rlimits for each process,
// and a check of their total use every 50 ms, also without a process namespace;
// no capabilities and no new privileges; a filter of system calls
// (calls_linux.go) for set-id modes, user namespaces, sockets and kernel code
// with a history. Other systems have none of this. The table in docs/tools.md
// says what enforces what in each mode.
//
// # Limits
//
// Without a process namespace the supervisor runs as the command's user, who
// may kill it; the command then continues, and nothing counts it. Between two
// checks only rlimits bound a burst of processes or of memory, and the limit of
// processes does not apply to root. Checks take at most about a tenth of a
// processor: if one takes long, the next comes later, after a second at most.
//
// Without a cgroup, memory is counted as far as /proc shows it: docs/tools.md lists
// what is counted. Not counted are the page cache, what pipes and sockets carry, huge
// pages, up to 8 MiB of locked memory for each process, what was unmapped of up
// to 64 shared mappings, and the kernel's own structures. Memory that hides, such
// as a memfd in a socket's queue, counts only as growth of the whole machine's
// shared memory, so a command that hides some may be ended for another's.
//
// Without a mount namespace a command changes modes and times of its user's other
// files. It can connect to sockets in the file system whose paths its user can
// read: Landlock covers them from ABI 9 on.
//
// # Testing
//
// The tests try each escape. Where this kernel can't prevent one, the report
// must say so.
package sandbox
