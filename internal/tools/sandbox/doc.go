// Package sandbox runs commands that nobody vouches for.
//
// # Path
//
// A program calls [Child] first in its main, and [New] where it wants to run
// commands: New tries out, in a child, what this kernel and these rights enforce
// (probe.go), and says it in a [Report]. [Box.Command] starts this same program
// again (start_linux.go). There [Child] takes over (child_linux.go): it confines
// itself (confine_linux.go), starts the command under limits (limit_linux.go), watches what the command and its
// descendants use (watch_linux.go), and tells how it ended.
//
// # Laws
//
//   - Nothing is claimed that was not tried: a guarantee holds if a child that was
//     confined tried to get around it and could not.
//   - What is not enforced is said, never passed over: [Mode] required fails then.
//   - A command's descendants end with it, whatever they do with their sessions,
//     groups and signals; and with this process.
//   - The child's confinement comes before the command's first instruction, and so
//     do the command's limits. They are not the supervisor's, but where nobody may
//     be traced.
//
// # How
//
// On Linux, as far as it is allowed: namespaces for processes, the network (with a
// loopback of its own), System V IPC and mounts, of which a user namespace is the
// ticket where we are not root; Landlock for files; rlimits for each process, and a
// look at all of them every 50 ms for what they use together; no capabilities and
// no new privileges; a filter of system calls (filter_linux.go) for keyrings, and
// for sockets where there is no network namespace. On other systems nothing of
// this.
//
// # Limits
//
// Without a process namespace the supervisor of the command has the command's own
// user, who may kill it: what was started then goes on. A burst of processes or of
// memory between two looks is bounded by rlimits alone, of which that of processes
// does not count for root. Sockets in the file system can be connected to if the
// path is readable by the command's user: Landlock has no say before ABI 9.
//
// # Testing
//
// Each escape is tried for real. Where this kernel can't prevent one, the test
// asks that the report says so.
package sandbox
