package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/subjects"
)

// Stop is where and why a session is quarantined.
type Stop = journal.Stop

// stopOf returns the quarantine of a session, nil if there is none.
func (h *Host) stopOf(ctx context.Context, sid string) (*Stop, error) {
	body, found, err := h.world.GetQuarantine(ctx, sid)
	if err != nil || !found {
		return nil, err
	}
	stop := journal.ParseStop(body)
	return &stop, nil
}

// quarantine stops one session, and never its lane: from a's event on its
// events count as stored, those of the slice that was to be stored included.
// They stay in the log; nothing of them is lost. An earlier quarantine, of
// another owner, stands.
func (l *laneActor) quarantine(ctx context.Context, a arrival, cause error, stored ...*outputs) error {
	sid, seq := a.event.Session, a.event.Seq
	stop := journal.NewStop(seq, cause.Error())
	l.log.Error("session quarantined", "session", sid, "seq", seq, "error", stop.Reason)
	var killed *killedError
	if errors.As(cause, &killed) {
		stop.Kills = killed.kills
	}
	var panicked *panicError
	if errors.As(cause, &panicked) {
		l.log.Error("fold panicked", "session", sid, "seq", seq, "stack", string(panicked.stack))
	}
	if old := l.sessions[sid]; old != nil {
		old.state = nil // it is ahead of what is done, or half folded
	}
	err := l.retry(ctx, "quarantine", a.event, func() error {
		earlier, err := l.host.stopOf(ctx, sid)
		if err != nil {
			return err
		}
		if earlier != nil && earlier.Seq <= seq {
			stop = *earlier
			return nil
		}
		if err := l.putStop(ctx, sid, stop); err != nil {
			return err
		}
		l.host.meters.stops(cause)
		return nil
	})
	if err != nil {
		return err
	}
	l.sessions[sid] = &actor{sid: sid, stop: &stop, proven: true, used: l.clock}
	known := false
	for _, list := range [][]*outputs{l.folded, stored} {
		for _, o := range list {
			if e := o.arrival.event; e.Session == sid && e.Seq >= stop.Seq {
				known = known || e.Seq == seq
				*o = outputs{arrival: o.arrival}
			}
		}
	}
	if !known {
		l.folded = append(l.folded, &outputs{arrival: a})
	}
	return nil
}

// putStop stores a quarantine and says so. Said first and stored last, it may
// be said twice, and is never silent.
func (l *laneActor) putStop(ctx context.Context, sid string, stop Stop) error {
	body, err := stop.Bytes()
	if err != nil {
		return err
	}
	notice := session.Notice{
		Type: session.NoticeSessionQuarantined, Seq: stop.Seq, At: time.Now().UnixMilli(), Session: sid,
		Data: session.SessionQuarantined{Reason: stop.Reason},
	}
	if err := l.host.world.Store(ctx, []journal.Output{{Session: sid, Notice: notice.JSON()}})[0]; err != nil {
		return err
	}
	return l.host.world.PutQuarantine(ctx, sid, body)
}

// recheckEvery is how often a lane looks whether a quarantine was ended.
const recheckEvery = 15 * time.Second

// recheck looks after the lane's quarantined sessions. It does so on every
// host, whoever owns the lane: one on which nothing arrives may have no owner,
// and what two hosts store is stored once. What can't be done now is done the
// next time.
func (l *laneActor) recheck(ctx context.Context) error {
	quiet := !l.arrived
	l.arrived = false
	l.list(ctx, time.Now().Add(-l.host.recheck/2))
	if !l.listed {
		return nil
	}
	for _, sid := range slices.Sorted(maps.Keys(l.sessions)) {
		s := l.sessions[sid]
		// All that comes before the stop must have been delivered: a release
		// begins behind it.
		if s == nil || s.stop == nil || s.state != nil || l.newest < s.stop.Seq && !quiet {
			continue
		}
		err := l.relook(ctx, s)
		var unknown *session.UnknownRulesError
		switch {
		case ctx.Err() != nil || errors.As(err, &unknown):
			return err
		case err != nil:
			l.log.Warn("quarantine not looked at", "session", sid, "error", err)
		}
	}
	return nil
}

