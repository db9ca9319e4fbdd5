//go:build unix

package host

import (
	"sync"
	"syscall"
)

// group is a process group whose leader is a child of this process. The group's
// number is the leader's, and is the group's for as long as the leader was not
// waited for; then it may become another's. The lock keeps the two apart.
type group struct {
	mu     sync.Mutex
	pid    int
	waited bool
	why    error
}

// kill ends all processes of the group, for a reason; the first reason stands.
func (g *group) kill(why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waited {
		return
	}
	if g.why == nil {
		g.why = why
	}
	// Fails only if the group is gone, which is what is wanted.
	_ = syscall.Kill(-g.pid, syscall.SIGKILL)
}

// reason returns why the group was killed before its leader ended, or nil.
func (g *group) reason() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.why
}
