package mcp

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// groupAttr makes a child the leader of a group of its own, in a session of its
// own, which has no terminal. If this process is killed, so is the leader.
func groupAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitEnd waits until a child ended, and leaves it to be waited for: until then
// it holds the group's number.
func awaitEnd(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}
