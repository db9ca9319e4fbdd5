package bridge

import (
	"time"

	"github.com/refold/refold/internal/worker"
)

// TargetStats are the counts of one target since the bridge was connected.
type TargetStats struct {
	InFlight  int64  `json:"in_flight"`  // now in a slot, including those that wait for a rate
	Slots     int    `json:"slots"`      // how many may be in a slot at once
	Done      uint64 `json:"done"`       // settled as succeeded
	Failed    uint64 `json:"failed"`     // settled as anything else
	Retried   uint64 `json:"retried"`    // further tries of generations, also within Generate
	GivenBack uint64 `json:"given_back"` // to be delivered again, to any bridge
	// LatencyMS is the average time of settled effects, from their delivery to
	// their stored settlement, in milliseconds; LatencyMaxMS is the longest.
	LatencyMS    float64 `json:"latency_ms"`
	LatencyMaxMS float64 `json:"latency_max_ms"`
	Breaker      string  `json:"breaker,omitempty"` // closed, open, half_open; empty: it has none
	HeldMS       int64   `json:"held_ms,omitempty"` // the remaining pause that the provider asked for
	// Troubles are the current troubles that an executor with a method
	// Troubles() []string reports, such as a tool that differs from its descriptor.
	Troubles []string `json:"troubles,omitempty"`
}

func statsOf(s *worker.Target, now time.Time) TargetStats {
	c := s.Counts
	t := TargetStats{
		InFlight: c.InFlight.Load(), Slots: s.Concurrency, Done: c.Done.Load(), Failed: c.Failed.Load(), Retried: c.Retried.Load(),
		GivenBack: c.GivenBack.Load(), LatencyMaxMS: float64(c.TookMax.Load()) / 1e6,
	}
	if n := t.Done + t.Failed; n > 0 {
		t.LatencyMS = float64(c.Took.Load()) / float64(n) / 1e6
	}
	t.Troubles = s.Troubles()
	if s.Pace != nil {
		t.Breaker, t.HeldMS = s.Pace.State(now)
	}
	return t
}

func (b *Bridge) targetStats() map[string]TargetStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make(map[string]TargetStats, len(b.served))
	for i := range b.served {
		s := &b.served[i]
		all[s.String()] = statsOf(s, b.clock.Now())
	}
	return all
}

func (b *Bridge) metadata(targets string) map[string]string {
	all := map[string]string{"instance": b.instance, "name": b.options.Name, "targets": targets}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.served {
		if s := &b.served[i]; s.Lacks != "" {
			all["lacks "+s.String()] = s.Lacks
		}
	}
	return all
}
