package bridge

import (
	"context"
	"sync"
	"time"

	"github.com/refold/refold/internal/fault"
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
	own   time.Time // our own heartbeat was heard last then
	gap   bool      // there was one that watch has not told of
}

func newHolders(self string, w wire) *holders { return &holders{self: self, wire: w} }

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
		h.since, h.gap = at, true
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

// cutOff reports that since asked we were not heard for so long that others
// may have found us gone. look was called at asked.
func (h *holders) cutOff(asked, now time.Time) bool {
	h.look()
	h.mu.Lock()
	defer h.mu.Unlock()
	return now.Sub(asked) > aliveGapMax && (h.since.After(asked) || now.Sub(h.own) > aliveGapMax)
}

// ask tells of an instance whether it lives. While that is unheard, wait is
// when to ask again.
func (h *holders) ask(instance string, now time.Time) (state liveness, wait time.Duration) {
	h.look()
	heard, _ := h.wire.Heard(instance)
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case fault.On(fault.HolderAliveIgnored):
		return gone, 0
	case instance == h.self, now.Sub(heard) < holderGone:
		return alive, 0
	case now.Sub(h.own) > aliveGapMax:
		return unheard, holderGone
	case now.Sub(h.since) < holderGone:
		return unheard, holderGone - now.Sub(h.since)
	}
	return gone, 0
}
