package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/refold/refold/actors/session"
)

// retryIsolated tries the failed work of some quarantined sessions again, if it is
// due.
func (l *Lane) retryIsolated(sids []string) {
	for _, sid := range sids {
		s := l.sessions[sid]
		if _, busy := l.parked[sid]; busy || s == nil || s.stop == nil || !s.stop.Retried || s.retrying {
			continue
		}
		switch {
		case s.retryAt.IsZero():
			s.retryAt = l.now.Add(l.host.retriedEvery)
		case !l.now.Before(s.retryAt):
			s.retryAt = l.now.Add(l.host.retriedEvery)
			s.retrying = true
			l.do(&retrial{outside: l.outside, actor: s, sid: sid, stop: *s.stop})
		}
	}
}

// retrial loads a copy of a session that is quarantined because it could not be
// loaded or stored, up to its first event that is not done, and stores the outputs of
// that event. If both succeed, the session is resumed like one that people have
// released, except that its quarantine stays stored until then: an owner that dies
// before leaves it to the next one.
type retrial struct {
	outside
	actor *actor
	sid   string
	stop  Stop
	err   error
}

func (w *retrial) String() string { return "tries again " + w.sid }

func (w *retrial) Do(ctx context.Context, report func(Input)) {
	within, cancel := context.WithTimeout(ctx, w.host.retriedEvery)
	defer cancel()
	w.err = w.try(within)
	report(w)
}

func (w *retrial) step(l *Lane) {
	s := w.actor
	s.retrying = false
	if w.err != nil {
		l.log.Warn("quarantined session still fails", "session", w.sid, "seq", w.stop.Seq, "error", w.err)
		return
	}
	if _, busy := l.parked[w.sid]; !busy && l.sessions[w.sid] == s && s.stop != nil && *s.stop == w.stop {
		l.recorded = true // an idle lane has begun no epoch
		l.occupy(w.sid)
		l.release(s)
	}
}

// errOtherStop means that the session has another quarantine by now.
var errOtherStop = errors.New("its quarantine has changed")

func (w *retrial) try(ctx context.Context) error {
	h := w.host
	if err := h.installs.Load(ctx); err != nil {
		return err
	}
	last, err := h.world.LastSeq(ctx)
	if err != nil {
		return err
	}
	for e, err := range h.world.ReadSession(ctx, w.sid, w.stop.Seq, last, true) {
		if err == nil {
			err = w.storeAll(ctx, e)
		}
		if err != nil {
			return err
		}
		break // the first event is enough: the others follow when it is resumed
	}
	now, err := h.stopOf(ctx, w.sid)
	switch {
	case err != nil:
		return err
	case now != nil && *now != w.stop:
		return errOtherStop
	}
	return nil
}

// storeAll loads the session and stores the outputs of its event e.
func (w *retrial) storeAll(ctx context.Context, e session.Event) error {
	s, err := w.host.load(ctx, e, true)
	if err != nil {
		return err
	}
	if e.Seq <= s.state.Seq {
		return nil // a later snapshot says that it is stored
	}
	o := &outputs{arrival: &Delivered{Event: e}}
	if err := w.host.next(s, o); err != nil {
		return err
	}
	if o.registry != nil {
		if err := putDescriptors(ctx, w.host.world, o.registry); err != nil {
			return err
		}
	}
	b := &batch{outside: w.outside}
	o.pending = b.startable(o.pending, w.host.now().UnixMilli())
	return errors.Join(w.send(ctx, slices.Concat(o.pending, o.wakes))...)
}
