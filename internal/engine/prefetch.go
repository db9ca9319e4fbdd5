package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/refold/refold/actors/session"
)

// loadsAtOnce is how many sessions of a lane are loaded or proven one by one at once.
const loadsAtOnce = 32

// load loads a session for an event. Meanwhile the session's events are parked, and
// those of other sessions are folded.
type load struct {
	outside
	event    session.Event
	informed bool // see Host.load
	looked   bool // lookingAtFirsts has asked for it

	actor *actor
	err   error
}

// informed reports whether all quarantines and install records are known since the
// epoch began. Then a load need not read them.
func (l *Lane) informed() bool { return l.listed && l.recorded }

// startLoads begins to load and prove sessions. It asks which of them are new by one
// request, and loads the others concurrently.
func (l *Lane) startLoads() {
	var first []*load
	var wait []Work
	for _, w := range l.loads {
		one, loads := w.(*load)
		switch {
		case loads && l.mayBeNew(one):
			first = append(first, one)
		case l.loading == loadsAtOnce:
			wait = append(wait, w)
		default:
			l.loading++
			l.do(w)
		}
	}
	l.loads = wait
	if len(first) > 0 {
		l.do(&lookingAtFirsts{outside: l.outside, loads: first})
	}
}

// mayBeNew reports whether the event may be its session's first one, and nothing is
// stored of the session then. An event that the log took after the epoch began (behind
// end) was folded by no other owner, so its session has no snapshot of a later state.
func (l *Lane) mayBeNew(w *load) bool {
	return w.informed && !w.looked && w.event.Seq > l.end && !l.host.unverified(w.event.Session)
}

// lookingAtFirsts asks which sessions begin with the event that they are loaded for.
// On a busy host most do. The request may go to any replica: one that has the event
// has all events before it.
type lookingAtFirsts struct {
	outside
	loads []*load
}

func (w *lookingAtFirsts) String() string {
	return "looks for the first event of " + w.loads[0].event.Session
}

func (w *lookingAtFirsts) Do(ctx context.Context, tell func(Input)) {
	h := w.host
	sids := make([]string, len(w.loads))
	for i, one := range w.loads {
		sids[i] = one.event.Session
		one.looked = true
	}
	seqs, err := h.world.FirstSeqs(ctx, sids)
	for i, one := range w.loads {
		if err != nil {
			break // loading them one by one tells why
		}
		if seqs[i] != one.event.Seq {
			continue
		}
		if install, err := h.pinned(ctx, one.event.Seq, true); err == nil {
			one.actor = &actor{sid: one.event.Session, proven: true, state: session.New(install, one.event.Session)}
			one.actor.tracing = h.traced(ctx, one.actor.sid, one.actor.state, nil)
		}
	}
	tell(w)
}

func (w *lookingAtFirsts) step(l *Lane) {
	for _, one := range w.loads {
		if one.actor != nil {
			one.loaded(l)
		} else {
			l.loads = append(l.loads, one)
		}
	}
}

func (w *load) String() string { return "loads " + w.event.Session }

// Do loads the session. It tells an error only if trying again can't help.
func (w *load) Do(ctx context.Context, tell func(Input)) {
	err := w.retry(ctx, "load", w.event, func() (err error) {
		w.actor, err = w.host.load(ctx, w.event, w.informed)
		if w.err = err; stopsSession(err) || errors.Is(err, errVoid) {
			return nil
		}
		return err
	})
	switch {
	case err != nil:
		w.err = err
	case w.err == nil:
		w.actor.tracing = w.host.traced(ctx, w.actor.sid, w.actor.state, nil)
	}
	tell(w)
}

func (w *load) step(l *Lane) {
	l.loading--
	w.loaded(l)
}

// loaded takes a session into memory that was loaded, and folds the events that
// waited for it.
func (w *load) loaded(l *Lane) {
	sid := w.event.Session
	switch {
	case stopsSession(w.err):
		l.quarantine(w.event, w.err, nil)
		return
	case errors.Is(w.err, errVoid):
		l.forget(w.event)
	case w.err != nil:
		l.fail(w.err)
		return
	default:
		// It may have been stopped meanwhile.
		if s := l.sessions[sid]; s == nil || s.state == nil && !s.stops(w.event.Seq) {
			l.cacheSession(w.actor)
		}
	}
	l.free(sid)
}

// forget drops an event that the log has lost. It is not acknowledged: the lane
// has a new epoch by now, or soon.
func (l *Lane) forget(e session.Event) {
	l.log.Warn("delivered event ignored: the log lost it", "session", e.Session, "seq", e.Seq)
	is := func(o *outputs) bool {
		return o.parked && o.arrival.Event.Session == e.Session && o.arrival.Event.Seq == e.Seq
	}
	l.order, l.folded = slices.DeleteFunc(l.order, is), slices.DeleteFunc(l.folded, is)
	l.parked[e.Session] = slices.DeleteFunc(l.parked[e.Session], is)
}

// proving makes sure of a session that is in memory since an earlier epoch, before
// an event of it is looked at: another owner may have gone on with it, or stopped
// it.
type proving struct {
	outside
	actor   *actor
	event   session.Event
	state   *session.State // nil: it is quarantined
	tracing *tracing
	stop    *Stop
	err     error
}

func (w *proving) String() string { return "proves " + w.event.Session }

func (w *proving) Do(ctx context.Context, tell func(Input)) {
	if w.state != nil {
		w.state, w.stop, w.err = w.host.prove(ctx, w.event, w.state)
		if w.err == nil {
			w.tracing = w.host.traced(ctx, w.event.Session, w.state, w.tracing)
		}
	} else {
		w.err = w.retry(ctx, "look at a quarantine", w.event, func() (err error) {
			w.stop, err = w.host.stopOf(ctx, w.event.Session)
			return err
		})
	}
	tell(w)
}

func (w *proving) step(l *Lane) {
	l.loading--
	s, sid := w.actor, w.event.Session
	switch {
	case l.sessions[sid] != s: // it was quarantined meanwhile
	case w.err == nil && w.state == nil && w.stop == nil:
		l.release(s)
		return
	case w.err == nil && w.state == nil:
		s.stop, s.proven = w.stop, true
	case w.err == nil:
		s.state, s.stop, s.tracing, s.proven = w.state, w.stop, w.tracing, true
		s.stored = s.state.Seq
	case stopsSession(w.err):
		l.quarantine(w.event, w.err, nil)
		return
	default:
		// What can't be proven is forgotten, and loaded anew.
		delete(l.sessions, sid)
		if errors.Is(w.err, errRewritten) {
			l.log.Warn("session read anew: the log lost what was folded", "session", sid)
		} else {
			l.log.Warn("failed, trying again", "what", "prove", "session", sid, "seq", w.event.Seq, "error", w.err)
		}
	}
	l.free(sid)
}
