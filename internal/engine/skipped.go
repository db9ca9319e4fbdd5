package engine

import (
	"sync"
	"time"
)

// skippedEvery is how often events that name no session are logged at most.
const skippedEvery = time.Minute

// skipped counts events that name no session, of all lanes of a host, since they were
// last logged.
type skipped struct {
	mu     sync.Mutex
	events int
	told   time.Time
}

// skip counts an event whose subject names no session: the first one is logged, and then
// one in a minute, with the number of those since.
func (h *Host) skip(seq uint64, subject string) {
	h.meters.skipped.Add(1)
	s := &h.skipped
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events++
	if time.Since(s.told) < skippedEvery {
		return
	}
	h.log.Warn("event_skipped", "seq", seq, "subject", subject, "events", s.events)
	s.events, s.told = 0, time.Now()
}
