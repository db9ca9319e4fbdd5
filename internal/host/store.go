package host

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/planner"
)

// store stores the outputs of all that is pending and acknowledges it. It
// fails only when the lane is given up; then memory is ahead of what is stored.
func (l *laneActor) store(ctx context.Context) error {
	if len(l.pending) == 0 {
		return nil
	}
	last := l.pending[len(l.pending)-1].arrival.event
	if err := l.retry(ctx, "store outputs", last, func() error { return l.storeAll(ctx) }); err != nil {
		return err
	}
	touched := map[*actor]bool{}
	var long, due []*actor
	for _, o := range l.pending {
		if o.actor != nil {
			o.actor.stored = o.arrival.event.Seq
			touched[o.actor] = true
		}
	}
	for s := range touched {
		switch {
		case !s.settled():
		case s.waitsLong():
			long = append(long, s)
		case s.state.Count-s.snapped >= l.host.opts.SnapshotEach || s.isBehind():
			due = append(due, s)
		}
	}
	// A session that waits for a week is found by its snapshot alone, whatever
	// becomes of this process: so it comes before the acknowledgement.
	l.snapshot(ctx, long)
	for _, o := range l.pending {
		o.arrival.ack()
	}
	clear(l.pending)
	l.pending = l.pending[:0]
	l.snapshot(ctx, due)
	return nil
}

// storingMax is how many sessions' outputs are stored at once.
const storingMax = 32

// storeAll stores the outputs of all that is pending: those of one session in
// order, those of different sessions side by side. Called again, it goes on
// where it failed. Every part may be stored again: a name takes one message, a
// notice keeps its number.
func (l *laneActor) storeAll(ctx context.Context) error {
	bySession, order := map[string][]*outputs{}, []string(nil)
	for _, o := range l.pending {
		if o.actor == nil {
			continue
		}
		sid := o.arrival.event.Session
		if bySession[sid] == nil {
			order = append(order, sid)
		}
		bySession[sid] = append(bySession[sid], o)
	}
	failures := make([]failure, len(order))
	room := make(chan struct{}, storingMax)
	var storing sync.WaitGroup
	for i, sid := range order {
		room <- struct{}{}
		storing.Go(func() {
			defer func() { <-room }()
			failures[i] = l.storeSession(ctx, sid, bySession[sid])
		})
	}
	storing.Wait()
	var all []error
	for _, f := range failures {
		var violation *bus.ViolationError
		var tooLarge *bus.MaxPayloadError
		switch {
		case f.err == nil:
		case errors.As(f.err, &violation), errors.As(f.err, &tooLarge):
			all = append(all, l.quarantine(ctx, f.of.arrival, f.err))
		default:
			all = append(all, f.err)
		}
	}
	return errors.Join(all...)
}

// failure is the output that could not be stored, and why.
type failure struct {
	of  *outputs
	err error
}

// storeSession stores the outputs of one session, in order: withdrawals, the
// descriptors of a registry, effects, notices. It stops at the first failure.
func (l *laneActor) storeSession(ctx context.Context, sid string, list []*outputs) failure {
	for _, o := range list {
		if err := l.withdraw(ctx, sid, o.withdrawn); err != nil {
			return failure{o, err}
		}
		o.withdrawn = nil
		if err := l.describe(ctx, o.registry); err != nil {
			return failure{o, err}
		}
		o.registry = nil
		if o.effects = l.startable(sid, o.effects); len(o.effects) > 0 {
			if err := l.host.world.AskAll(ctx, sid, o.effects); err != nil {
				return failure{o, err}
			}
			o.effects = nil
		}
		for len(o.notices) > 0 {
			if err := l.host.world.Notify(ctx, sid, o.notices[0].n, o.notices[0].data); err != nil {
				return failure{o, err}
			}
			o.notices = o.notices[1:]
		}
	}
	return failure{}
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

// startable returns the effects that may still be started. Nothing but a wake
// is asked after its start_by: its name may have been asked, settled and
// forgotten since. What is left out waits for the wake that settles it.
func (l *laneActor) startable(sid string, effects []session.Effect) []session.Effect {
	now := time.Now().UnixMilli()
	kept := effects[:0]
	for _, e := range effects {
		if e.Class == session.ClassWake || e.StartBy >= now {
			kept = append(kept, e)
			continue
		}
		l.log.Warn("effect not asked: it is past its start_by", "session", sid, "effect", e.Name, "late_ms", now-e.StartBy)
	}
	return kept
}

// withdraw stores the claims of withdrawn effects as withdrawn, and tells
// those who work on them to stop.
func (l *laneActor) withdraw(ctx context.Context, sid string, withdrawn []session.Withdrawal) error {
	if len(withdrawn) == 0 {
		return nil
	}
	names := make([]string, 0, len(withdrawn))
	for _, w := range withdrawn {
		names = append(names, w.Name)
		if !w.Claimed {
			continue
		}
		if _, _, err := l.host.world.Withdraw(ctx, sid, w.Name); err != nil {
			return err
		}
	}
	body, err := json.Marshal(struct {
		Effects []string `json:"effects"`
	}{names})
	if err != nil {
		return err
	}
	return l.host.world.PublishCancel(ctx, sid, body)
}
