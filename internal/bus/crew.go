package bus

import (
	"runtime"
	"sync"
)

const (
	// crewIdleMax is how many idle goroutines a crew keeps.
	crewIdleMax = 512
	// crewStackBytes is what each of them has of its stack in use at all times.
	// The garbage collector halves a stack of which less than a quarter is in use:
	// one of 16 KiB, which carrying out an effect needs, it leaves alone so.
	crewStackBytes = 4 << 10
)

// Crew runs what it is given in goroutines of their own, and keeps those that are
// done for what comes next, with the stacks that they have: a new goroutine's stack
// is copied each time it grows, and what carries out an effect grows it three
// times. The zero value is ready; a nil Crew keeps none.
type Crew struct {
	mu    sync.Mutex
	idle  []chan Runner // each of capacity 1; the last was busy last
	ended bool
}

// Runner is what a crew runs. It is no function, since one that knows what it is
// for would be made anew each time.
type Runner interface{ Run() }

// Go runs f in another goroutine. It never waits.
func (c *Crew) Go(f Runner) {
	if c == nil {
		go f.Run()
		return
	}
	c.mu.Lock()
	if n := len(c.idle); n > 0 {
		next := c.idle[n-1]
		c.idle = c.idle[:n-1]
		c.mu.Unlock()
		next <- f
		return
	}
	c.mu.Unlock()
	go c.run(f)
}

func (c *Crew) run(f Runner) {
	var used [crewStackBytes]byte
	next := make(chan Runner, 1)
	for f != nil {
		f.Run()
		if !c.rest(next) {
			break
		}
		f = <-next
	}
	runtime.KeepAlive(&used)
}

// rest puts a goroutine with those that are idle; false if there is no need.
func (c *Crew) rest(next chan Runner) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || len(c.idle) >= crewIdleMax {
		return false
	}
	c.idle = append(c.idle, next)
	return true
}

// End lets the idle goroutines go, and those that are busy when they are done.
// What Go is given afterwards still runs.
func (c *Crew) End() {
	c.mu.Lock()
	idle := c.idle
	c.idle, c.ended = nil, true
	c.mu.Unlock()
	for _, next := range idle {
		close(next)
	}
}
