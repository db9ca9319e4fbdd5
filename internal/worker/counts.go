package worker

import (
	"sync/atomic"
	"time"

	"github.com/refold/refold/actors/session"
)

// TargetCounts are the running counts of one target. nil counts nothing.
type TargetCounts struct {
	InFlight                         atomic.Int64
	Done, Failed, Retried, GivenBack atomic.Uint64
	Took, TookMax                    atomic.Int64 // nanoseconds, of settled effects
}

func (c *TargetCounts) begin() {
	if c != nil {
		c.InFlight.Add(1)
	}
}

func (c *TargetCounts) retry() {
	if c != nil {
		c.Retried.Add(1)
	}
}

func (c *TargetCounts) end(r *decision, took time.Duration) {
	if c == nil {
		return
	}
	c.InFlight.Add(-1)
	switch {
	case r.next != nextAck:
		c.GivenBack.Add(1)
		return
	case r.outcome.status == "": // settled by another bridge, or withdrawn
		return
	case r.outcome.status == session.CallSucceeded:
		c.Done.Add(1)
	default:
		c.Failed.Add(1)
	}
	c.Took.Add(int64(took))
	for most := c.TookMax.Load(); int64(took) > most && !c.TookMax.CompareAndSwap(most, int64(took)); {
		most = c.TookMax.Load()
	}
}
