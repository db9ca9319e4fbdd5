package mcp

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// groupAttr makes a child the leader of a group and session of its own, without
// a terminal. The leader is killed if this process is.
func groupAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitEnd waits until a child ends without reaping it, so that it keeps the
// group's number.
func awaitEnd(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}
