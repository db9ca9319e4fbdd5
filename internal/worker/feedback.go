package worker

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/refold/refold/bridge/executor"
)

// feedback receives a Model's reports about one start of a generation: it
// implements executor.Feedback.
type feedback struct {
	of       *execution
	now      func() time.Time
	reported atomic.Pointer[executor.Error] // the latest fault that the model reported
	deltas   liveDeltas
}

// Anew restarts the streamed text.
func (b *feedback) Anew() bool {
	b.deltas.restart(b.now())
	return true
}

// Tried reports a failed try to the target.
func (b *feedback) Tried(fault *executor.Error, after time.Duration) {
	p, now := b.of.served.Pace, b.now()
	if p == nil {
		return
	}
	b.reported.Store(fault)
	p.pauseFor(after, now)
	p.failed(fault, now)
}

// Again reserves one more try. After the effect's start_by there is none.
func (b *feedback) Again(d time.Duration) time.Duration {
	s, now := b.of.served, b.now()
	switch {
	case b.of.late(now.Add(d)):
		return math.MaxInt64
	case s.Pace == nil:
		return d
	}
	s.Counts.retry()
	return s.Pace.reserveRetry(b.of, now, d)
}

func (b *feedback) ended(o *outcome, now time.Time) {
	p := b.of.served.Pace
	if p == nil {
		return
	}
	switch {
	case o.answer != nil:
		p.answered()
	case o.fault != nil && o.fault != b.reported.Load():
		p.failed(o.fault, now)
	}
}
