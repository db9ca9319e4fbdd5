package worker

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/refold/refold/bridge/executor"
)

// Pacer says when the generations of one provider may start. It is nil for what
// is no model.
type Pacer struct {
	limits  map[string]*rate.Limiter // by model; of "" for all; fixed before Run
	breaker *breaker                 // nil: none

	mu    sync.Mutex
	until time.Time // nothing starts before: the provider asked for it

	health health
}

// Limit holds the starts of a model, or of all of them, to n in each per.
func (s *Target) Limit(model string, n int, per time.Duration) {
	p := s.Paced()
	if p.limits == nil {
		p.limits = make(map[string]*rate.Limiter)
	}
	p.limits[model] = rate.NewLimiter(rate.Every(per/time.Duration(n)), n)
}

// BreakAfter stops the starts of a provider for a while after faults in a row.
func (s *Target) BreakAfter(faults int, pause time.Duration) {
	s.Paced().breaker = &breaker{faultsMax: faults, pause: pause}
}

// Paced returns the target's pace, and makes it if there is none.
func (s *Target) Paced() *Pacer {
	if s.Pace == nil {
		s.Pace = new(Pacer)
	}
	return s.Pace
}

// hold lets nothing start for d.
func (p *Pacer) hold(now time.Time, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := now.Add(min(d, holdMax)); until.After(p.until) {
		p.until = until
	}
}

// held returns for how long nothing starts.
func (p *Pacer) held(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(0, p.until.Sub(now))
}

// State returns what Stats tell: of the breaker, and for how long nothing starts.
func (p *Pacer) State(now time.Time) (breaker string, heldMS int64) {
	return p.breaker.state(now), p.held(now).Milliseconds()
}

// reservations is one among the starts of a model: of its target's, and of its own.
type reservations [2]*rate.Reservation

// reserve takes a place and returns how long it is until then.
func (p *Pacer) reserve(model string, now time.Time) (wait time.Duration, taken reservations) {
	wait = p.held(now)
	for i, limiter := range [...]*rate.Limiter{p.limits[""], p.limits[model]} {
		if limiter == nil || model == "" && i > 0 {
			continue
		}
		taken[i] = limiter.ReserveN(now, 1)
		wait = max(wait, taken[i].DelayFrom(now))
	}
	return wait, taken
}

// cancel gives a place back.
func (taken reservations) cancel(now time.Time) {
	for _, r := range taken {
		if r != nil {
			r.CancelAt(now)
		}
	}
}

// again is how long another try waits that would wait for d, the place among
// the starts taken.
func (p *Pacer) again(model string, now time.Time, d time.Duration) time.Duration {
	if p == nil {
		return d
	}
	wait, _ := p.reserve(model, now)
	return max(d, wait)
}

// admit waits until f may start, or rules that it is given back. What is late
// passes: it is not started, only settled.
func (w *Worker) admit(f *execution) decision {
	now, s := w.now(), f.served
	if f.generation == nil || f.late(now) {
		return decision{next: nextStart}
	}
	if wait, ok := s.Pace.breaker.admit(f, now); !ok {
		return giveBack(untilLate(f, now, wait), "the provider fails, others wait until it answers")
	}
	wait, place := s.Pace.reserve(f.generation.Model, now)
	if wait == 0 {
		return decision{next: nextStart}
	}
	if wait > paceWaitMax || f.late(now.Add(wait)) {
		place.cancel(now)
		return giveBack(untilLate(f, now, wait), "its turn under the provider's rate is later")
	}
	if !w.waitToRetry(f, wait) {
		place.cancel(w.now())
		if f.isWithdrawn() {
			return decision{next: nextStart} // start says so
		}
		return giveBack(stoppingDelay, "this bridge is stopping")
	}
	if again := s.Pace.held(w.now()); again > 0 { // asked for meanwhile
		return giveBack(untilLate(f, w.now(), again), "the provider asked to wait")
	}
	return decision{next: nextStart}
}

// untilLate is wait, but for what would be late then: that comes back as soon
// as it is, to be settled.
func untilLate(f *execution, now time.Time, wait time.Duration) time.Duration {
	return max(0, min(wait, f.startBy.Sub(now)+time.Millisecond))
}

// starting is what one start of a generation tells its target.
type starting struct {
	of     digest // the generation's name
	pace   *Pacer
	counts *TargetCounts // nil: the same
	told   atomic.Pointer[executor.Error]
}

// feedback takes what a Model tells of one start of a generation: it implements
// executor.Feedback.
type feedback struct {
	own    starting
	told   *starting // own; nil: nobody hears what becomes of this start
	model  string
	deltas liveDeltas // what is streamed goes there
}

// Anew begins another start of what is streamed.
func (b *feedback) Anew() bool {
	b.deltas.anew(time.Now())
	return true
}

// Tried tells the target of a try that failed.
func (b *feedback) Tried(fault *executor.Error, after time.Duration) {
	if b.told != nil {
		b.told.tried(fault, after, time.Now())
	}
}

// Again takes a place for one more try.
func (b *feedback) Again(d time.Duration) time.Duration {
	if b.told == nil {
		return d
	}
	return b.told.again(b.model, d, time.Now())
}

func (s *starting) tried(fault *executor.Error, after time.Duration, now time.Time) {
	s.told.Store(fault)
	if after > 0 {
		s.pace.hold(now, after)
	}
	s.pace.breaker.faulted(fault, now)
	s.pace.health.failed(fault, now)
}

// again takes a place for one more try of a model, which would wait for d.
func (s *starting) again(model string, d time.Duration, now time.Time) time.Duration {
	s.counts.retry()
	d = s.pace.again(model, now, d)
	s.pace.health.again(s.of, now.Add(d))
	return d
}

// ended takes what became of a start. nil has nothing to tell it to.
func (s *starting) ended(o *outcome, now time.Time) {
	if s == nil {
		return
	}
	s.pace.health.over(s.of)
	switch {
	case o.answer != nil:
		s.pace.breaker.answered()
		s.pace.health.answered()
	case o.fault != nil && o.fault != s.told.Load():
		s.pace.breaker.faulted(o.fault, now)
		s.pace.health.failed(o.fault, now)
	}
}
