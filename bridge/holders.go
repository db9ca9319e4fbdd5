package bridge

import (
	"context"
	"sync"
	"time"
)

// liveness is what is known of the process that holds a claim.
type liveness int

const (
	unheard liveness = iota // we have not listened for long enough to say
	alive
	gone
)

// holders tells who lives. We listen only as long as we hear ourselves: our
// heartbeats take the same way through the server as all others, so a broken
// connection, or a process that stood still, never looks like the death of
// another.
type holders struct {
	self string
	wire wire

	mu    sync.Mutex
	since time.Time // we have been listening without a gap since then
	own   time.Time // our own heartbeat was heard last then, or this process began
	first bool      // it was heard once
	gap   bool      // there was one that watch has not told of
	gaps  int       // that were longer than aliveGapMax
}

func newHolders(self string, w wire) *holders {
	return &holders{self: self, wire: w, own: time.Now()}
}

// watch looks for our own heartbeats until ctx ends. After a gap it calls
// broken: the server may have been away.
func (h *holders) watch(ctx context.Context, broken func()) {
	for pause(ctx.Done(), aliveEvery) {
		if h.look(); h.tookGap() {
			broken()
		}
	}
}

// look notes our own latest heartbeat, and a gap before it. To look late makes
// a gap where there was none, which does no harm.
func (h *holders) look() {
	at, ok := h.wire.Heard(h.self)
	h.mu.Lock()
	defer h.mu.Unlock()
	if !ok || !at.After(h.own) {
		return
	}
	if at.Sub(h.own) > aliveGapMax {
		h.gaps++
		h.first = false
	}
	if !h.first {
		h.since, h.gap, h.first = at, true, true
	}
	h.own = at
}

// tookGap reports once that there was a gap, whoever looked first.
func (h *holders) tookGap() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	gap := h.gap
	h.gap = false
	return gap
}

// mark returns a value that heardSince takes. look was called just before.
func (h *holders) mark() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.gaps
}

// heardSince reports whether we were heard without a gap from before a mark was
// taken on, so that nobody found us gone, and whether we are heard now.
func (h *holders) heardSince(mark int, at time.Time) (heard, now bool) {
	h.look()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.gaps == mark, at.Sub(h.own) <= aliveGapMax
}

// ask tells of an instance whether it lives. While that is unheard, wait is
// when to ask again.
func (h *holders) ask(instance string, now time.Time) (state liveness, wait time.Duration) {
	h.look()
	heard, _ := h.wire.Heard(instance)
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case instance == h.self, now.Sub(heard) < holderGone:
		return alive, 0
	case !h.first, now.Sub(h.own) > aliveGapMax:
		return unheard, holderGone
	case now.Sub(h.since) < holderGone:
		return unheard, holderGone - now.Sub(h.since)
	}
	return gone, 0
}
