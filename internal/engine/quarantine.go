package engine

import (
	"context"
	"errors"
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

// stopOf returns a session's quarantine, nil if there is none.
func (h *Host) stopOf(ctx context.Context, sid string) (*Stop, error) {
	body, found, err := h.world.GetQuarantine(ctx, sid)
	if err != nil || !found {
		return nil, err
	}
	stop := journal.ParseStop(body)
	return &stop, nil
}

// storer is work whose outputs fail, and which goes on once the quarantines of their
// sessions are stored.
type storer interface {
	events() []*outputs
	// marked is called when one more quarantine is stored.
	marked(l *Lane)
}

// quarantine stops one session; its lane goes on. The session's events from e on
// count as stored, including those of the failing work `of` (nil: none fails). They
// stay in the log.
func (l *Lane) quarantine(e session.Event, cause error, of storer) {
	var unknown *session.UnknownRulesError
	if errors.As(cause, &unknown) { // another session-actor folds it
		l.fail(cause)
		return
	}
	stop := journal.NewStop(e.Seq, cause.Error())
	l.log.Error("session quarantined", "session", e.Session, "seq", e.Seq, "error", stop.Reason)
	var killed *killedError
	if errors.As(cause, &killed) {
		stop.Kills = killed.kills
	}
	var isolated *isolatedError
	stop.Retried = errors.As(cause, &isolated)
	var panicked *panicError
	if errors.As(cause, &panicked) {
		l.log.Error("fold panicked", "session", e.Session, "seq", e.Seq, "stack", string(panicked.stack))
	}
	if s := l.sessions[e.Session]; s != nil {
		s.state, s.stopping = nil, true // it is ahead of what is stored, or half folded
	}
	l.occupy(e.Session)
	stored, waiting := false, len(l.parked[e.Session])
	l.do(&attempt{outside: l.outside, name: "quarantines " + e.Session, try: func(ctx context.Context, w outside) (err error) {
		stop, stored, err = w.mark(ctx, e, stop, cause)
		return err
	}, then: func(l *Lane) { l.stop(e.Session, stop, stored, waiting, of) }})
}

// mark stores a quarantine and returns it. If another owner has stored an earlier
// one, that one is valid and is returned. stored is false if this key can't be stored
// while the bucket takes others: then this process alone knows the quarantine.
func (o outside) mark(ctx context.Context, e session.Event, stop Stop, cause error) (_ Stop, stored bool, err error) {
	told, refused := false, false // the notice is stored; storing it failed in the latest try
	put := func() error {
		ctx, cancel := context.WithTimeout(ctx, o.host.roundFor)
		defer cancel()
		earlier, err := o.host.stopOf(ctx, e.Session)
		if err != nil {
			refused = false
			return err
		}
		if earlier != nil && !earlier.Released && earlier.Seq <= stop.Seq {
			stop = *earlier
			return nil
		}
		if !told {
			err := o.host.tellStop(ctx, e.Session, stop)
			if refused = err != nil; refused {
				return err
			}
			told = true
		}
		if err := o.host.put(ctx, e.Session, stop); err != nil {
			return err
		}
		o.host.meters.stopped(cause)
		return nil
	}
	var alone isolation
	for {
		failed, err := o.retryRound(ctx, o.host.roundFor, "quarantine", e, put)
		if !failed {
			return stop, true, err
		}
		_, others := o.host.answer(ctx)
		switch {
		case others == nil && refused:
			o.log.Error("quarantine not told", "session", e.Session, "seq", e.Seq, "error", err)
			told = true // the view tells it
			continue
		case others == nil && !o.host.probe(ctx)[probeSnapshots]:
			others = errNoOthers
		}
		if alone.failed(err, others, time.Now()) {
			o.log.Error("quarantine not stored", "session", e.Session, "seq", e.Seq, "error", err)
			o.host.meters.stopped(cause)
			return stop, false, nil
		}
	}
}

// storeStop tries to store the quarantine of a session that this process alone knows.
func (l *Lane) storeStop(s *actor) {
	if s.retrying {
		return
	}
	s.retrying = true
	stop := *s.stop
	l.do(&attempt{outside: l.outside, name: "stores the quarantine of " + s.sid, try: func(ctx context.Context, w outside) error {
		within, cancel := context.WithTimeout(ctx, answersWithin)
		defer cancel()
		earlier, err := w.host.stopOf(within, s.sid)
		if err == nil && earlier == nil {
			err = w.host.put(within, s.sid, stop)
		}
		if err != nil {
			w.log.Error("quarantine not stored", "session", s.sid, "seq", stop.Seq, "error", err)
		}
		s.unstored.Store(err != nil)
		return nil
	}, then: func(*Lane) { s.retrying = false }})
}

// stop stops a session after its quarantine is stored. waiting is how many of its
// events were delivered before that began, and wait.
func (l *Lane) stop(sid string, stop Stop, stored bool, waiting int, of storer) {
	s := &actor{sid: sid, stop: &stop, proven: true, passing: waiting, used: l.clock, retryAt: l.now.Add(l.host.retriedEvery)}
	s.unstored.Store(!stored)
	l.keep(s)
	lists := [][]*outputs{l.folded}
	if of != nil {
		lists = append(lists, of.events())
	}
	for _, list := range lists {
		for _, o := range list {
			switch e := o.arrival.Event; {
			case e.Session != sid:
			case e.Seq >= stop.Seq:
				*o = outputs{arrival: o.arrival, parked: o.parked}
			case o.actor != nil:
				o.actor.stopping = false
			}
		}
	}
	if of != nil {
		of.marked(l)
	}
	if !l.isReleased(sid) {
		l.free(sid)
	}
}

// tellStop stores the notice of a quarantine. It is stored before the quarantine, so
// it may appear twice, and is missing only if it can't be stored while all streams
// answer.
func (h *Host) tellStop(ctx context.Context, sid string, stop Stop) error {
	last, err := h.world.LastSummary(ctx, sid)
	if err != nil {
		return err
	}
	notice := session.NewQuarantined(sid, stop.Seq, h.now().UnixMilli(), stop.Reason, last)
	return h.world.Store(ctx, []journal.Output{{Session: sid, Notice: notice.JSON()}})[0]
}

// stopsIn reads the quarantines of a lane's sessions: of sids, where the result is
// nil if there is none any more, and of all others that are listed as of since or
// later and are not known. It returns what it could read, and logs an error.
func (o outside) stopsIn(ctx context.Context, lane int, since time.Time, known, sids []string) (stops map[string]*Stop, err error) {
	listed, err := o.host.quarantined.all(ctx, o.host, since)
	stops = map[string]*Stop{}
	for i, sid := range slices.Concat(sids, listed) {
		isAsked := i < len(sids)
		if !isAsked && (subjects.LaneOf(subjects.Partition(sid), o.host.opts.Lanes) != lane || slices.Contains(known, sid)) {
			continue
		}
		// The list is a moment old, and the session may have been released since.
		stop, lookErr := o.host.stopOf(ctx, sid)
		switch {
		case lookErr != nil:
			err = lookErr
		case isAsked || stop != nil:
			stops[sid] = stop
		}
	}
	if err != nil && ctx.Err() == nil {
		o.log.Warn("quarantined sessions not listed", "error", err)
	}
	return stops, err
}

// stopped returns the sessions in memory that are known to be quarantined, by name.
func (l *Lane) stopped() (sids []string) {
	for sid, s := range l.sessions {
		if s.stop != nil {
			sids = append(sids, sid)
		}
	}
	slices.Sort(sids)
	return sids
}

// takeStops applies quarantines that were read, and resumes sessions that are released.
// Stopped sessions stay in memory: a quarantine may be deleted by hand, which is noticed
// only by comparison with memory.
// If the quarantines are listed when an epoch begins, loads need not read them:
// after that only the lane's owner stops sessions of it.
func (l *Lane) takeStops(stops map[string]*Stop) {
	for _, sid := range slices.Sorted(maps.Keys(stops)) {
		stop, s := stops[sid], l.sessions[sid]
		_, busy := l.parked[sid]
		switch {
		case (stop == nil || stop.Released) && !busy && s != nil && s.stop != nil:
			if stop != nil {
				s.stop = stop // it stays stored until the session is resumed
			}
			l.occupy(sid)
			l.release(s)
		case stop == nil:
		case s == nil || s.stop == nil && !s.stopping && (!s.proven || s.state.Seq >= stop.Seq):
			l.keep(&actor{sid: sid, stop: stop, used: l.clock})
		case s.stop == nil && !s.stopping:
			s.stop = stop
		case s.stop != nil && !busy:
			s.stop = stop
		}
	}
}

// quarantined is the list of quarantined sessions, a moment old, that the lanes of
// a host share.
type quarantined struct {
	mu     sync.Mutex
	listed time.Time
	found  []string
}

// all returns the quarantined sessions of all lanes, as of since or later.
func (q *quarantined) all(ctx context.Context, h *Host, since time.Time) ([]string, error) {
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
