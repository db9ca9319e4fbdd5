package journal

import (
	"slices"
	"time"
)

const (
	// slowFrom is the time for a message from which a committer uses groups. Without a
	// sync the shortest burst took 15 to 104 µs a message, with one 258 µs and more
	// (docs/adr/0043). With 100 runs in flight the wrong choice, either way, costs half
	// of the runs a second or more.
	slowFrom = 150 * time.Microsecond
	// The shortest of paceBursts bursts decides, since any burst may have waited for a
	// processor. Each has paceLeast to paceMost single messages.
	paceBursts = 8
	paceLeast  = 16
	paceMost   = 64
)

// pace measures how long the server takes for a message, and decides, from the first
// messages that wait after the connection was made, whether a committer uses groups. Measuring replaced an
// option: a Go bridge with default options, whose server synced, stored single messages
// and made 412 runs a second where it makes 1,058 now.
type pace struct {
	groups bool // waiting writes are sent in groups
	judged bool // groups is final

	bursts int           // measured
	least  time.Duration // for a message, in the shortest burst
	sent   int           // messages of the pending burst; 0: none is pending
	begun  time.Time
}

// begin begins a burst of n messages. Nothing else may be pending until end.
func (p *pace) begin(n int, now time.Time) { p.sent, p.begun = n, now }

// end ends the burst: all its messages are answered.
func (p *pace) end(now time.Time) {
	each := now.Sub(p.begun) / time.Duration(p.sent)
	if p.bursts == 0 || each < p.least {
		p.least = each
	}
	p.sent = 0
	if p.bursts++; p.bursts == paceBursts {
		p.groups, p.judged = p.least >= slowFrom, true
	}
}

// measureAgain drops the measurement, since the server may have been started again with
// another sync_interval. A committer that follows another one has none.
func (s *committerLoop) measureAgain() {
	if s.like == nil {
		s.pace = pace{}
		s.fast.Store(false)
	}
}

// waitsForGap reports whether the ready writes must wait, because the last group was
// sent less than gap ago. If not, the next gap begins. A committer that sends single
// messages has no gap, and an awaited write does not wait for it.
func (s *committerLoop) waitsForGap() bool {
	if s.gap == 0 || s.waits() {
		return false
	}
	if s.pace.groups = !s.like.fast.Load(); !s.pace.groups {
		return false
	}
	now := time.Now()
	if now.Before(s.next) && !slices.ContainsFunc(s.ready, func(w *write) bool { return w.awaited }) {
		return true
	}
	s.next = now.Add(s.gap)
	return false
}
