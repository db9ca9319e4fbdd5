package host

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/planner"
)

// slice is a part of what was folded that is stored together. Several are stored
// at a time, in no order, but of a session no output before all that it said
// earlier is stored: what can be said of one session, in which order, and what a
// failure stops, is the same as if they were stored one after another.
type slice struct {
	outputs   []*outputs
	snapshots []*snapshot // of the states behind it
	tried     bool        // it may be stored
	by        int         // which goroutine stores it
	err       error       // the lane is given up: memory is ahead of what is stored
}

// handOver hands what is folded to whoever stores, as far as it may go and one of
// them is free. From then on its outputs are the storer's.
func (l *laneActor) handOver() {
	by := l.freeStorer()
	if by < 0 || l.more() {
		return
	}
	s := &slice{by: by}
	l.slices++
	s.outputs, l.folded = l.part()
	if len(s.outputs) == 0 {
		return
	}
	for _, o := range s.outputs {
		if a := o.actor; a != nil {
			if o.wants() {
				a.storing = s
			}
			if a.slice != l.slices {
				a.slice = l.slices
				if p := l.due(a); p != nil {
					s.snapshots = append(s.snapshots, p)
				}
			}
		}
	}
	l.storing = append(l.storing, s)
	l.toStore[by] <- s
}

// part parts what is folded into what may be stored now and what has to wait: for
// its session to be loaded, or for what that said before to be stored.
func (l *laneActor) part() (now, wait []*outputs) {
	now = make([]*outputs, 0, len(l.folded))
	for _, o := range l.folded {
		if o.parked || o.actor != nil && o.actor.storing != nil {
			wait = append(wait, o)
		} else {
			now = append(now, o)
		}
	}
	return now, wait
}

// more reports whether what is folded should wait for what has arrived and is not
// folded: a slice of one event costs as much as one of many. While nothing is being
// stored nothing waits.
func (l *laneActor) more() bool {
	if len(l.storing) == 0 || len(l.folded) >= batchMax {
		return false
	}
	runtime.Gosched() // who delivers is heard first
	return len(l.arrivals) > 0
}

// freeStorer returns the first goroutine that stores nothing, -1 if none.
func (l *laneActor) freeStorer() int {
	var busy [slicesMax]bool
	for _, s := range l.storing {
		busy[s.by] = true
	}
	return slices.Index(busy[:], false)
}

// finish takes note that a slice is stored but for its wakes, and quarantines what
// never can be. It fails only when the lane is given up.
func (l *laneActor) finish(ctx context.Context, s *slice) error {
	if s.err != nil {
		return s.err // and stays among what is being stored, for drop
	}
	l.storing = slices.DeleteFunc(l.storing, func(other *slice) bool { return other == s })
	// The state of a session that is quarantined is ahead of what is stored.
	s.snapshots = slices.DeleteFunc(s.snapshots, func(p *snapshot) bool { return s.fails(p.actor) })
	for _, o := range s.outputs {
		if o.failed != nil {
			if err := l.quarantine(ctx, o.arrival, o.failed, s.outputs...); err != nil {
				return err
			}
		}
	}
	l.tell(s.outputs)
	for _, o := range s.outputs {
		if a := o.actor; a != nil && a.storing == s {
			a.storing = nil
		}
	}
	l.waking = append(l.waking, s)
	l.acknowledgeStored(ctx)
	return nil
}

// flush stores all that is folded, and returns when it is acknowledged.
func (l *laneActor) flush(ctx context.Context) error {
	l.flushing = true
	defer func() { l.flushing = false }()
	for {
		if err := l.await(ctx); err != nil {
			return err
		}
		l.handOver()
		if len(l.storing) == 0 && len(l.waking) == 0 {
			return nil
		}
		if err := (<-l.stored)(ctx); err != nil {
			return err
		}
	}
}

// storeSlices stores what is handed over until nothing more is.
func (l *laneActor) storeSlices(ctx context.Context, handed <-chan *slice) {
	var room []journal.Output
	for s := range handed {
		last := s.outputs[len(s.outputs)-1].arrival.event
		s.err = l.retry(ctx, "store outputs", last, func() (err error) {
			room, err = l.storeAll(ctx, s, room)
			return err
		})
		l.stored <- func(ctx context.Context) error { return l.finish(ctx, s) }
	}
}

// storeNoMore ends those who store.
func (l *laneActor) storeNoMore() {
	for _, handed := range l.toStore {
		close(handed)
	}
	close(l.toSchedule)
}

// storeAll stores the outputs of a slice: the descriptors of registries first,
// since an effect may name one, then all the rest at once. Called again, it
// goes on where it failed. Every part may be stored again: a name takes one
// message, a notice keeps its number. It returns the room for the next slice.
func (l *laneActor) storeAll(ctx context.Context, s *slice, room []journal.Output) ([]journal.Output, error) {
	all := room[:0]
	defer func() { clear(all) }() // the room keeps nothing
	now := l.host.now().UnixMilli()
	for _, o := range s.outputs {
		if err := l.describe(ctx, o.registry); err != nil {
			return all, err
		}
		o.registry = nil
		if o.failed == nil {
			o.todo = l.startable(o.todo, now)
			if !s.tried {
				l.host.meters.asks(o.tally, o.todo)
				l.host.meters.asks(o.tally, o.wakes)
			}
			all = append(all, o.todo...)
		}
	}
	s.tried = true
	if len(all) > 0 {
		began := time.Now()
		errs := l.host.world.Store(ctx, all)
		l.host.meters.stored(len(all), time.Since(began), errs)
		if err := s.take(errs); err != nil {
			return all, err
		}
	}
	for _, o := range s.outputs {
		if err := l.cancel(ctx, o); err != nil {
			return all, err
		}
	}
	return all, nil
}

// tell publishes what events say about runs under way, all of a session in one
// message: a message costs more than what it says. Nobody waits for it, and it
// is kept nowhere.
func (l *laneActor) tell(outputs []*outputs) {
	for _, o := range outputs {
		if len(o.progress) > 0 && o.failed == nil {
			o.actor.progress = joined(o.actor.progress, o.progress)
		}
		o.progress = nil
	}
	for _, o := range outputs {
		if o.actor == nil || len(o.actor.progress) == 0 {
			continue
		}
		if err := l.host.world.PublishProgress(o.actor.sid, o.actor.progress); err != nil {
			l.log.Warn("progress_not_published", "session", o.actor.sid, "error", err.Error())
		}
		o.actor.progress = nil
	}
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
			if err == nil {
				continue
			}
			left = append(left, one)
			var violation *journal.ViolationError
			var tooLarge *natsio.MaxPayloadError
			var unreadable *journal.UnreadableError
			switch {
			case o.failed != nil:
			case errors.As(err, &violation), errors.As(err, &tooLarge), errors.As(err, &unreadable):
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

// startable takes out the effects that may not be started any more. Nothing is
// asked after its start_by: its name may have been asked, settled and
// forgotten since. What is left out waits for the wake that settles it.
func (l *laneActor) startable(todo []journal.Output, now int64) []journal.Output {
	kept := todo[:0]
	for _, o := range todo {
		if e := o.Effect; e != nil && e.StartBy < now {
			l.log.Warn("effect not asked: it is past its start_by", "session", o.Session, "effect", e.Name, "late_ms", now-e.StartBy)
			continue
		}
		kept = append(kept, o)
	}
	return kept
}

// cancel tells those who work on withdrawn effects to stop.
func (l *laneActor) cancel(ctx context.Context, o *outputs) error {
	if len(o.cancel) == 0 || o.failed != nil {
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
