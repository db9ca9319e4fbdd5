package host

import (
	"context"
	"iter"

	"github.com/refold/refold/actors/session"
)

// behindAtOnce is how many events are held that were read beside. It is as many
// as are asked for one by one: behind those the connection holds what it asked
// for, and no more than that.
const behindAtOnce = 8

// behind reads, beside its caller, the event that a snapshot names, and what the
// session has behind it: the server most often loads a block of the log for the
// first, which takes as long as restoring the snapshot does.
type behind struct {
	named  chan read // one
	events chan read // closed at their end
	cancel context.CancelFunc
	ended  chan struct{}
}

type read struct {
	event session.Event
	err   error
}

// readBehind begins to read the event at seq, and the session's from there to
// the one at last. The caller ends it.
func (h *Host) readBehind(ctx context.Context, sid string, seq, last uint64) *behind {
	ctx, cancel := context.WithCancel(ctx)
	b := &behind{named: make(chan read, 1), events: make(chan read, behindAtOnce), cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(b.ended)
		defer close(b.events)
		e, err := h.world.EventAt(ctx, seq)
		b.named <- read{e, err}
		if err != nil {
			return // who reads on sees to it first
		}
		for e, err := range h.world.ReadSession(ctx, sid, seq+1, last, false) {
			select {
			case b.events <- read{e, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return b
}

// first returns the event that the snapshot names; call it once.
func (b *behind) first() (session.Event, error) {
	r := <-b.named
	return r.event, r.err
}

// rest yields what is behind it, as a read by session that any replica answers.
func (b *behind) rest() iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		for r := range b.events {
			if !yield(r.event, r.err) {
				return
			}
		}
	}
}

// end stops the reading, and returns when nothing of it is under way; nil is
// fine.
func (b *behind) end() {
	if b != nil {
		b.cancel()
		<-b.ended
	}
}
