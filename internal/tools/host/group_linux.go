package host

import (
	"errors"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// groupAttr makes a child the leader of a group and session of its own: it has no
// terminal to which it could write escape sequences. The leader is killed if this
// process is: a command whose call will be settled as unknown should not continue.
func groupAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// wait waits until the leader ends, and then kills the other processes of the
// group. Between waitid and wait the leader has ended and still holds the
// group's number.
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
