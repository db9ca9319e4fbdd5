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
		c := make(workerPool)
		var ran atomic.Int64
		hold := make(chan struct{})
		const rounds, atOnce = 3, 500
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
		}
		if got := ran.Load(); got != rounds*atOnce {
			t.Errorf("%d functions ran, want %d", got, rounds*atOnce)
		}
		for range atOnce { // each goes to one of the goroutines that are kept, or waits for good
			c <- runnerFunc(func() { ran.Add(1); <-hold })
		}
		synctest.Wait()
		if got := ran.Load(); got != (rounds+1)*atOnce {
			t.Errorf("%d functions ran, want %d", got, (rounds+1)*atOnce)
		}
		close(hold)
		close(c)
		synctest.Wait() // what is left would fail the bubble's end
	})
}

// A task that ends its goroutine does not affect other tasks.
func TestWorkerPoolSurvivesGoexit(t *testing.T) {
	t.Parallel()
	c := make(workerPool)
	defer close(c)
	gone, done := make(chan struct{}), make(chan struct{})
	c.Go(runnerFunc(func() {
		defer close(gone)
		runtime.Goexit()
	}))
	<-gone
	c.Go(runnerFunc(func() { close(done) }))
	<-done
}

// deep uses some KiB of stack, and returns its address.
//
//go:noinline
func deep(depth int) uintptr {
	var frame [512]byte
	if depth > 0 {
		return deep(depth-1) + uintptr(frame[0])
	}
	return uintptr(unsafe.Pointer(&frame)) //nolint:gosec // to be compared
}

// A stack that has grown for one task is reused for the next one, even after a garbage
// collection.
func TestWorkerPoolKeepsStacks(t *testing.T) {
	t.Parallel()
	c := make(workerPool)
	defer close(c)
	at := make(chan uintptr)
	where := runnerFunc(func() { at <- deep(10) })
	c.Go(where)
	first := <-at
	c <- where // to the goroutine that is kept, when it is idle
	<-at
	for range 3 {
		runtime.GC()
	}
	c <- where
	if got := <-at; got != first {
		t.Fatalf("the stack has moved by %d bytes, want it where it was", int64(got-first))
	}
}
