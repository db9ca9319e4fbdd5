package engine

import (
	"context"
	"slices"

	"github.com/refold/refold/internal/journal"
)

// The wakes of an event are stored after its other outputs, while its session goes
// on. Only the event's acknowledgement and snapshots of later states wait for them.
// After a crash before that the event is delivered again, and its wakes are stored
// again. One commit is pending at a time, with the wakes of many batches: each
// commit costs the server a sync, however many wakes it holds
// (docs/adr/0042-wakes-are-schedules-that-the-owner-stores.md).

// acknowledgeStored acknowledges batches without wakes to store, and stores the
// wakes of all others unless a commit is pending.
func (l *Lane) acknowledgeStored() {
	if l.scheduling {
		return
	}
	n := slices.IndexFunc(l.waking, func(b *batch) bool {
		return slices.ContainsFunc(b.outputs, func(o *outputs) bool { return len(o.wakes) > 0 })
	})
	if n < 0 {
		n = len(l.waking)
	}
	l.acknowledge(n)
	if l.scheduling = len(l.waking) > 0; l.scheduling {
		w := &scheduling{outside: l.outside, rounds: rounds{began: l.now}}
		w.begin(l)
		l.ready.Sends = append(l.ready.Sends, sendingWakes{w})
	}
}

// begin begins a round with the wakes of all batches that wait. Those of sessions
// that were quarantined meanwhile are dropped.
func (w *scheduling) begin(l *Lane) {
	w.batches, w.awaited, w.of = len(l.waking), l.then != nil, nil
	for _, b := range l.waking {
		for _, o := range b.outputs {
			e := o.arrival.Event
			if s := l.sessions[e.Session]; o.actor != nil && o.actor.state == nil && s != nil && s.isStopped(e.Seq) {
				o.wakes = nil
			}
			if len(o.wakes) > 0 {
				w.of = append(w.of, o)
			}
		}
	}
}

// acknowledge completes the first n batches that waited for their wakes, and
// acknowledges all events up to the first one that isn't done.
func (l *Lane) acknowledge(n int) {
	if n == 0 {
		return
	}
	var snapshots []*snapshot
	for _, b := range l.waking[:n] {
		l.exportSpans(b.outputs)
		for _, o := range b.outputs {
			o.done = true
			if o.actor != nil {
				o.actor.stored = o.arrival.Event.Seq
				l.putTombstone(o.actor)
			}
		}
		l.host.meters.finished(b.outputs, l.now)
		snapshots = append(snapshots, b.snapshots...)
	}
	l.waking = slices.Delete(l.waking, 0, n)
	stored := 0
	for stored < len(l.order) && l.order[stored].done {
		l.ready.Ack = append(l.ready.Ack, l.order[stored].arrival.Ack)
		stored++
	}
	l.order = slices.Delete(l.order, 0, stored)
	if stored > 0 {
		l.moved = l.now
	}
	l.gauge()
	l.clearNote()
	l.put(snapshots...)
	l.evict(nil) // until now their outputs kept them in memory
}

// scheduling stores the wakes of the first batches that wait for them. No wake can
// fail for good: its name takes any bytes, and it is small.
type scheduling struct {
	outside
	rounds
	batches  int
	of       []*outputs // with wakes
	awaited  bool       // the lane waits for them
	marks    int        // quarantines that are not stored yet
	giveBack error      // why the lane is given back
	left     bool       // the first try has left some unstored
}

func (w *scheduling) String() string { return "stores wakes" }

// sendingWakes is the first try to store wakes: it waits for nothing.
type sendingWakes struct{ *scheduling }

func (s sendingWakes) Do(ctx context.Context, report func(Input)) {
	w := s.scheduling
	w.rounds.begin(ctx, w.outside, w.unstored(), func(errs []error) {
		w.left = w.take(errs) != nil
		report(w)
	})
}

func (w *scheduling) Do(ctx context.Context, report func(Input)) {
	w.stored = successes{}
	failed := false
	if w.giveBack = nil; len(w.of) > 0 {
		failed, w.giveBack = w.retryRound(ctx, w.host.roundFor, "store wakes", w.of[0].arrival.Event, func() error { return w.store(ctx) })
	}
	w.ended(ctx, w.host, failed, w.of)
	report(w)
}

// step acknowledges the batches once their wakes are stored. It quarantines sessions
// whose wakes fail alone.
func (w *scheduling) step(l *Lane) {
	l.note(&w.rounds)
	switch {
	case w.left:
		w.left = false
		l.do(w)
	case w.failed:
		judged := map[*actor]bool{}
		for _, o := range w.of {
			if len(o.wakes) == 0 || judged[o.actor] {
				continue
			}
			judged[o.actor] = true
			if o.isAlone(l, &w.rounds) {
				w.marks++
				o.actor.state = nil // it is ahead of what is stored, and so are its snapshots
				for _, b := range slices.Concat(l.waking, l.storing) {
					b.snapshots = slices.DeleteFunc(b.snapshots, func(p *snapshot) bool { return p.actor == o.actor })
				}
				l.quarantine(o.arrival.Event, &isolatedError{"storing its wakes", o.trouble}, w)
			}
		}
		w.goOn(l)
	case w.giveBack != nil:
		l.fail(w.giveBack)
	default:
		l.scheduling = false
		l.acknowledge(w.batches)
		l.acknowledgeStored()
	}
}

// marked implements storer.
func (w *scheduling) marked(l *Lane) {
	w.marks--
	w.goOn(l)
}

// goOn begins the next round once the quarantines of its sessions are stored.
func (w *scheduling) goOn(l *Lane) {
	if w.marks > 0 {
		return
	}
	w.begin(l)
	l.do(w)
}

func (w *scheduling) events() []*outputs { return w.of }

// store stores the wakes of events together, and removes those that are stored.
func (w *scheduling) store(ctx context.Context) error {
	return w.take(w.rounds.send(ctx, w.outside, w.unstored()))
}

// unstored returns the wakes that are to be stored.
func (w *scheduling) unstored() (all []journal.Output) {
	for _, o := range w.of {
		for i := range o.wakes {
			o.wakes[i].Awaited = w.awaited
		}
		all = append(all, o.wakes...)
		o.stuck, o.trouble = [kindsMax]bool{}, nil
	}
	return all
}

// take removes the stored wakes, given the error of each wake, and returns the first
// error.
func (w *scheduling) take(errs []error) (first error) {
	for _, o := range w.of {
		left := o.wakes[:0]
		for _, one := range o.wakes {
			err := errs[0]
			errs = errs[1:]
			if err == nil {
				w.stored.note(kindWake, one.Session)
				continue
			}
			left = append(left, one)
			o.stick(kindWake, err)
			if first == nil {
				first = err
			}
		}
		o.wakes = left
	}
	return first
}
