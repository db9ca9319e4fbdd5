package worker

import (
	"sync/atomic"
	"time"

	"github.com/refold/refold/bridge/executor"
)

// feedback takes what a Model tells of one start of a generation: it implements
// executor.Feedback.
type feedback struct {
	of     *execution
	told   atomic.Pointer[executor.Error] // the latest fault that the model told of
	deltas liveDeltas                     // what is streamed goes there
}

// Anew begins another start of what is streamed.
func (b *feedback) Anew() bool {
	b.deltas.anew(time.Now())
	return true
}

// Tried tells the target of a try that failed.
func (b *feedback) Tried(fault *executor.Error, after time.Duration) {
	p, now := b.of.served.Pace, time.Now()
	if p == nil {
		return
	}
	b.told.Store(fault)
	p.pauseFor(after, now)
	p.failed(fault, now)
}

// Again takes a place for one more try.
func (b *feedback) Again(d time.Duration) time.Duration {
	s := b.of.served
	if s.Pace == nil {
		return d
	}
	s.Counts.retry()
	return s.Pace.again(b.of, time.Now(), d)
}

// ended tells the target what became of the start.
func (b *feedback) ended(o *outcome, now time.Time) {
	p := b.of.served.Pace
	if p == nil {
		return
	}
	switch {
	case o.answer != nil:
		p.answered()
	case o.fault != nil && o.fault != b.told.Load():
		p.failed(o.fault, now)
	}
}
