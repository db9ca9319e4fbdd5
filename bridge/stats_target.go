package bridge

import (
	"sync/atomic"
	"time"

	"github.com/refold/refold/actors/session"
)

// TargetStats are the counts of one target since the bridge was connected.
type TargetStats struct {
	InFlight  int64  `json:"in_flight"`  // carried now: those that wait for a rate included
	Slots     int    `json:"slots"`      // how many may be carried at once
	Done      uint64 `json:"done"`       // settled as succeeded
	Failed    uint64 `json:"failed"`     // settled as anything else
	Retried   uint64 `json:"retried"`    // further tries of generations, those within Generate too
	GivenBack uint64 `json:"given_back"` // to be offered again, here or elsewhere
	// LatencyMS is how long effects took on the average that were settled, from
	// their delivery to their stored settlement, in milliseconds; LatencyMaxMS
	// the longest.
	LatencyMS    float64 `json:"latency_ms"`
	LatencyMaxMS float64 `json:"latency_max_ms"`
	Breaker      string  `json:"breaker,omitempty"` // closed, open, half_open; empty: it has none
	HeldMS       int64   `json:"held_ms,omitempty"` // for so long nothing starts, because the provider asked for it
	// Troubles are what an executor with a method Troubles() []string says is
	// wrong now, such as a tool that is not what sessions were told.
	Troubles []string `json:"troubles,omitempty"`
}

// targetCounts are the same, while they grow. nil counts nothing.
type targetCounts struct {
	inFlight                         atomic.Int64
	done, failed, retried, givenBack atomic.Uint64
	took, tookMax                    atomic.Int64 // nanoseconds, of those settled
}

func (c *targetCounts) begin() {
	if c != nil {
		c.inFlight.Add(1)
	}
}

func (c *targetCounts) retry() {
	if c != nil {
		c.retried.Add(1)
	}
}

// end takes what became of an effect.
func (c *targetCounts) end(r *ruling, took time.Duration) {
	if c == nil {
		return
	}
	c.inFlight.Add(-1)
	switch {
	case r.next != nextAck:
		c.givenBack.Add(1)
		return
	case r.outcome.status == "": // another bridge has settled it, or nobody needs it
		return
	case r.outcome.status == session.CallSucceeded:
		c.done.Add(1)
	default:
		c.failed.Add(1)
	}
	c.took.Add(int64(took))
	for most := c.tookMax.Load(); int64(took) > most && !c.tookMax.CompareAndSwap(most, int64(took)); {
		most = c.tookMax.Load()
	}
}

// stats returns the counts of a target now.
func (s *served) stats(now time.Time) TargetStats {
	c := s.counts
	t := TargetStats{
		InFlight: c.inFlight.Load(), Slots: s.concurrency, Done: c.done.Load(), Failed: c.failed.Load(), Retried: c.retried.Load(),
		GivenBack: c.givenBack.Load(), LatencyMaxMS: float64(c.tookMax.Load()) / 1e6,
	}
	if n := t.Done + t.Failed; n > 0 {
		t.LatencyMS = float64(c.took.Load()) / float64(n) / 1e6
	}
	if of, ok := s.executor.(interface{ Troubles() []string }); ok {
		t.Troubles = of.Troubles()
	}
	if s.pace != nil {
		t.Breaker, t.HeldMS = s.pace.breaker.state(now), s.pace.held(now).Milliseconds()
	}
	return t
}

// targetStats returns those of all targets.
func (b *Bridge) targetStats() map[string]TargetStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make(map[string]TargetStats, len(b.served))
	for i := range b.served {
		s := &b.served[i]
		all[s.name()] = s.stats(b.worker.now())
	}
	return all
}

// Lacks says in a sentence what a target lacks that it is served with, as a
// key: `refold bridge doctor` tells it.
func Lacks(text string) ServeOption { return func(s *served) { s.lacks = text } }

// metadata is what the bridge tells of itself as a service.
func (b *Bridge) metadata(targets string) map[string]string {
	all := map[string]string{"instance": b.worker.instance, "name": b.options.Name, "targets": targets}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.served {
		if s := &b.served[i]; s.lacks != "" {
			all["lacks "+s.name()] = s.lacks
		}
	}
	return all
}
