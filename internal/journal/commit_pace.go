package journal

import (
	"slices"
	"time"
)

const (
	// slowFrom is the time for a message from which waiting messages are sent in groups.
	// Without a sync the shortest of a few samples took 18 to 104 µs a message
	// (docs/adr/0043). With 100 runs in flight the wrong choice, either way, costs half
	// of the runs a second or more.
	slowFrom = 150 * time.Microsecond
	// sampleMost is how many of a group's messages are sent singly for a sample. More
	// cost more syncs; of fewer the way to the server and back is a larger part.
	sampleMost = batchLeast
	// samplesFirst is how many groups are samples before the first batch. Any sample may
	// have waited for a processor: on a busy machine more than half of them do.
	samplesFirst = 4
	// Single messages are slow if in slowFor, and of slowAnswers or more, one took slowFrom
	// or longer on average. A sample can miss that: alone, a fast disk syncs in 30 µs a
	// message that takes 200 µs beside the syncs of other streams.
	slowFor     = time.Second
	slowAnswers = 64
)

// pace decides whether waiting messages are sent in groups. They are, until single
// messages prove fast. Single messages that are sent while nothing else is pending are
// a sample: the time until the last answer, divided by their number, is no less than
// what the server takes for one. Too few for a batch are a sample anyway. Of the first
// four groups, and of the eighth, the sixteenth and so on, some messages are sent singly
// for one.
type pace struct {
	fast bool // single messages are fast

	groups int       // that were large enough for a batch
	due    int       // the number of the next group that is a sample
	sample int       // messages of the pending sample; 0: none is pending
	begun  time.Time // when it was sent

	since   time.Time     // when single messages proved fast, or were last found not to be slow
	answers int           // to single messages since then
	busy    time.Duration // how long messages were pending, between since and from
	from    time.Time     // begin of the time that is not in busy yet: none was pending before
}

// takesSample counts a group, and reports whether some of its messages are a sample.
func (p *pace) takesSample() bool {
	if p.groups++; p.groups < p.due {
		return false
	}
	if p.groups >= samplesFirst {
		p.due = 2 * p.groups
	}
	return true
}

// begin begins a sample of n messages. Nothing else is pending until end.
func (p *pace) begin(n int, now time.Time) { p.sample, p.begun = n, now }

// end ends the sample: all its messages are answered.
func (p *pace) end(now time.Time, slowFrom time.Duration) {
	each := now.Sub(p.begun) / time.Duration(p.sample)
	p.sample = 0
	if each < slowFrom {
		*p = pace{fast: true, since: now}
	}
}

// answered counts an answer to a single message. pending others have none yet. If single
// messages have become slow, their pace is unknown again: the disk may have more to do
// than during the sample, or the stream another leader.
func (p *pace) answered(pending int, now time.Time, slowFrom time.Duration) {
	p.answers++
	judged := p.answers >= slowAnswers && now.Sub(p.since) >= slowFor
	if pending == 0 || judged {
		p.busy, p.from = p.busy+now.Sub(p.from), now
	}
	switch {
	case !judged:
	case p.busy/time.Duration(p.answers) >= slowFrom:
		*p = pace{}
	default:
		p.since, p.answers, p.busy = now, 0, 0
	}
}

// waitsForGap reports whether the ready writes must wait, because the last group was
// sent less than gap ago. If not, the next gap begins. A committer that sends single
// messages has no gap, and an awaited write does not wait for it.
func (s *committerLoop) waitsForGap() bool {
	if s.gap == 0 || s.pace.fast || s.outstanding > 0 {
		return false
	}
	now := time.Now()
	if now.Before(s.next) && !slices.ContainsFunc(s.ready, func(w *write) bool { return w.awaited }) {
		return true
	}
	s.next = now.Add(s.gap)
	return false
}
