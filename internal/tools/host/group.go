//go:build unix

package host

import (
	"sync"
	"syscall"
	"time"
)

// group is a process group whose leader is a child of this process. The group
// has the leader's pid, which may be reused once the leader has been waited
// for. The lock prevents a kill after that.
type group struct {
	mu     sync.Mutex
	pid    int
	waited bool
	why    error
	gently func() // if set, ends the group and processes outside of it, taking some time
}

// kill kills all processes of the group. The reason of the first call is kept.
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
	// Fails only if the group is gone.
	_ = syscall.Kill(-g.pid, syscall.SIGKILL)
}

// reason returns why the group was killed before its leader ended, or nil.
func (g *group) reason() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.why
}
