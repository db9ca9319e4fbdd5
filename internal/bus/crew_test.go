package bus

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func TestCrewRunsAllAndEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c Crew
		var ran atomic.Int64
		hold := make(chan struct{})
		const rounds, atOnce = 3, crewIdleMax + 10
		for range rounds {
			var busy sync.WaitGroup
			busy.Add(atOnce)
			for range atOnce {
				c.Go(func() {
					ran.Add(1)
					busy.Done()
					<-hold // so that all of them run at once
				})
			}
			busy.Wait()
			close(hold)
			synctest.Wait()
			hold = make(chan struct{})
			if got := len(c.idle); got != crewIdleMax {
				t.Errorf("%d goroutines are kept, want %d", got, crewIdleMax)
			}
		}
		if got := ran.Load(); got != rounds*atOnce {
			t.Errorf("%d functions ran, want %d", got, rounds*atOnce)
		}
		c.End()
		c.Go(func() { ran.Add(1) })
		synctest.Wait() // what is left would fail the bubble's end
		if got := ran.Load(); got != rounds*atOnce+1 {
			t.Errorf("after its end %d functions ran, want %d", got, rounds*atOnce+1)
		}
	})
}

// A function that ends its goroutine takes nothing with it.
func TestCrewSurvivesGoexit(t *testing.T) {
	t.Parallel()
	var c Crew
	defer c.End()
	gone, done := make(chan struct{}), make(chan struct{})
	c.Go(func() {
		defer close(gone)
		runtime.Goexit()
	})
	<-gone
	c.Go(func() { close(done) })
	<-done
}
