package bridge

import (
	"encoding/json"

	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/subjects"
)

// Stats are counts since the bridge was connected. `nats micro stats
// refold-bridge` shows them.
type Stats struct {
	Started   uint64 `json:"started"`    // executors, models and hooks called
	Settled   uint64 `json:"settled"`    // settlements stored
	GivenBack uint64 `json:"given_back"` // deliveries given back, to be offered again
	Conflicts uint64 `json:"conflicts"`  // claims that another bridge held
	Foreign   uint64 `json:"foreign"`    // messages that are no effects, skipped
	Deltas    uint64 `json:"deltas"`     // of streamed text, published

	Claims ClaimStats `json:"claims"`

	// ClockAheadMS is how far this machine's clock is ahead of the server's, in
	// milliseconds, by the latest measurement; nil before the first one.
	ClockAheadMS *int64 `json:"clock_ahead_ms,omitempty"`

	Targets map[string]TargetStats `json:"targets"` // by target: llm/openai

	Rendered    CacheStats `json:"rendered"`    // tools in a provider's form: see executor.Request.RenderTools
	Descriptors CacheStats `json:"descriptors"` // of tools, by their hash
	Prompts     CacheStats `json:"prompts"`     // files of prompts, by their hash
	Events      CacheStats `json:"events"`      // of sessions, for their next turn
}

// ClaimStats are the counts of claims that this bridge tried to store.
type ClaimStats struct {
	Won       uint64 `json:"won"`        // the first claim of an effect
	TakenOver uint64 `json:"taken_over"` // a later one: its holder was gone
	Lost      uint64 `json:"lost"`       // another bridge has it
	Withdrawn uint64 `json:"withdrawn"`  // no bridge may start the effect any more
}

// CacheStats are the counts of one cache.
type CacheStats struct {
	Hits    uint64 `json:"hits"`    // since the bridge was connected
	Misses  uint64 `json:"misses"`  // the same
	Entries int    `json:"entries"` // now
	Bytes   int    `json:"bytes"`   // of memory, about
}

// Stats returns the bridge's counts.
func (b *Bridge) Stats() Stats {
	w, c := b.worker.Counts(), b.worker.Caches()
	var ahead *int64
	if d, ok := b.clock.Ahead(); ok {
		ahead = new(d.Milliseconds())
	}
	return Stats{
		ClockAheadMS: ahead,
		Started:      w.Started.Load(), Settled: w.Settled.Load(), GivenBack: w.GivenBack.Load(),
		Conflicts: w.Conflicts.Load(), Foreign: w.Foreign.Load(), Deltas: w.Deltas.Load(),
		Claims:  ClaimStats{Won: w.Won.Load(), TakenOver: w.TakenOver.Load(), Lost: w.Conflicts.Load(), Withdrawn: w.Withdrawn.Load()},
		Targets: b.targetStats(), Rendered: CacheStats(c.Rendered), Descriptors: CacheStats(c.Descriptors), Prompts: CacheStats(c.Prompts), Events: CacheStats(c.Events),
	}
}

// statsEndpoint answers with this bridge's counts. A micro service shows counts
// of its own only with those of an endpoint, so it needs one.
func (b *Bridge) statsEndpoint() (presence.Endpoint, error) {
	subject, err := b.bus.Names().ServiceStats(subjects.KindBridge, b.instance)
	return presence.Endpoint{
		Name: "stats", Subject: subject,
		Answer: func(string, []byte) ([]byte, error) { return json.Marshal(b.Stats()) },
	}, err
}

func (b *Bridge) logStats() {
	s := b.Stats()
	for _, c := range []struct {
		name string
		CacheStats
	}{{"rendered", s.Rendered}, {"descriptors", s.Descriptors}, {"prompts", s.Prompts}, {"events", s.Events}} {
		b.options.Logger.Debug("cache_counts", "cache", c.name, "hits", c.Hits, "misses", c.Misses, "entries", c.Entries, "bytes", c.Bytes)
	}
}
