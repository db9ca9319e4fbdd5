package host

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
)

// outputs are what one folded event wants stored before it is acknowledged.
// actor is nil if it wants nothing.
type outputs struct {
	arrival   arrival
	actor     *actor
	withdrawn []session.Withdrawal
	effects   []session.Effect
	notices   []session.Notice
}

// store stores the outputs of all that is pending and acknowledges it. When it
// fails, memory is ahead of what is stored: the sessions concerned are dropped
// and loaded again.
func (l *laneActor) store(ctx context.Context) error {
	if len(l.pending) == 0 {
		return nil
	}
	last := l.pending[len(l.pending)-1].arrival.event
	err := l.retry(ctx, "store outputs", last, func() error { return l.storeAll(ctx) })
	if err != nil {
		for i := range l.pending {
			delete(l.sessions, l.pending[i].arrival.event.Session)
		}
		l.pending = l.pending[:0]
		return err
	}
	touched := map[*actor]string{}
	for i := range l.pending {
		l.pending[i].arrival.ack()
		if a := l.pending[i].actor; a != nil {
			touched[a] = l.pending[i].arrival.event.Session
		}
		l.pending[i] = outputs{}
	}
	l.pending = l.pending[:0]
	for a, sid := range touched {
		if !a.stopped && a.state.Count-a.snapped >= l.host.opts.SnapshotEach {
			l.snapshot(ctx, sid, a)
		}
	}
	return nil
}

// storingMax is how many sessions' outputs are stored at once.
const storingMax = 32

// storeAll stores the outputs of all that is pending: those of one session in
// order, those of different sessions side by side. Every part may be stored
// again: a name takes one message, a notice keeps its number.
func (l *laneActor) storeAll(ctx context.Context) error {
	bySession, order := map[string][]*outputs{}, []string(nil)
	for i := range l.pending {
		o := &l.pending[i]
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

// storeSession stores the outputs of one session, in order: withdrawals, then
// effects, then notices. It stops at the first failure.
func (l *laneActor) storeSession(ctx context.Context, sid string, list []*outputs) failure {
	for _, o := range list {
		if err := l.withdraw(ctx, sid, o.withdrawn); err != nil {
			return failure{o, err}
		}
		if len(o.effects) > 0 {
			if err := l.host.world.AskAll(ctx, sid, o.effects); err != nil {
				return failure{o, err}
			}
		}
		for _, n := range o.notices {
			if err := l.host.world.Notify(ctx, sid, n.N, n.JSON()); err != nil {
				return failure{o, err}
			}
		}
	}
	return failure{}
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

// snapshot stores the snapshot of a session whose events are all stored. It is
// a cache: failing to store it costs time at the next load, nothing else.
func (l *laneActor) snapshot(ctx context.Context, sid string, a *actor) {
	if err := l.host.world.PutSnapshot(ctx, sid, a.state.Seq, a.state.Snapshot().Bytes()); err != nil {
		l.log.Warn("snapshot not stored", "session", sid, "error", err)
		return
	}
	a.snapped = a.state.Count
}

// How many sessions a draining lane snapshots, for how long, and from how many
// events behind the last snapshot on it is worth it.
const (
	lastSnapshotsMax   = 1024
	lastSnapshotsFor   = 3 * time.Second
	lastSnapshotEvents = 16
)

// snapshotAll stores what the next owner will ask for first.
func (l *laneActor) snapshotAll() {
	ctx, cancel := context.WithTimeout(context.Background(), lastSnapshotsFor)
	defer cancel()
	n := 0
	for sid, a := range l.sessions {
		if n == lastSnapshotsMax || ctx.Err() != nil {
			return
		}
		if !a.stopped && a.state.Count-a.snapped >= lastSnapshotEvents {
			l.snapshot(ctx, sid, a)
			n++
		}
	}
}
