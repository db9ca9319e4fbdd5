//go:build unix && !linux

package host

import (
	"os/exec"
	"syscall"
)

// groupAttr makes a child the leader of a group of its own, in a session of its
// own: it has no terminal.
func groupAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// wait waits for the leader's end, and then ends what it left in the group. For
// the moment between the two, the group's number could be another's; systems
// give numbers out in turn, so it would take a full round.
func (g *group) wait(leader *exec.Cmd) error {
	err := leader.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = syscall.Kill(-g.pid, syscall.SIGKILL)
	g.waited = true
	return err
}
