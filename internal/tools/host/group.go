//go:build unix

package host

import (
	"sync"
	"syscall"
	"time"
)

// group is a process group whose leader is a child of this process. The group's
// number is the leader's, and is the group's for as long as the leader was not
// waited for; then it may become another's. The lock keeps the two apart.
type group struct {
	mu     sync.Mutex
	pid    int
	waited bool
	why    error
	gently func() // if given, ends all of the group and beyond, in its own time
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
	if g.gently != nil {
		gently := g.gently
		g.gently = nil
		gently()
		time.AfterFunc(gentleMax, func() { g.kill(why) })
		return
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
