package journal

import (
	"slices"
	"time"
)

const (
	// slowFrom is how long a message takes the server from which on messages are
	// stored in groups, while more wait. Without a sync the shortest burst took 15 to
	// 104 µs a message, with one 258 µs and more (docs/adr/0043). With 100 runs in
	// flight the wrong choice costs half of the runs a second or more, either way.
	slowFrom = 150 * time.Microsecond
	// The shortest of so many bursts decides, each of paceLeast to paceMost single
	// messages: any of them may have waited for a processor.
	paceBursts = 8
	paceLeast  = 16
	paceMost   = 64
)

// pace is what a committer has seen of how long its server takes for a message. It
// is judged once, from the first messages that have to wait. A Go bridge with
// default options stored single messages for good and made 412 runs a second where
// it makes 1,058: nobody had told it that its server syncs.
type pace struct {
	groups bool // what waits goes out in groups
	judged bool // by what was seen

	bursts int           // seen
	least  time.Duration // for a message, of those
	sent   int           // messages of the burst that is pending; 0: none is
	begun  time.Time
}

// begin begins a burst of so many messages. Nothing else may be pending until
// end.
func (p *pace) begin(n int, now time.Time) { p.sent, p.begun = n, now }

// end ends it: all of them are answered.
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

// waitsForGap reports whether the ready writes wait for more, because the last group
// was sent less than gap ago. If they go out now, the next gap begins. A committer
// that sends single messages has no gap, and an awaited write waits for none.
func (s *committerLoop) waitsForGap() bool {
	if s.gap == 0 || s.waits() {
		return false
	}
	if s.like.fast.Load() {
		s.pace.groups = false
	}
	if !s.pace.groups {
		return false
	}
	now := time.Now()
	if now.Before(s.next) && !slices.ContainsFunc(s.ready, func(w *write) bool { return w.awaited }) {
		return true
	}
	s.next = now.Add(s.gap)
	return false
}
