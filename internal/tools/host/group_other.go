//go:build unix && !linux

package host

import (
	"os/exec"
	"syscall"
)

// groupAttr makes a child the leader of a group and session of its own: it has
// no terminal.
func groupAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// wait waits until the leader ends, and then kills the other processes of the
// group. In between, the group's number could be reused; systems assign numbers
// in turn, so that would take a full round.
func (g *group) wait(leader *exec.Cmd) error {
	err := leader.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = syscall.Kill(-g.pid, syscall.SIGKILL)
	g.waited = true
	return err
}
