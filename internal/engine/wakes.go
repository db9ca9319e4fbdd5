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
		batches, awaited := slices.Clone(l.waking), l.then != nil
		l.do(&attempt{outside: l.outside, name: "stores wakes", try: func(ctx context.Context, w outside) error {
			return w.schedule(ctx, batches, awaited)
		}, then: func(l *Lane) {
			l.scheduling = false
			l.acknowledge(len(batches))
			l.acknowledgeStored()
		}})
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
	l.gauge()
	l.clearNote()
	l.put(snapshots...)
	l.evict(nil) // until now their outputs kept them in memory
}

// schedule stores the wakes of batches. No wake can fail for good: its name takes
// any bytes, and it is small. awaited reports that the lane waits for them.
func (o outside) schedule(ctx context.Context, batches []*batch, awaited bool) error {
	var of []*outputs
	for _, b := range batches {
		for _, o := range b.outputs {
			if len(o.wakes) > 0 {
				of = append(of, o)
			}
			for i := range o.wakes {
				o.wakes[i].Awaited = awaited
			}
		}
	}
	return o.retry(ctx, "store wakes", of[0].arrival.Event, func() error { return o.storeWakes(ctx, of) })
}

// storeWakes stores the wakes of events together, and removes those that are
// stored.
func (o outside) storeWakes(ctx context.Context, of []*outputs) error {
	var all []journal.Output
	for _, o := range of {
		all = append(all, o.wakes...)
	}
	errs := o.send(ctx, all)
	var first error
	for _, o := range of {
		left := o.wakes[:0]
		for _, one := range o.wakes {
			err := errs[0]
			errs = errs[1:]
			if err != nil {
				left = append(left, one)
				if first == nil {
					first = err
				}
			}
		}
		o.wakes = left
	}
	return first
}
