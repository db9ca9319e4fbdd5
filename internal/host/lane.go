package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
)

// batchMax is how many delivered events are folded before their outputs are
// stored together.
const batchMax = 64

// laneActor folds the sessions of one lane. Its fields belong to the goroutine
// of run, but for arrivals.
type laneActor struct {
	host     *Host
	lane     lane
	log      *slog.Logger
	arrivals chan arrival
	sessions map[string]*actor
	pending  []outputs // folded, not stored
	clock    uint64    // counts uses, for eviction
}

// arrival is a delivered event, or the beginning of an era.
type arrival struct {
	event session.Event
	ack   func()
	era   bool
}

func newLaneActor(h *Host, lane lane) *laneActor {
	return &laneActor{
		host: h, lane: lane, log: h.log.With("lane", lane.Number()),
		arrivals: make(chan arrival, batchMax), sessions: map[string]*actor{},
	}
}

// Era begins an era: all that is in memory becomes unproven, in order with the
// events around it.
func (l *laneActor) Era(uint64) { l.arrivals <- arrival{era: true} }

// Deliver hands an event over.
func (l *laneActor) Deliver(d bus.Delivery) { l.arrivals <- arrival{event: d.Event, ack: d.Ack} }

// run owns the lane and folds what it delivers, until ctx ends or the lane is
// drained. An error means that this host can't go on with this lane.
func (l *laneActor) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	owning := make(chan error, 1)
	go func() {
		owning <- l.lane.Run(ctx, l)
		close(l.arrivals)
	}()
	var cause error
	for first := range l.arrivals {
		if cause != nil || ctx.Err() != nil {
			continue // let the lane end; what it gave comes again, elsewhere
		}
		if cause = l.batch(ctx, first); cause != nil {
			if ctx.Err() != nil {
				cause = nil
			}
			cancel()
		}
	}
	if err := <-owning; cause == nil {
		cause = err
	}
	if cause == nil {
		l.snapshotAll()
	}
	if cause != nil {
		return fmt.Errorf("lane %d: %w", l.lane.Number(), cause)
	}
	return nil
}

// batch folds first and what is buffered behind it, stores the outputs and
// acknowledges.
func (l *laneActor) batch(ctx context.Context, first arrival) error {
	if err := l.take(ctx, first); err != nil {
		return err
	}
	for range batchMax - 1 {
		select {
		case next, ok := <-l.arrivals:
			if !ok {
				return l.store(ctx)
			}
			if err := l.take(ctx, next); err != nil {
				return err
			}
			continue
		default:
		}
		break
	}
	return l.store(ctx)
}

// take folds one arrival.
func (l *laneActor) take(ctx context.Context, a arrival) error {
	if a.era {
		// What was folded in the era before is stored before anything is
		// proven anew: its events come again, and are not folded again.
		if err := l.store(ctx); err != nil {
			return err
		}
		for _, s := range l.sessions {
			s.proven = s.stopped
		}
		return nil
	}
	if a.event.Session == "" {
		l.pending = append(l.pending, outputs{arrival: a})
		return l.host.installs.See(ctx, a.event)
	}
	return l.retry(ctx, "fold", a.event, func() error { return l.fold(ctx, a) })
}

// fold folds one event into its session.
func (l *laneActor) fold(ctx context.Context, d arrival) error {
	e := d.event
	s, err := l.session(ctx, e)
	if isPanic(err) {
		return l.quarantine(ctx, d, err)
	}
	if err != nil {
		return err
	}
	l.clock++
	s.used = l.clock
	if s.stopped || e.Seq <= s.state.Seq {
		// Stopped: its events count as stored. Folded: what it says is stored,
		// or waits in front of this to be.
		l.pending = append(l.pending, outputs{arrival: d})
		return nil
	}
	notices, err := l.host.guarded(s.state, e)
	if isPanic(err) {
		delete(l.sessions, e.Session) // half folded; if this is tried again, it is loaded again
		return l.quarantine(ctx, d, err)
	}
	l.pending = append(l.pending, outputs{
		arrival: d, actor: s, notices: notices, effects: s.unasked(time.Now().UnixMilli()),
		withdrawn: append([]session.Withdrawal(nil), s.state.Withdrawals()...),
	})
	return nil
}

// session returns the session of e, loaded and proven.
func (l *laneActor) session(ctx context.Context, e session.Event) (*actor, error) {
	s := l.sessions[e.Session]
	if s == nil {
		loaded, err := l.host.load(ctx, e.Session, e.Seq)
		if err != nil {
			return nil, err
		}
		l.evict()
		l.sessions[e.Session] = loaded
		return loaded, nil
	}
	if !s.proven && e.Seq > s.state.Seq {
		if err := l.host.prove(ctx, e.Session, s, e.Seq); err != nil {
			delete(l.sessions, e.Session)
			return nil, err
		}
	}
	return s, nil
}

// unasked returns the open effects that were not asked yet and may still be
// started, and takes them as asked.
func (s *actor) unasked(now int64) []session.Effect {
	effects := s.state.OpenExcept(func(name string) bool { return s.asked[name] })
	kept := effects[:0]
	for _, e := range effects {
		s.asked[e.Name] = true
		if e.Class == session.ClassWake || e.StartBy >= now {
			kept = append(kept, e)
		}
	}
	if len(s.asked) > 4*(len(effects)+session.CallsMax) {
		s.forgetSettled()
	}
	return kept
}

// forgetSettled drops the names of effects that are not open any more; no name
// is asked twice by one fold, so they are of no use.
func (s *actor) forgetSettled() {
	open := map[string]bool{}
	s.state.OpenExcept(func(name string) bool {
		open[name] = true
		return true
	})
	for name := range s.asked {
		if !open[name] {
			delete(s.asked, name)
		}
	}
}

// evict drops the sessions that were used least lately, once there are too
// many. Nothing is lost: they are in the log.
func (l *laneActor) evict() {
	if len(l.sessions) < l.host.opts.SessionsMax {
		return
	}
	inUse := map[*actor]bool{}
	for i := range l.pending {
		inUse[l.pending[i].actor] = true
	}
	limit := l.clock - min(l.clock, uint64(l.host.opts.SessionsMax)*3/4)
	for sid, s := range l.sessions {
		if s.used < limit && !inUse[s] {
			delete(l.sessions, sid)
		}
	}
}

// Waits between two tries of what the bus could not do.
const (
	retryFirst = 50 * time.Millisecond
	retryMax   = 2 * time.Second
)

// retry tries until it is done, ctx ends, or trying can't help.
func (l *laneActor) retry(ctx context.Context, what string, e session.Event, try func() error) error {
	wait := retryFirst
	for {
		err := try()
		var unknown *session.UnknownRulesError
		if err == nil || errors.As(err, &unknown) || ctx.Err() != nil {
			return err
		}
		l.log.Warn("failed, trying again", "what", what, "session", e.Session, "seq", e.Seq, "error", err)
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
		wait = min(2*wait, retryMax)
	}
}
