package delivery

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"unsafe"
)

type runnerFunc func()

func (f runnerFunc) Run() { f() }

func TestWorkerPoolRunsAllAndEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c workerPool
		var ran atomic.Int64
		hold := make(chan struct{})
		const rounds, atOnce = 3, workersIdleMax + 10
		for range rounds {
			var busy sync.WaitGroup
			busy.Add(atOnce)
			for range atOnce {
				c.Go(runnerFunc(func() {
					ran.Add(1)
					busy.Done()
					<-hold // so that all of them run at once
				}))
			}
			busy.Wait()
			close(hold)
			synctest.Wait()
			hold = make(chan struct{})
			if got := len(c.idle); got != workersIdleMax {
				t.Errorf("%d goroutines are kept, want %d", got, workersIdleMax)
			}
		}
		if got := ran.Load(); got != rounds*atOnce {
			t.Errorf("%d functions ran, want %d", got, rounds*atOnce)
		}
		c.End()
		c.Go(runnerFunc(func() { ran.Add(1) }))
		synctest.Wait() // what is left would fail the bubble's end
		if got := ran.Load(); got != rounds*atOnce+1 {
			t.Errorf("after its end %d functions ran, want %d", got, rounds*atOnce+1)
		}
	})
}

// A function that ends its goroutine takes nothing with it.
func TestWorkerPoolSurvivesGoexit(t *testing.T) {
	t.Parallel()
	var c workerPool
	defer c.End()
	gone, done := make(chan struct{}), make(chan struct{})
	c.Go(runnerFunc(func() {
		defer close(gone)
		runtime.Goexit()
	}))
	<-gone
	c.Go(runnerFunc(func() { close(done) }))
	<-done
}

// deep needs some KiB of stack, and returns where it is.
//
//go:noinline
func deep(depth int) uintptr {
	var frame [512]byte
	if depth > 0 {
		return deep(depth-1) + uintptr(frame[0])
	}
	return uintptr(unsafe.Pointer(&frame)) //nolint:gosec // to be compared
}

// A stack that has grown for one function is there for the next one, whatever the
// garbage collector thinks of it meanwhile.
func TestWorkerPoolKeepsItsStacks(t *testing.T) {
	t.Parallel()
	var c workerPool
	defer c.End()
	at := make(chan uintptr)
	where := func() uintptr {
		c.Go(runnerFunc(func() { at <- deep(10) }))
		return <-at
	}
	first := where()
	for idle := 0; idle == 0; runtime.Gosched() { // it goes to rest a little later
		c.mu.Lock()
		idle = len(c.idle)
		c.mu.Unlock()
	}
	for range 3 {
		runtime.GC()
	}
	if got := where(); got != first {
		t.Fatalf("the stack has moved by %d bytes, want it where it was", int64(got-first))
	}
}