// list takes the quarantined sessions of the lane into memory, as they were
// after since: a release is the end of what is remembered here, since it leaves
// nothing behind. When it is listed at the beginning of an epoch, loads need not
// look: who stops a session of this lane after that is its owner.
func (l *laneActor) list(ctx context.Context, since time.Time) {
	err := l.listSince(ctx, since)
	if l.listed = err == nil; err != nil && ctx.Err() == nil {
		l.log.Warn("quarantined sessions not listed", "error", err)
	}
}

func (l *laneActor) listSince(ctx context.Context, since time.Time) error {
	all, err := l.host.stops.all(ctx, l.host, since)
	if err != nil {
		return err
	}
	for _, sid := range all {
		s := l.sessions[sid]
		if subjects.LaneOf(subjects.Partition(sid), l.host.opts.Lanes) != l.lane.Number() || s != nil && s.stop != nil {
			continue
		}
		// The list is of a moment ago, and the session may go on since.
		stop, err := l.host.stopOf(ctx, sid)
		if err != nil {
			return err
		}
		switch {
		case stop == nil:
		case s == nil || !s.proven || s.state.Seq >= stop.Seq:
			l.sessions[sid] = &actor{sid: sid, stop: stop, used: l.clock}
		default:
			s.stop = stop
		}
	}
	return nil
}

// stops is what the lanes of a host share: which sessions are quarantined, as
// of a moment ago.
type stops struct {
	mu     sync.Mutex
	listed time.Time
	found  []string
}

// all returns the quarantined sessions of all lanes, as they were after since.
func (q *stops) all(ctx context.Context, h *Host, since time.Time) ([]string, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.listed.After(since) {
		return q.found, nil
	}
	listed := time.Now()
	var found []string
	for sid, err := range h.world.Quarantined(ctx) {
		if err != nil {
			return nil, err
		}
		found = append(found, sid)
	}
	q.found, q.listed = found, listed
	return found, nil
}

// relook reads the quarantine of a session that was stopped, and lets it go on
// if there is none any more.
func (l *laneActor) relook(ctx context.Context, s *actor) error {
	stop, err := l.host.stopOf(ctx, s.sid)
	switch {
	case err != nil:
		return err
	case stop == nil && s.stop.Kills > 0:
		return l.tryAgain(ctx, s)
	case stop == nil:
		return l.resume(ctx, s)
	}
	s.stop, s.proven = stop, true
	return nil
}

// resume lets a released session go on: it is loaded up to its first event that
// is not done, and from there on all that the log has is folded and emits. The
// lane delivers these events no more; those that it does deliver yet are
// folded then.
func (l *laneActor) resume(ctx context.Context, s *actor) error {
	if err := l.flush(ctx); err != nil { // what it said before it was stopped comes first
		return err
	}
	from := s.stop.Seq
	l.log.Info("session released", "session", s.sid, "seq", from)
	last, err := l.host.world.LastSeq(ctx)
	if err != nil {
		return err
	}
	var going *actor
	for e, err := range l.host.world.ReadSession(ctx, s.sid, from, last, true) {
		if err != nil {
			return err
		}
		a := arrival{event: e, ack: func() {}}
		if going == nil {
			going, err = l.host.loadReleased(ctx, e, s.stop.Kills > 0)
		}
		switch {
		case stopsSession(err):
			return l.quarantine(ctx, a, err)
		case err != nil:
			return fmt.Errorf("resume %s at %d: %v", s.sid, e.Seq, err) //nolint:errorlint // what is wrong with e says nothing of a delivered event
		case going.stops(e.Seq):
			l.sessions[s.sid] = going // stopped again
			return nil
		case e.Seq <= going.state.Seq:
			continue // a snapshot is past it: another owner went on
		}
		o := &outputs{arrival: a}
		if err := l.host.next(going, o); err != nil {
			return l.quarantine(ctx, a, err)
		}
		l.folded = append(l.folded, o)
		if len(l.folded) < batchMax {
			continue
		}
		if err := l.flush(ctx); err != nil {
			return err
		}
		if l.sessions[s.sid] != s {
			return nil // quarantined again, by what was to be stored
		}
	}
	if going == nil {
		delete(l.sessions, s.sid) // the log has nothing of it from there on
		return nil
	}
	going.used = s.used
	l.sessions[s.sid] = going
	if err := l.flush(ctx); err != nil || !going.accepted || l.sessions[s.sid] != going {
		return err
	}
	// The next one to load it finds a snapshot of what it goes on from.
	l.captures([]*actor{going})
	return nil
}
