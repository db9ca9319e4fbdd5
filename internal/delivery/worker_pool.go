package delivery

import "runtime"

// workerStackBytes is how much stack each idle goroutine of a worker pool uses. The
// garbage collector halves a stack of which less than a quarter is in use. With 4 KiB it
// keeps a stack of 16 KiB, which carrying out an effect needs.
const workerStackBytes = 4 << 10

// workerPool runs each task in a goroutine, and keeps idle goroutines with their stacks
// for later tasks. A new goroutine's stack is copied each time it grows, and carrying
// out an effect grows it three times. Idle goroutines receive from the channel until it
// is closed.
type workerPool chan runnable

// runnable is a task. It is not a function, since each task would allocate a closure.
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
