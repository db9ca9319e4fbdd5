package delivery

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
)

// pullEnd is why a pullLoop ended.
type pullEnd string

const (
	pullRuns    pullEnd = ""
	pullReset   pullEnd = "reset"   // begin another epoch under the same pin
	pullLost    pullEnd = "lost"    // another client has the pin, or may have it
	pullDrained pullEnd = "drained" // every delivery that was begun is done
	pullStopped pullEnd = "stopped" // the context ended
)

// pulling is an epoch of a lane, or a puller: what pullLoop calls.
type pulling interface {
	// fill requests what there is room for.
	fill() pullEnd
	// arrivals returns the messages that were received.
	arrivals() <-chan *nats.Msg
	receive(m *nats.Msg) pullEnd
	// check finds what no message reports. ctx ends when draining begins.
	check(ctx context.Context, now time.Time) pullEnd
	// drain begins draining.
	drain()
}

// pullLoop pulls until p or ctx ends. freed reports that there is more room, draining
// that p is to be drained.
func pullLoop(ctx context.Context, p pulling, freed, draining <-chan struct{}, every time.Duration) pullEnd {
	undrained, cancel := untilDone(ctx, draining)
	defer cancel()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		end := p.fill()
		if end != pullRuns {
			return end
		}
		select {
		case <-ctx.Done():
			return pullStopped
		case m := <-p.arrivals():
			end = p.receive(m)
			for n := len(p.arrivals()); n > 0 && end == pullRuns; n-- { // this is the only receiver
				end = p.receive(<-p.arrivals())
			}
		case <-freed:
		case <-draining:
			draining = nil
			p.drain()
		case <-tick.C:
			end = p.check(undrained, time.Now())
		}
		if end != pullRuns {
			return end
		}
	}
}
