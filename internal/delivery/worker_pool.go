package delivery

import "runtime"

// workerStackBytes is what each goroutine of a worker pool has of its stack in use at
// all times. The garbage collector halves a stack of which less than a quarter is in use:
// one of 16 KiB, which carrying out an effect needs, it leaves alone so.
const workerStackBytes = 4 << 10

// workerPool runs tasks in goroutines of their own, and keeps idle goroutines for later
// tasks, with their stacks: a new goroutine's stack is copied each time it grows, and
// carrying out an effect grows it three times. Idle goroutines receive from the
// channel, until it is closed.
type workerPool chan runnable

// runnable is what a worker pool runs. It is no function: a closure would be allocated
// each time.
type runnable interface{ Run() }

// Go runs f in another goroutine. It never waits.
func (p workerPool) Go(f runnable) {
	select {
	case p <- f:
	default: // none is idle
		go p.run(f)
	}
}

func (p workerPool) run(f runnable) {
	var used [workerStackBytes]byte
	f.Run()
	for f := range p {
		f.Run()
	}
	runtime.KeepAlive(&used)
}
