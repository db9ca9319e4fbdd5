// Package host is the executor of the built-in tools: host sessions, commands,
// and files under a working directory.
//
// # Path
//
// [Host.Execute] finds the call's host session (session.go), opens its working
// directory (workdir.go), decodes the arguments (arguments.go), and runs the
// tool: exec.go, with group.go for its processes and capture.go for their
// output; read.go, stat.go, glob.go and grep.go; write.go and applypatch.go,
// which change files through commit.go. Errors get their codes in failure.go.
//
// # Laws
//
//   - Confined: a file tool touches nothing outside the working directory,
//     whatever its paths and the symbolic links on them are, even if they
//     change while it runs (os.Root), and nothing in .git, unless its tool_id
//     begins with host.git. Options.Sandbox confines commands; without one they
//     may do what the host's user may.
//   - One path, one key: the tools and the planner agree on which paths lie
//     below the working directory, given the root that open reports. Only the
//     tools follow links: see docs/tools.md.
//   - Nothing is kept in memory between calls. Host sessions are files under
//     the root, so a host that was killed has lost none, and hosts that share a
//     root serve each other's.
//   - Repeatable where the registry says so: opening with the same key gives
//     the same host session and the same result, and so does closing; reads and
//     write_file change nothing the second time.
//   - Atomic: write_file, edit_file and apply_patch change a file completely or
//     not at all, and apply_patch all its files; but see Limits.
//   - A command's processes end with its call, on timeout and on cancel: in a
//     sandbox all of them, without one those in its process group.
//   - Every result is UTF-8 and bounded. It says what is left out and how to
//     see it. An error says what to do next.
//   - A call without a usable host session sets the session's status (closed,
//     expired, error), so that open_session is offered again. So a model never
//     has only tools that can't work.
//
// # Glossary
//
//   - Root: the host's directory. It holds a directory per session, unless
//     Options.WorkDir or the call of open says otherwise, and the records of
//     host sessions in .sessions.
//   - Host session: the right of one session to a working directory, from open
//     to close. Closing keeps the files.
//   - workdir: a working directory, opened for one call.
//   - Temporary directory: of a command in the sandbox, in the working directory
//     (temp.go).
//   - Route: the host that opened a session. If it is a target below the tools'
//     own (host-w1), later calls go to it; otherwise it is for people only.
//
// # Limits
//
// limits.go has them, and [Options] the configurable ones. Without a sandbox, a
// process that leaves its group (setsid) outlives its call. When this process is
// killed, Linux kills the shells that it started. Their children run until they
// next write output, or until the first sweep of a new host on the same root kills
// them (leftover_linux.go). A machine or process that dies in the middle of an
// apply_patch may have written some of its files, each one completely, and leaves
// files named .refold-*.tmp; the call is not retry-safe, so it is settled
// outcome_unknown. Calls of one host that change files in one working directory
// wait for each other, but not for other processes or for commands. Unix only.
//
// # Testing
//
// The tests call Execute as a bridge does, with JSON, on directories of their
// own. They wait for commands through named pipes and the kernel's tables,
// never by time.
package host
