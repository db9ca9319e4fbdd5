package host

import (
	"context"
	"slices"
	"time"

	"github.com/refold/refold/internal/journal"
)

// The wakes of an event are stored behind all else that it says. Its session goes
// on meanwhile: only the acknowledgement of the event waits for them, and the
// snapshots of states behind it. Until then the event comes again after a crash, and
// its wakes are stored again. One commit for the wakes of many slices is under way
// at a time: each costs the server a sync, however many it holds
// (docs/adr/0042-wakes-are-schedules-that-the-owner-stores.md).

// acknowledgeStored acknowledges what is stored with its wakes, and has the wakes
// of all the rest stored, unless others are being stored.
func (l *laneActor) acknowledgeStored(ctx context.Context) {
	if l.scheduling > 0 {
		return
	}
	n := slices.IndexFunc(l.waking, func(s *slice) bool {
		return slices.ContainsFunc(s.outputs, func(o *outputs) bool { return len(o.wakes) > 0 })
	})
	if n < 0 {
		n = len(l.waking)
	}
	l.acknowledge(ctx, n)
	for _, s := range l.waking {
		for _, o := range s.outputs {
			for i := range o.wakes {
				o.wakes[i].Awaited = l.flushing
			}
		}
	}
	if l.scheduling = len(l.waking); l.scheduling > 0 {
		l.toSchedule <- slices.Clone(l.waking)
	}
}

// scheduled takes note that the wakes that were handed over are stored. It fails
// only when the lane is given up.
func (l *laneActor) scheduled(ctx context.Context, err error) error {
	if err != nil {
		return err // they stay among what is being stored, for drop
	}
	l.acknowledge(ctx, l.scheduling)
	l.scheduling = 0
	l.acknowledgeStored(ctx)
	return nil
}

// acknowledge takes note that the first n slices of those that wait for their
// wakes are stored whole, and acknowledges all events up to the first one that
// isn't.
func (l *laneActor) acknowledge(ctx context.Context, n int) {
	if n == 0 {
		return
	}
	var snapshots []*snapshot
	for _, s := range l.waking[:n] {
		l.tellSpans(s.outputs)
		for _, o := range s.outputs {
			o.done = true
			if o.actor != nil {
				o.actor.stored = o.arrival.event.Seq
			}
		}
		l.host.meters.finished(s.outputs, l.host.now())
		snapshots = append(snapshots, s.snapshots...)
	}
	l.waking = slices.Delete(l.waking, 0, n)
	stored := 0
	for stored < len(l.order) && l.order[stored].done {
		l.order[stored].arrival.ack()
		stored++
	}
	l.order = slices.Delete(l.order, 0, stored)
	l.gauge()
	l.trusts(ctx)
	defer l.snapshots.together()()
	l.snapshots.put(snapshots...)
	l.evict(nil) // what was being stored could not leave before
}

// storeWakes stores the wakes of slices that are handed over until nothing more is.
// No wake can fail for good: its name takes any bytes, and it is small.
func (l *laneActor) storeWakes(ctx context.Context) {
	var room []journal.Output
	for handed := range l.toSchedule {
		var of []*outputs
		for _, s := range handed {
			for _, o := range s.outputs {
				if len(o.wakes) > 0 {
					of = append(of, o)
				}
			}
		}
		err := l.retry(ctx, "store wakes", of[0].arrival.event, func() (err error) {
			room, err = l.schedule(ctx, of, room[:0])
			return err
		})
		l.stored <- func(ctx context.Context) error { return l.scheduled(ctx, err) }
	}
}

// schedule stores the wakes of some events, together, and takes out what is stored.
// It returns the room for the next ones.
func (l *laneActor) schedule(ctx context.Context, of []*outputs, all []journal.Output) ([]journal.Output, error) {
	defer func() { clear(all) }() // the room keeps nothing
	for _, o := range of {
		all = append(all, o.wakes...)
	}
	if len(all) == 0 {
		return all, nil
	}
	began := time.Now()
	errs := l.host.world.Store(ctx, all)
	l.host.meters.stored(len(all), time.Since(began), errs)
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
	return all, first
}
