package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/journal"
)

// recheckEvery is how often a lane checks whether a quarantine has ended.
const recheckEvery = 15 * time.Second

// recheck checks the lane's quarantined sessions. Every host does so, whoever owns
// the lane: an idle lane may have no owner, and outputs that two hosts store are
// stored once. What fails now is tried at the next recheck.
func (l *Lane) recheck() {
	quiet := !l.arrived
	l.arrived = false
	var sids []string
	lane, known, every := l.number, l.stopped(), l.host.recheck
	for _, sid := range known {
		// All events before the stop must have been delivered: a resumption begins
		// after it.
		s := l.sessions[sid]
		_, busy := l.parked[sid]
		switch {
		case s.unstored.Load():
			l.storeStop(s)
		case !busy && s.state == nil && (l.newest >= s.stop.Seq || quiet):
			sids = append(sids, sid)
		}
	}
	var stops map[string]*Stop
	var err error
	l.wait("rechecks", func(ctx context.Context, w outside) error {
		stops, err = w.stopsIn(ctx, lane, time.Now().Add(-every/2), known, sids)
		return nil
	}, func() {
		l.listed = err == nil
		l.takeStops(stops)
		l.retryIsolated(sids)
	})
}

// release resumes a session that people have released. It counts as pending work
// from now on.
func (l *Lane) release(s *actor) {
	l.released = append(l.released, &resumption{outside: l.outside, actor: s})
}

func (l *Lane) isReleased(sid string) bool {
	return slices.ContainsFunc(l.released, func(r *resumption) bool { return r.actor.sid == sid })
}

// resumption reads a released session up to its first event that is not done, and
// then all later events in parts, which are folded and emit. The lane no longer
// delivers these events; those that it still delivers are folded afterwards. A
// session that killed processes before its release is quarantined again until that
// is done: if it kills this process too, the next one finds it stopped.
//
// Other hosts may acknowledge events under the quarantine meanwhile. So it is stored
// as released before the last events are read: from then on no host does.
type resumption struct {
	outside
	actor *actor    // the stopped session
	at    time.Time // not before this time

	from, last uint64          // still to be read; last 0: not known yet
	stored     Stop            // the quarantine that is stored meanwhile
	ending     bool            // it is stored as released: what is read now is the rest
	going      *actor          // the resumed session; nil: nothing is read yet
	events     []session.Event // to be folded next
	whole      bool            // they are the last ones
	round      time.Time       // when the present round of failed tries began; zero: none failed
	rounds     int             // that failed
	isolation  isolation
	failed     session.Event // the event that err is about
	err        error
}

// resume reads the next part of a released session, once all its earlier outputs
// are stored.
func (l *Lane) resume(r *resumption) {
	switch s := r.actor; {
	case l.sessions[s.sid] != s: // quarantined again, because of an output
		l.resumed(r)
	case s.stop.StaysStored() && !l.metadataKnown():
		r.at = l.now.Add(retryMax) // quarantines and install records are not known yet
		l.released = append(l.released[1:], r)
	default:
		isOver := !r.round.IsZero() && l.now.Sub(r.round) >= l.host.roundFor
		var others error
		l.wait("resumes "+s.sid, func(ctx context.Context, w outside) error {
			if r.err = unstalled(ctx, r.read); r.err != nil && isOver {
				others = w.host.compare(ctx, s.sid, r.rounds)
			}
			return nil
		}, func() {
			if r.judge(isOver, others, l.now); r.isAlone() {
				l.stopAgain(r, session.Event{Session: s.sid, Seq: max(r.from, s.stop.Seq)}, &isolatedError{"its load", r.err})
				return
			}
			l.foldReleased(r)
		})
	}
}

func (r *resumption) read(ctx context.Context) (err error) {
	h, sid := r.host, r.actor.sid
	if r.last == 0 {
		if err := r.begin(ctx); err != nil {
			return err
		}
	}
	r.events, r.whole = r.events[:0], false
	from := r.from
	defer func() {
		if err != nil {
			r.from = from // what was read before the error is read again
		}
	}()
	for e, err := range h.world.ReadSession(ctx, sid, r.from, r.last, true) {
		if err == nil && r.going == nil {
			r.failed = e
			if r.going, err = h.loadReleased(ctx, e, r.actor.stop); err == nil {
				r.going.tracing = h.traced(ctx, sid, r.going.state, nil)
			}
		}
		if err != nil {
			return err
		}
		r.from = e.Seq + 1
		if r.events = append(r.events, e); len(r.events) == batchMax {
			return nil
		}
	}
	r.whole = true
	return nil
}

// begin stores the quarantine as it is from now on, and finds the log's last event.
func (r *resumption) begin(ctx context.Context) (err error) {
	h, sid := r.host, r.actor.sid
	switch {
	case r.ending && !r.stored.Released:
		r.stored.Released = true
		err = h.put(ctx, sid, r.stored)
	case !r.ending:
		if r.stored = *r.actor.stop; r.stored.Kills > 0 {
			r.stored.Kills++
			r.stored.Released = false
			err = h.put(ctx, sid, r.stored)
		}
	}
	if err == nil {
		r.last, err = h.world.LastSeq(ctx)
	}
	if err == nil && !r.ending {
		r.log.Info("session released", "session", sid, "seq", r.stored.Seq)
		r.from = r.stored.Seq
	}
	return err
}

