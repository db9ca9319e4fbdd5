package delivery

import (
	"runtime"
	"sync"
)

const (
	// workersIdleMax is how many idle goroutines a worker pool keeps.
	workersIdleMax = 512
	// workerStackBytes is what each of them has of its stack in use at all times.
	// The garbage collector halves a stack of which less than a quarter is in use:
	// one of 16 KiB, which carrying out an effect needs, it leaves alone so.
	workerStackBytes = 4 << 10
)

// workerPool runs what it is given in goroutines of their own, and keeps those that are
// done for what comes next, with the stacks that they have: a new goroutine's stack
// is copied each time it grows, and what carries out an effect grows it three
// times. The zero value is ready; a nil workerPool keeps none.
type workerPool struct {
	mu    sync.Mutex
	idle  []chan runnable // each of capacity 1; the last was busy last
	ended bool
}

// runnable is what a worker pool runs. It is no function, since one that knows what it is
// for would be made anew each time.
type runnable interface{ Run() }

// Go runs f in another goroutine. It never waits.
func (c *workerPool) Go(f runnable) {
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

func (c *workerPool) run(f runnable) {
	var used [workerStackBytes]byte
	next := make(chan runnable, 1)
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
func (c *workerPool) rest(next chan runnable) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || len(c.idle) >= workersIdleMax {
		return false
	}
	c.idle = append(c.idle, next)
	return true
}

// End lets the idle goroutines go, and those that are busy when they are done.
// What Go is given afterwards still runs.
func (c *workerPool) End() {
	c.mu.Lock()
	idle := c.idle
	c.idle, c.ended = nil, true
	c.mu.Unlock()
	for _, next := range idle {
		close(next)
	}
}
