package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/refold/refold/actors/session"
)

// loadsAtOnce is how many sessions of a lane are loaded or proven at once.
const loadsAtOnce = 32

// load loads a session for an event, or proves one that is in memory since an
// earlier epoch: another owner may have resumed or stopped it. Meanwhile the
// session's events are parked, and events of other sessions are folded.
type load struct {
	outside
	event         session.Event
	metadataKnown bool           // see Host.load
	checked       bool           // firstEvents has checked it
	was           *actor         // the unproven session; nil: it is not in memory
	stopped       bool           // was is quarantined
	waiting       int            // events of the session that wait when the work begins
	state         *session.State // of was
	tracing       *tracing       // of was

	actor *actor // the loaded session; nil: was is proven
	stop  *Stop  // of was
	err   error
}

// load begins to load a session for the event of o. was is the session if it is
// unproven.
func (l *Lane) load(o *outputs, was *actor) {
	e := o.arrival.Event
	s := l.sessions[e.Session]
	w := &load{outside: l.outside, event: e, was: was, metadataKnown: l.metadataKnown() && (s == nil || s.stop == nil)}
	if was != nil {
		w.stopped, w.state, w.tracing = was.state == nil, was.state, was.tracing
	}
	l.park(o)
	l.loads = append(l.loads, w)
}

// metadataKnown reports whether all quarantines and install records are known since
// the epoch began, so that a load need not read them.
func (l *Lane) metadataKnown() bool { return l.listed && l.recorded }

// startLoads begins to load and prove sessions. One request finds the new ones; the
// others are loaded concurrently.
func (l *Lane) startLoads() {
	var first, wait []*load
	for _, w := range l.loads {
		switch {
		case l.mayBeNew(w):
			first = append(first, w)
		case l.loading == loadsAtOnce:
			wait = append(wait, w)
		default:
			l.loading++
			w.waiting = len(l.parked[w.event.Session])
			l.do(w)
		}
	}
	l.loads = wait
	if len(first) > 0 {
		l.do(&firstEvents{outside: l.outside, loads: first})
	}
}

// mayBeNew reports whether the event may be its session's first one, so that
// nothing is stored of the session. An event after end was folded by no other
// owner, so its session has no snapshot of a later state.
func (l *Lane) mayBeNew(w *load) bool {
	return w.was == nil && w.metadataKnown && !w.checked && w.event.Seq > l.end && !l.host.unverified(w.event.Session)
}

// firstEvents finds the sessions that begin with the event that they are loaded
// for. On a busy host most do. Any replica may answer: one that has the event has
// all events before it.
type firstEvents struct {
	outside
	loads []*load
}

func (w *firstEvents) String() string {
	return "looks for the first event of " + w.loads[0].event.Session
}

func (w *firstEvents) Do(ctx context.Context, report func(Input)) {
	h := w.host
	sids := make([]string, len(w.loads))
	for i, one := range w.loads {
		sids[i] = one.event.Session
		one.checked = true
	}
	began := time.Now()
	var seqs []uint64
	err := unstalled(ctx, func(ctx context.Context) (err error) {
		seqs, err = h.world.FirstSeqs(ctx, sids)
		return err
	})
	for i, one := range w.loads {
		if err != nil {
			break // the loads report the error
		}
		if seqs[i] != one.event.Seq {
			continue
		}
		if install, err := h.pinned(ctx, one.event.Seq, true); err == nil {
			one.actor = &actor{sid: one.event.Session, proven: true, state: session.New(install, one.event.Session)}
			one.actor.tracing = h.traced(ctx, one.actor.sid, one.actor.state, nil)
			h.meters.loaded("new", time.Since(began))
		}
	}
	report(w)
}

func (w *firstEvents) step(l *Lane) {
	for _, one := range w.loads {
		if one.actor != nil {
			one.loaded(l)
		} else {
			l.loads = append(l.loads, one)
		}
	}
}

func (w *load) String() string { return "loads " + w.event.Session }

// Do reports an error only if a retry can't help.
func (w *load) Do(ctx context.Context, report func(Input)) {
	defer func() { report(w) }()
	err := w.retryAlone(ctx, "load", w.event, func(ctx context.Context) error {
		if w.err = w.try(ctx); stopsSession(w.err) || errors.Is(w.err, errVoid) {
			return nil
		}
		return w.err
	})
	switch {
	case err != nil:
		w.err = err
	case w.actor != nil:
		w.actor.tracing = w.host.traced(ctx, w.actor.sid, w.actor.state, nil)
	case w.state != nil:
		w.tracing = w.host.traced(ctx, w.event.Session, w.state, w.tracing)
	}
}

// try proves the session, or loads it. A session that can't be proven is loaded
// again.
func (w *load) try(ctx context.Context) (err error) {
	switch {
	case w.stopped:
		w.stop, err = w.host.stopOf(ctx, w.event.Session)
		return err
	case w.state != nil:
		w.state, w.stop, err = w.host.prove(ctx, w.event, w.state)
		switch {
		case err == nil, stopsSession(err):
			return err
		case errors.Is(err, errRewritten):
			w.log.Warn("session loaded again: the log lost folded events", "session", w.event.Session)
		default:
			w.log.Warn("failed, trying again", "what", "prove", "session", w.event.Session, "seq", w.event.Seq, "error", err)
		}
		w.state = nil
	}
	w.actor, err = w.host.load(ctx, w.event, w.metadataKnown)
	return err
}

func (w *load) step(l *Lane) {
	l.loading--
	w.loaded(l)
}

// loaded puts a loaded session into memory, and folds the events that waited for
// it.
func (w *load) loaded(l *Lane) {
	sid := w.event.Session
	s := l.sessions[sid]
	switch {
	case stopsSession(w.err):
		l.quarantine(w.event, w.err, nil)
		return
	case errors.Is(w.err, errVoid):
		if s == w.was {
			l.leave(sid) // it can't be proven
		}
		l.forget(w.event)
	case w.err != nil:
		l.fail(w.err)
		return
	case w.actor != nil:
		if s == nil || s == w.was || s.state == nil && !s.isStopped(w.event.Seq) { // it may have been stopped since
			w.actor.passing = w.waiting
			l.cacheSession(w.actor)
		}
	case s != w.was: // it was stopped since
	case w.state != nil:
		s.state, s.stop, s.tracing, s.proven = w.state, w.stop, w.tracing, true
		s.stored, s.passing = s.state.Seq, w.waiting
	case w.stop == nil:
		l.release(s)
		return
	default:
		s.stop, s.proven, s.passing = w.stop, true, w.waiting
	}
	l.free(sid)
}

// forget drops an event that the log has lost. It is not acknowledged: the lane has
// a new epoch by now, or soon.
func (l *Lane) forget(e session.Event) {
	l.log.Warn("delivered event ignored: the log lost it", "session", e.Session, "seq", e.Seq)
	is := func(o *outputs) bool {
		return o.parked && o.arrival.Event.Session == e.Session && o.arrival.Event.Seq == e.Seq
	}
	l.order, l.folded = slices.DeleteFunc(l.order, is), slices.DeleteFunc(l.folded, is)
	l.parked[e.Session] = slices.DeleteFunc(l.parked[e.Session], is)
}