// put stores a quarantine.
func (h *Host) put(ctx context.Context, sid string, stop Stop) error {
	body, err := stop.Bytes()
	if err != nil {
		return err
	}
	return h.world.PutQuarantine(ctx, sid, body)
}

// judge counts a failed try: with isOver, as the end of a round.
func (r *resumption) judge(isOver bool, others error, now time.Time) {
	switch {
	case r.err == nil || stopsSession(r.err):
		r.round, r.isolation = time.Time{}, isolation{}
	case r.round.IsZero():
		r.round = now
	case isOver:
		r.round = now
		r.rounds++
		r.isolation.failed(r.err, others, now)
	}
}

func (r *resumption) isAlone() bool { return r.isolation.rounds >= roundsMax }

// foldReleased folds the events that were read of a released session.
func (l *Lane) foldReleased(r *resumption) {
	if r.err != nil && !stopsSession(r.err) {
		l.log.Warn("quarantine not read", "session", r.actor.sid, "error", r.err)
		r.at = l.now.Add(retryMax)
		l.released = append(l.released[1:], r) // others may be resumed meanwhile
		return
	}
	if r.err != nil {
		l.stopAgain(r, r.failed, r.err)
		return
	}
	for _, e := range r.events {
		switch {
		case r.going.isStopped(e.Seq): // by another owner
			l.flush(func() { l.resumed(r) })
			return
		case e.Seq <= r.going.state.Seq:
			continue // the snapshot is past it: another owner went on
		}
		o := &outputs{arrival: &Delivered{Event: e, Ack: func() {}}}
		if err := l.host.next(r.going, o); err != nil {
			l.flush(func() { l.stopAgain(r, e, err) }) // the new quarantine says that all before e is stored
			return
		}
		l.folded = append(l.folded, o)
	}
	switch {
	case r.whole && (r.ending || !r.actor.stop.StaysStored()):
		l.flush(func() { l.resumed(r) })
		return
	case r.whole:
		r.ending, r.last = true, 0
	}
	l.flush(func() { l.resume(r) })
}

// stopAgain quarantines a session that can't be resumed.
func (l *Lane) stopAgain(r *resumption, e session.Event, cause error) {
	l.released = slices.DeleteFunc(l.released, func(other *resumption) bool { return other == r })
	l.quarantine(e, cause, nil)
}

// resumed puts a resumed session into memory, once all its outputs are stored, and
// folds the events that waited for it.
func (l *Lane) resumed(r *resumption) {
	l.released = slices.DeleteFunc(l.released, func(other *resumption) bool { return other == r })
	s, going, sid := r.actor, r.going, r.actor.sid
	switch {
	case l.sessions[sid] != s: // quarantined again
	case going == nil:
		l.leave(sid) // the log has no event of it from there on
	default:
		going.used = s.used
		l.keep(going)
		if going.refolded {
			// The next load must find a snapshot of this state.
			l.captureAll([]*actor{going})
		}
	}
	if now := l.sessions[sid]; now != nil && now.stop != nil {
		l.free(sid)
		return
	}
	at := session.Event{Session: sid, Seq: s.stop.Seq}
	var other *Stop // that another owner has stored since
	l.do(&attempt{outside: l.outside, name: "ends the quarantine of " + sid, try: func(ctx context.Context, w outside) error {
		if err := w.tellRelease(ctx, at); err != nil || !s.stop.StaysStored() {
			return err
		}
		return w.retry(ctx, "end quarantine", at, func() (err error) {
			other, err = w.endQuarantine(ctx, sid, r.stored)
			return err
		})
	}, then: func(l *Lane) {
		if other != nil {
			l.keep(&actor{sid: sid, stop: other, used: l.clock})
		}
		l.free(sid)
	}})
}

// tellRelease stores the notice that a session is released, before its quarantine is
// deleted, so it may appear twice. It gives up after a round: the next notice of the
// session tells the same.
func (o outside) tellRelease(ctx context.Context, at session.Event) error {
	failed, err := o.retryRound(ctx, o.host.roundFor, "tell release", at, func() error {
		last, err := o.host.world.LastSummary(ctx, at.Session)
		if err != nil {
			return err
		}
		notice := session.NewReleased(at.Session, at.Seq, o.host.now().UnixMilli(), last)
		return o.host.world.Store(ctx, []journal.Output{{Session: at.Session, Notice: notice.JSON()}})[0]
	})
	if failed {
		o.log.Error("release not told", "session", at.Session, "seq", at.Seq, "error", err)
		return nil
	}
	o.host.meters.released()
	return err
}

// endQuarantine deletes a session's quarantine. If another one is stored, it returns
// that.
func (o outside) endQuarantine(ctx context.Context, sid string, stop Stop) (other *Stop, err error) {
	body, err := stop.Bytes()
	if err == nil {
		err = o.host.world.DeleteQuarantine(ctx, sid, body)
	}
	if errors.Is(err, journal.ErrOvertaken) {
		return o.host.stopOf(ctx, sid)
	}
	return nil, err
}
