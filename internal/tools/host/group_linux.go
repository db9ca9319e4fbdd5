package host

import (
	"errors"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// groupAttr makes a child the leader of a group of its own, in a session of its
// own: it has no terminal that it could write escape sequences to. If this process is
// killed, so is the leader: a command whose call will be settled as unknown
// should not go on for longer than it must.
func groupAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// wait waits for the leader's end, and then ends what it left in the group. The
// leader is waited for in two steps: between them it has ended and still holds
// the group's number.
func (g *group) wait(leader *exec.Cmd) error {
	for {
		err := unix.Waitid(unix.P_PID, g.pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = syscall.Kill(-g.pid, syscall.SIGKILL)
	g.waited = true
	return leader.Wait()
}
