package engine

import (
	"context"
	"iter"
	"sync"

	"github.com/refold/refold/actors/session"
)

// behindAtOnce is how many events are held that were read beside. It is as many
// as are asked for one by one: behind those the connection holds what it asked
// for, and no more than that.
const behindAtOnce = 8

// tails is a world that knows how many events a session has, and reads so many
// of them, as *bus.Bus does. Without it what is behind a snapshot is read until
// there is the event that the session is loaded for: the server then loads all
// blocks of the log from the session's last event to that one, which are those of
// all the time that it slept.
type tails interface {
	LeaderEventAt(ctx context.Context, seq uint64) (session.Event, error)
	CountEvents(ctx context.Context, sid string, have uint64) (uint64, error)
	LastSeqOf(ctx context.Context, door session.Door, sid string) (uint64, error)
	ReadStretch(ctx context.Context, sid string, from, to uint64) iter.Seq2[session.Event, error]
	ReadNext(ctx context.Context, sid string, from, to, n uint64) iter.Seq2[session.Event, error]
}

// behind reads, beside its caller, the event that a snapshot names, and what the
// session has behind it: the server most often loads a block of the log for the
// first, which takes as long as restoring the snapshot does.
type behind struct {
	named  chan read   // one
	events chan read   // closed at their end
	folded chan uint64 // one: how many events the snapshot's state has; nobody may wait for it
	last   *lastOf     // nil: nobody looks for it yet
	whole  bool        // events were all before the one that the session is loaded for; read it when they have ended
	cancel context.CancelFunc
	ended  chan struct{}
}

type read struct {
	event session.Event
	err   error
}

// lastOf looks for the last event of a session that came through one door, before
// it is known whether the session has a snapshot, and where that stands: while the
// server loads the block of the log that has this event, it loads the snapshot's
// as well, and the snapshot is restored.
type lastOf struct {
	seq    chan uint64 // one; 0: there is none, or it is not known
	cancel context.CancelFunc
	ended  chan struct{}
}

// lookForLast begins to look for the last answer of a model in the session of e,
// or for its last request if e is an answer: one of the two is most often among
// the session's last events. It does not where the last session had no snapshot:
// then others have none either, and are read from their beginning. The caller ends
// it; nil is nobody who looks.
func (h *Host) lookForLast(ctx context.Context, e session.Event) *lastOf {
	w, tells := h.world.(tails)
	if !tells || e.Seq == 0 || h.bare.Load() {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	l := &lastOf{seq: make(chan uint64, 1), cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(l.ended)
		l.seq <- lastSeqOf(ctx, w, e)
	}()
	return l
}

// lastSeqOf returns the sequence of the event that lookForLast looks for.
func lastSeqOf(ctx context.Context, w tails, e session.Event) uint64 {
	door := session.DoorLLM
	if e.Door == door {
		door = session.DoorIn
	}
	seq, err := w.LastSeqOf(ctx, door, e.Session)
	if err != nil {
		return 0
	}
	return seq
}

// end stops looking, and returns when nothing of it is under way; nil is fine.
func (l *lastOf) end() {
	if l != nil {
		l.cancel()
		<-l.ended
	}
}

// readBehind begins to read the event at seq, and the session's from there to
// the one before e. The caller ends it, and with it last.
func (h *Host) readBehind(ctx context.Context, seq uint64, e session.Event, last *lastOf) *behind {
	ctx, cancel := context.WithCancel(ctx)
	b := &behind{
		named: make(chan read, 1), events: make(chan read, behindAtOnce), folded: make(chan uint64, 1),
		last: last, cancel: cancel, ended: make(chan struct{}),
	}
	w, tells := h.world.(tails)
	go func() {
		defer close(b.ended)
		if !tells {
			defer close(b.events)
			named, err := h.world.EventAt(ctx, seq)
			b.named <- read{named, err}
			if err == nil { // else who reads on sees to it first
				b.pass(ctx, h.world.ReadSession(ctx, e.Session, seq+1, e.Seq, false))
			}
			return
		}
		var reading sync.WaitGroup
		reading.Go(func() {
			named, err := w.LeaderEventAt(ctx, seq)
			b.named <- read{named, err}
		})
		reading.Go(func() {
			defer close(b.events)
			if last, ok := b.passTail(ctx, w, seq, e); ok {
				b.pass(ctx, h.world.ReadSession(ctx, e.Session, last+1, e.Seq, false))
			}
		})
		reading.Wait()
	}()
	return b
}

// passTail passes on what the session has behind seq and before e, as many as it
// must have. ok says that their number is not known, and those behind last are
// still to be read.
//
// The last answer of a model is most often among the last events: the server finds
// it at once, and its block of the log is loaded beside the first one's. Up to it
// events are read from several places at once.
func (b *behind) passTail(ctx context.Context, w tails, seq uint64, e session.Event) (last uint64, ok bool) {
	count := make(chan uint64, 1)
	var counting sync.WaitGroup
	defer counting.Wait()
	counting.Go(func() {
		n, err := w.CountEvents(ctx, e.Session, e.Seq)
		if err != nil {
			n = 0
		}
		count <- n
	})
	passed := uint64(0)
	if to := b.lastSeq(ctx, w, e); to > seq && to < e.Seq {
		n, end := b.pass(ctx, w.ReadStretch(ctx, e.Session, seq+1, to))
		if end != to {
			return 0, false // the replica is behind
		}
		passed, seq = n, to
	}
	select {
	case folded := <-b.folded:
		passed += folded
	case <-ctx.Done():
		return 0, false
	}
	all := <-count
	if all <= passed { // e is one of them
		return seq, true
	}
	left := all - passed - 1
	n, _ := b.pass(ctx, w.ReadNext(ctx, e.Session, seq+1, e.Seq, left))
	b.whole = n == left
	return 0, false
}

// lastSeq returns the sequence of the event that lookForLast looks for, 0 if that
// is not known.
func (b *behind) lastSeq(ctx context.Context, w tails, e session.Event) uint64 {
	if b.last == nil {
		return lastSeqOf(ctx, w, e)
	}
	select {
	case seq := <-b.last.seq:
		return seq
	case <-ctx.Done():
		return 0
	}
}

// pass passes events on, and returns how many, and the sequence of the last one.
func (b *behind) pass(ctx context.Context, events iter.Seq2[session.Event, error]) (n, last uint64) {
	for e, err := range events {
		select {
		case b.events <- read{e, err}:
			n, last = n+1, e.Seq
		case <-ctx.Done():
			return n, last
		}
	}
	return n, last
}

// first returns the event that the snapshot names; call it once.
func (b *behind) first() (session.Event, error) {
	r := <-b.named
	return r.event, r.err
}

// has says how many events the snapshot's state has; call it once.
func (b *behind) has(events uint64) {
	if b != nil {
		b.folded <- events
	}
}

// isWhole reports whether those that rest yielded were all before the event that
// the session is loaded for; ask when it has ended.
func (b *behind) isWhole() bool { return b != nil && b.whole }

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
		b.last.end()
	}
}
