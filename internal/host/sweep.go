package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/subjects"
)

// Limits of a sweep.
const (
	sweepFirst  = 10 * time.Second // after the start, of lanes that nobody owns
	sweepLeast  = time.Minute      // between the beginnings of two sweeps of a lane
	sweepMost   = 30 * time.Minute // between two sweeps, however long names of effects are kept
	sweepPage   = 1024             // waiting sessions that are held at a time
	sweepPace   = 2 * time.Millisecond
	sweepAtOnce = 8                // sessions that are looked after at once
	sweepWithin = 30 * time.Second // how long looking after one may take
)

// sweeps looks after sessions that are not in memory, until ctx ends: on taking
// the lane, and every half of the time for which names of effects are kept, so
// that a wake is asked again before its name is forgotten. A lane that nobody
// owns, since nothing arrives on it, is swept by every host: what two hosts ask
// is asked once.
func (l *laneActor) sweeps(ctx context.Context) {
	next := time.NewTimer(l.host.sweepFirst)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.taken:
		case <-next.C:
			select {
			case <-l.taken: // one sweep is enough for both
			default:
			}
		}
		began := time.Now()
		if l.isMine(ctx) {
			if n, err := l.sweep(ctx); err != nil && ctx.Err() == nil {
				l.log.Warn("sweep not finished", "sessions", n, "error", err)
			} else if n > 0 {
				l.log.Info("waiting sessions swept", "sessions", n, "took_ms", time.Since(began).Milliseconds())
			}
		}
		next.Reset(time.Until(began.Add(l.sweepEvery(ctx))))
		if !pause(ctx, time.Until(began.Add(sweepLeast))) {
			return
		}
	}
}

// sweepEvery returns how long it is from one sweep to the next.
func (l *laneActor) sweepEvery(ctx context.Context) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, sweepWithin)
	defer cancel()
	kept, err := l.host.world.EffectsKept(ctx)
	if err != nil || kept == 0 {
		return sweepMost
	}
	return max(min(kept/2, sweepMost), sweepLeast)
}

// isMine reports whether this host is to sweep the lane.
func (l *laneActor) isMine(ctx context.Context) bool {
	if l.lane.Owned() {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, sweepWithin)
	defer cancel()
	unowned, err := l.lane.Unowned(ctx)
	if err != nil && ctx.Err() == nil {
		l.log.Warn("lane not swept", "error", err)
	}
	return unowned
}

// sweep looks after the lane's sessions that wait and are not in memory, and
// returns how many. One lane of a host is swept at a time.
func (l *laneActor) sweep(ctx context.Context) (n int, err error) {
	select {
	case l.host.sweeping <- struct{}{}:
		defer func() { <-l.host.sweeping }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	pace := time.NewTicker(sweepPace)
	defer pace.Stop()
	for from := uint64(1); from > 0; {
		var page []bus.Waiting
		if page, from, err = l.page(ctx, from); err != nil {
			return n, err
		}
		var looking sync.WaitGroup
		room := make(chan struct{}, sweepAtOnce)
		for _, w := range page {
			select {
			case <-pace.C:
			case <-ctx.Done():
				looking.Wait()
				return n, ctx.Err()
			}
			n++
			room <- struct{}{}
			looking.Go(func() {
				defer func() { <-room }()
				if err := l.lookAfter(ctx, w); err != nil && ctx.Err() == nil {
					l.log.Warn("waiting session not swept", "session", w.Session, "error", err)
				}
			})
		}
		looking.Wait()
	}
	return n, nil
}

// page returns some of the lane's sessions that wait and are not in memory, and
// from where to go on; 0: that was all.
func (l *laneActor) page(ctx context.Context, from uint64) (page []bus.Waiting, next uint64, err error) {
	for w, err := range l.host.world.ListWaiting(ctx, from) {
		if err != nil {
			return nil, 0, err
		}
		if subjects.LaneOf(subjects.Partition(w.Session), l.host.opts.Lanes) != l.lane.Number() {
			continue
		}
		if page = append(page, w); len(page) == sweepPage {
			next = w.Seq + 1
			break
		}
	}
	kept := page[:0]
	l.inside(ctx, func() {
		// What is in memory is looked at by the owner alone: of a lane that nobody
		// owns, by nobody.
		owned := l.lane.Owned()
		for _, w := range page {
			if s := l.sessions[w.Session]; s == nil || !s.proven || !owned {
				kept = append(kept, w)
			}
		}
	})
	return kept, next, ctx.Err()
}

// lookAfter asks the wakes of a session again that is not in memory, if they lie
// ahead: their names may have been forgotten, and asking twice is asking once.
// One that its snapshot has as overdue may have been settled since; a copy of
// the session tells.
func (l *laneActor) lookAfter(ctx context.Context, w bus.Waiting) error {
	ctx, cancel := context.WithTimeout(ctx, sweepWithin)
	defer cancel()
	if isOverdue(w.Due, l.host.now().UnixMilli()) {
		return l.lookAtCopy(ctx, w.Session)
	}
	data, found, err := l.host.world.GetSnapshot(ctx, w.Session)
	if err != nil || !found {
		return err
	}
	wakes, err := snapshotWakes(data)
	if err != nil {
		return fmt.Errorf("read the wakes of its snapshot: %w", err)
	}
	if len(wakes) == 0 {
		return nil
	}
	return l.ask(ctx, w.Session, wakes)
}

// lookAtCopy settles the overdue wakes that a session has by all that is in the
// log, and asks for the others. The session is a copy, and thrown away.
func (l *laneActor) lookAtCopy(ctx context.Context, sid string) (err error) {
	defer func() { err = recovered(recover(), err) }()
	stop, err := l.host.stopOf(ctx, sid)
	if err != nil || stop != nil {
		return err // what is quarantined stands still
	}
	state, err := l.host.latest(ctx, sid)
	if err != nil || state == nil {
		return err
	}
	now, ahead := l.host.now().UnixMilli(), []session.OpenWake(nil)
	for _, w := range state.Wakes {
		if !isOverdue(w.Due, now) {
			ahead = append(ahead, w)
			continue
		}
		if err := l.wake(ctx, sid, w); err != nil {
			return err
		}
	}
	if len(ahead) == 0 {
		return nil
	}
	return l.ask(ctx, sid, ahead)
}

// ask asks wakes of a session again.
func (l *laneActor) ask(ctx context.Context, sid string, wakes []session.OpenWake) error {
	return errors.Join(l.host.world.Store(ctx, appendAsks(nil, sid, wakesOf(sid, wakes)))...)
}

// snapshotWakes returns the open wakes of a snapshot. It decodes nothing else: to
// restore a state is four times the work, and needs what the state refers to.
func snapshotWakes(data []byte) (wakes []session.OpenWake, err error) {
	var room [48]codec.Entry
	state, err := entry(room[:0], data, "state")
	if err != nil {
		return nil, err
	}
	open, err := entry(room[:0], state, "wakes")
	if err != nil || open == nil {
		return nil, err
	}
	err = codec.Unmarshal(open, &wakes)
	return wakes, err
}

// entry returns the value of a key in a canonical map, nil if it has none.
func entry(room []codec.Entry, data []byte, key string) ([]byte, error) {
	entries, err := codec.Entries(room, data)
	for _, e := range entries {
		if string(e.Key) == key {
			return e.Value, err
		}
	}
	return nil, err
}
