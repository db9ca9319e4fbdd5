package host

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/fault"
	"github.com/refold/refold/planner"
)

// slice is what the events folded while the slice before was being stored want
// stored; then they are acknowledged. Slices of a lane are stored one after
// another.
type slice struct {
	outputs   []*outputs
	snapshots []*snapshot // of the states behind it
	passed    []passed    // wakes that its acknowledgements pass
	first     bool        // of its era
	tried     bool        // it may be stored
	err       error       // the lane is given up: memory is ahead of what is stored
}

// handOver hands all that is folded to whoever stores, if the slice before is
// done. From then on its outputs are the storer's.
func (l *laneActor) handOver() {
	if l.storing != nil || len(l.folded) == 0 {
		return
	}
	s := &slice{outputs: l.folded, first: !l.handed}
	l.folded, l.handed = nil, true
	l.slices++
	for _, o := range s.outputs {
		if a := o.actor; a != nil && a.slice != l.slices {
			a.slice = l.slices
			if a.state != nil {
				l.dueFrom(a.state.Wakes)
			}
			if p := l.due(a); p != nil {
				s.snapshots = append(s.snapshots, p)
			}
		}
	}
	s.passed = l.passes(s)
	if fault.On(fault.SnapshotEarly) {
		l.snapshots.put(s.snapshots...)
		s.snapshots = nil
	}
	l.storing = s
	l.toStore <- s
}

// finish acknowledges what is stored, and quarantines what never can be. It
// fails only when the lane is given up.
func (l *laneActor) finish(ctx context.Context, s *slice) error {
	if s.err != nil {
		return s.err // and stays what is being stored, for drop
	}
	l.storing = nil
	for _, o := range s.outputs {
		if o.failed != nil {
			if err := l.quarantine(ctx, o.arrival, o.failed, s.outputs...); err != nil {
				return err
			}
		}
	}
	l.hasPassed(s)
	for _, o := range s.outputs {
		if o.actor != nil {
			o.actor.stored = o.arrival.event.Seq
		}
		o.arrival.ack()
	}
	defer l.snapshots.together()()
	l.snapshots.put(s.snapshots...)
	l.evict(nil) // what was being stored could not leave before
	return nil
}

// flush stores all that is folded, and returns when it is acknowledged.
func (l *laneActor) flush(ctx context.Context) error {
	for {
		l.handOver()
		if l.storing == nil {
			return nil
		}
		if err := l.finish(ctx, <-l.stored); err != nil {
			return err
		}
	}
}

// storeSlices stores what is handed over until toStore is closed.
func (l *laneActor) storeSlices(ctx context.Context) {
	for s := range l.toStore {
		last := s.outputs[len(s.outputs)-1].arrival.event
		s.err = l.retry(ctx, "store outputs", last, func() error { return l.storeAll(ctx, s) })
		if s.err == nil {
			l.putLong(ctx, s)
			l.settlePassed(ctx, s)
			l.notePast(ctx, s)
		}
		l.stored <- s
	}
}

// storeAll stores the outputs of a slice: the descriptors of registries first,
// since an effect may name one, then all the rest at once. Called again, it
// goes on where it failed. Every part may be stored again: a name takes one
// message, a notice keeps its number.
func (l *laneActor) storeAll(ctx context.Context, s *slice) error {
	n := 0
	for _, o := range s.outputs {
		n += len(o.todo)
	}
	all := make([]bus.Output, 0, n)
	now := l.host.now().UnixMilli()
	for _, o := range s.outputs {
		if err := l.describe(ctx, o.registry); err != nil {
			return err
		}
		o.registry = nil
		if o.failed == nil {
			o.todo = l.startable(o.todo, now)
			s.rename(o)
			all = append(all, o.todo...)
		}
	}
	s.tried = true
	if len(all) > 0 {
		if err := s.take(l.host.world.Store(ctx, all)); err != nil {
			return err
		}
	}
	for _, o := range s.outputs {
		if err := l.cancel(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// take takes out what is stored, by the errors of all that was to be. It
// returns what may be tried again: nothing of what a session that is to be
// quarantined says later.
func (s *slice) take(errs []error) error {
	var again []error
	stopped := map[*actor]bool{}
	for _, o := range s.outputs {
		if o.failed != nil {
			stopped[o.actor] = true
			continue
		}
		if stopped[o.actor] {
			errs, o.todo, o.cancel = errs[len(o.todo):], nil, nil
			continue
		}
		left := o.todo[:0]
		for _, one := range o.todo {
			err := errs[0]
			errs = errs[1:]
			if err == nil || fault.On(fault.StoreFailureIgnored) {
				continue
			}
			left = append(left, one)
			var violation *bus.ViolationError
			var tooLarge *bus.MaxPayloadError
			switch {
			case o.failed != nil:
			case fault.On(fault.CompareSkipped) && errors.As(err, &violation):
				left = left[:len(left)-1]
			case errors.As(err, &violation), errors.As(err, &tooLarge):
				o.failed = err
			default:
				again = append(again, err)
			}
		}
		o.todo = left
		if o.failed != nil {
			stopped[o.actor] = true
		}
	}
	return errors.Join(again...)
}

// describe stores the descriptors of a registry that an event set, before an
// effect can name one. Those that this process has stored are not sent again:
// many sessions set the same registry.
func (l *laneActor) describe(ctx context.Context, registry *planner.Registry) error {
	held := &l.host.registries
	if registry == nil || held.isStored(registry) {
		return nil
	}
	if err := putDescriptors(ctx, l.host.world, registry); err != nil {
		return err
	}
	held.setStored(registry)
	return nil
}

// startable takes out the effects that may not be started any more. Nothing but
// a wake is asked after its start_by: its name may have been asked, settled and
// forgotten since. What is left out waits for the wake that settles it.
func (l *laneActor) startable(todo []bus.Output, now int64) []bus.Output {
	kept := todo[:0]
	for _, o := range todo {
		if e := o.Effect; e != nil && e.Class != session.ClassWake && e.StartBy < now {
			l.log.Warn("effect not asked: it is past its start_by", "session", o.Session, "effect", e.Name, "late_ms", now-e.StartBy)
			continue
		}
		kept = append(kept, o)
	}
	return kept
}

// cancel tells those who work on withdrawn effects to stop.
func (l *laneActor) cancel(ctx context.Context, o *outputs) error {
	if len(o.cancel) == 0 || o.failed != nil || fault.On(fault.CancelLeftOut) {
		return nil
	}
	body, err := json.Marshal(struct {
		Effects []string `json:"effects"`
	}{o.cancel})
	if err != nil {
		return err
	}
	if err := l.host.world.PublishCancel(ctx, o.actor.sid, body); err != nil {
		return err
	}
	o.cancel = nil
	return nil
}

// rename is a fault that is planted: what may be stored gets new names.
func (s *slice) rename(o *outputs) {
	if !s.tried || !fault.On(fault.BatchRenamed) {
		return
	}
	for i := range o.todo {
		if e := o.todo[i].Effect; e != nil {
			other := *e
			other.Name += "a9"
			o.todo[i].Effect = &other
		} else if o.todo[i].N > 0 {
			o.todo[i].N += 1000
		}
	}
}
