package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/fault"
)

// Limits of looking back. A wake that lies no further ahead than longWaitMS is in
// no snapshot: who waits for it is found by its name, and if that is forgotten, by
// its owner's memory. What a former owner had in memory is found in the log: its
// last event is acknowledged, and not older than that wake.
const (
	lookBackTo    = longWaitMS*time.Millisecond + time.Minute // before the last event that is acknowledged
	lookBackAfter = lookBackTo + time.Minute                  // after the lane is taken: by then most are woken by their names
	lookBackEvery = time.Minute                               // how often it is seen whether it is time
	lookBackPace  = 5 * time.Millisecond                      // between two sessions
	floorWithin   = 20 * time.Second
)

// looksBack looks, some time after this host began to run the lane and after each
// time that it took it, for sessions that a former owner had in memory, and that
// nobody wakes: their wakes were lost, or forgotten before a bridge had scheduled
// them.
func (l *laneActor) looksBack(ctx context.Context) {
	look := time.NewTicker(lookBackEvery)
	defer look.Stop()
	for known := false; ; {
		if !known {
			known = l.learnsPast(ctx) == nil
		}
		select {
		case <-l.retaken: // before a look, if both are here
			known = false
			continue
		default:
		}
		select {
		case <-ctx.Done():
			return
		case <-l.retaken:
			known = false
			continue
		case <-look.C:
		}
		if fault.On(fault.NotLookedBack) {
			continue
		}
		l.notesLate(ctx)
		if since, upTo, learned, is := l.back.dueBack(); is && l.isMine(ctx) {
			n, err := l.lookBack(ctx, since, upTo)
			if err != nil {
				if ctx.Err() == nil {
					l.log.Warn("sessions of a former owner not looked after", "sessions", n, "error", err)
				}
				continue
			}
			l.back.hasLooked(learned)
		}
		if err := l.forgetPast(ctx); err != nil && ctx.Err() == nil {
			l.log.Warn("looked back, and it is noted still that it is to be", "error", err)
		}
	}
}

func (l *laneActor) learnsPast(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, floorWithin)
	defer cancel()
	_, err := l.learnPast(ctx)
	return err
}

// notesLate puts a note that could not be put in time.
func (l *laneActor) notesLate(ctx context.Context) {
	l.back.mu.Lock()
	unnoted := l.back.unnoted
	l.back.mu.Unlock()
	if !unnoted {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, floorWithin)
	defer cancel()
	if l.notes(ctx) == nil {
		l.back.mu.Lock()
		l.back.unnoted = false
		l.back.mu.Unlock()
	}
}

// lookBack looks after the sessions whose last event was acknowledged when the
// lane was taken, not before since, and that are not in memory. It returns how
// many.
func (l *laneActor) lookBack(ctx context.Context, since time.Time, upTo uint64) (n int, err error) {
	select {
	case l.host.sweeping <- struct{}{}:
		defer func() { <-l.host.sweeping }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	ends := map[string]uint64{}
	for one, err := range l.host.world.LaneHeads(ctx, l.lane.Number(), l.host.opts.Lanes, since) {
		if err != nil {
			return 0, err
		}
		ends[one.Session] = one.Seq
	}
	var list []bus.Head
	l.inside(ctx, func() {
		owned := l.lane.Owned()
		for sid, seq := range ends {
			if s := l.sessions[sid]; seq <= upTo && (s == nil || !s.proven || !owned) {
				list = append(list, bus.Head{Session: sid, Seq: seq})
			}
		}
	})
	slices.SortFunc(list, func(a, b bus.Head) int { return cmp.Compare(a.Seq, b.Seq) })
	var failed []error
	for _, one := range list {
		if !pause(ctx, lookBackPace) {
			return n, ctx.Err()
		}
		n++
		looking, cancel := context.WithTimeout(ctx, sweepWithin)
		if err := l.lookAtCopy(looking, one.Session); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", one.Session, err))
		}
		cancel()
	}
	if len(failed) > 0 {
		return n, fmt.Errorf("%d sessions, the first of them %w", len(failed), failed[0])
	}
	return n, ctx.Err()
}

// lastBefore returns when the log took the event at seq. If the log has it no more,
// one before counts: in longer and longer steps, since what was erased may have
// been many. If there is none, the log begins with what is looked for.
func (l *laneActor) lastBefore(ctx context.Context, seq uint64) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, sweepWithin)
	defer cancel()
	e, err := l.host.world.EventAt(ctx, seq)
	if !errors.Is(err, bus.ErrNotFound) {
		return time.UnixMilli(e.Time), err
	}
	last, err := l.host.world.LastSeq(ctx)
	if err != nil {
		return time.Time{}, err
	}
	seq = min(seq, last)
	for back := uint64(0); back < seq; back = 2*back + 1 {
		if e, err = l.host.world.EventAt(ctx, seq-back); !errors.Is(err, bus.ErrNotFound) {
			return time.UnixMilli(e.Time), err
		}
	}
	return time.UnixMilli(0), nil
}

// unsavedWeight is what a session takes of which nothing is kept but its wakes.
const unsavedWeight = 192

// saveNot keeps the wakes of a session that leaves memory, and is in no snapshot
// that names them.
func (l *laneActor) saveNot(s *actor) {
	if s.state == nil || len(s.state.Wakes) == 0 || fault.On(fault.UnsavedForgotten) {
		return
	}
	l.unsaved[s.sid] = slices.Clone(s.state.Wakes)
	l.dueFrom(s.state.Wakes)
}

// lateUnsaved returns the wakes of those sessions that are overdue.
func (l *laneActor) lateUnsaved(now int64) (found []late) {
	for sid, wakes := range l.unsaved {
		i := slices.IndexFunc(wakes, func(w session.OpenWake) bool { return isOverdue(w.Due, now) })
		switch {
		case l.sessions[sid] != nil:
			delete(l.unsaved, sid)
		case i >= 0:
			found = append(found, late{sid: sid, wake: wakes[i], copy: true})
		}
	}
	return found
}
