package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
)

// loadTries is how often the log is read for one delivered event.
const loadTries = 3

var (
	// errIncomplete reports that a read ended before the delivered event: the
	// replica that answered lags.
	errIncomplete = errors.New("the log read does not include the delivered event")
	// errVoid reports that the log lost an event after it was delivered.
	errVoid = errors.New("the log does not have the delivered event any more")
	// errRewritten reports that the log has no event, or another one, at the
	// sequence that a state was folded up to.
	errRewritten = errors.New("the log does not have the folded event any more")
)

// load returns the session as of the event before e, or as of its snapshot if that
// is at e or later. It emits nothing. metadataKnown reports that the session is not
// quarantined and that all install records before e are known.
func (h *Host) load(ctx context.Context, e session.Event, metadataKnown bool) (s *actor, err error) {
	var stop *Stop
	if !metadataKnown {
		if stop, err = h.stopOf(ctx, e.Session); err != nil {
			return nil, err
		}
	}
	began, from := time.Now(), "log"
	defer func() {
		if err == nil && !s.isStopped(e.Seq) {
			h.meters.loaded(from, time.Since(began))
		}
	}()
	s = &actor{sid: e.Session, stop: stop, proven: true}
	if s.isStopped(e.Seq) {
		return s, nil
	}
	if err := h.auditOnce(ctx, e.Session, nil); err != nil {
		return nil, err
	}
	if s.state, err = h.restore(ctx, e.Session, s.stop); err != nil {
		return nil, err
	}
	if s.state != nil {
		from = "snapshot"
		s.snapped = s.state.Count
	}
	if s.state == nil || s.state.Seq < e.Seq {
		if s.state, err = h.foldBefore(ctx, s.state, e, metadataKnown); err != nil {
			return nil, err
		}
	}
	if s.state.Count == 0 {
		from = "new"
	}
	s.stored = s.state.Seq
	return s, nil
}

// prove checks that the log still has the event that a session was folded up to,
// and folds the events from there up to e. These are below the lane's ack floor, so
// their outputs are stored and nothing is emitted. It also returns the session's
// quarantine. After an error the state must not be used.
func (h *Host) prove(ctx context.Context, e session.Event, state *session.State) (*session.State, *Stop, error) {
	stop, err := h.stopOf(ctx, e.Session)
	if err != nil {
		return nil, nil, err
	}
	if err := h.auditOnce(ctx, e.Session, state); err != nil {
		return nil, nil, err
	}
	has, err := h.has(ctx, e.Session, state.Seq, state.Leaf)
	switch {
	case err != nil:
		return nil, nil, err
	case !has:
		return nil, nil, errRewritten
	}
	if state.Seq < e.Seq && (stop == nil || stop.Seq > e.Seq) {
		state, err = h.foldBefore(ctx, state, e, false)
	}
	return state, stop, err
}

// has reports whether the log's event at seq belongs to the session and has this
// leaf.
func (h *Host) has(ctx context.Context, sid string, seq uint64, leaf codec.Hash) (bool, error) {
	for e, err := range h.world.ReadSession(ctx, sid, seq, seq, true) {
		if err != nil {
			return false, fmt.Errorf("read event %d of %s: %w", seq, sid, err)
		}
		return session.LeafOf(e) == leaf, nil
	}
	return false, nil
}

// foldBefore folds the session's events after state (nil: all) up to the one before
// e. A lagging replica is detected: e must be among the events read, or the session
// must have as many events up to e as were folded.
//
// That number spares the server a search. To find e it would load all blocks of the
// log between the session's event before e and e: all blocks written while the
// session slept (docs/adr/0049).
func (h *Host) foldBefore(ctx context.Context, state *session.State, e session.Event, metadataKnown bool) (*session.State, error) {
	before := uint64(0) // events to fold in total; 0: not known
	if state != nil {
		if n, err := h.world.CountEvents(ctx, e.Session, e.Seq); err == nil && n > state.Count {
			before = n - 1
		}
	}
	var err error
	for try := range loadTries {
		// Each try goes on from what the last one folded.
		events := h.readAfter(ctx, e.Session, state, e.Seq, try > 0)
		if try == 0 && before > 0 {
			events = h.world.ReadNext(ctx, e.Session, state.Seq+1, e.Seq, before-state.Count)
		}
		state, err = h.foldRead(ctx, e.Session, state, e.Seq, events, metadataKnown)
		switch {
		case !errors.Is(err, errIncomplete):
			return state, err
		case before > 0 && state.Count == before:
			return state, nil
		}
	}
	has, lookErr := h.has(ctx, e.Session, e.Seq, session.LeafOf(e))
	switch {
	case lookErr != nil:
		return nil, lookErr
	case !has:
		return nil, h.missing(ctx, e)
	}
	return nil, err
}

// readAfter reads the session's events after state (nil: all) up to seq.
func (h *Host) readAfter(ctx context.Context, sid string, state *session.State, seq uint64, leader bool) iter.Seq2[session.Event, error] {
	from := uint64(1)
	if state != nil {
		from = state.Seq + 1
	}
	return h.world.ReadSession(ctx, sid, from, seq, leader)
}

// foldRead folds the events that are read after state, up to the one before seq. It
// returns errIncomplete if the event at seq is not among them.
func (h *Host) foldRead(ctx context.Context, sid string, state *session.State, seq uint64, events iter.Seq2[session.Event, error], metadataKnown bool) (*session.State, error) {
	for e, err := range events {
		if err != nil {
			return state, fmt.Errorf("read session %s up to %d: %w", sid, seq, err)
		}
		if state == nil {
			install, err := h.pinned(ctx, e.Seq, metadataKnown)
			if err != nil {
				return nil, err
			}
			state = session.New(install, sid)
		}
		if e.Seq == seq {
			return state, nil
		}
		if err := h.fold(state, e); err != nil {
			return nil, err
		}
		state.ShareRegistries(h.registries.same)
	}
	return state, errIncomplete
}

// pinned returns the install record of a session whose first event is at seq.
func (h *Host) pinned(ctx context.Context, seq uint64, metadataKnown bool) (*session.Install, error) {
	if metadataKnown {
		// A missing record can still be found below: the lane learns of a new
		// record only after the events before it are folded.
		if install, err := h.installs.Known(seq); !errors.Is(err, journal.ErrNoInstall) {
			return install, err
		}
	}
	return h.installs.Pinned(ctx, seq)
}

// restore returns the state of the session's snapshot, nil if there is no valid
// one.
func (h *Host) restore(ctx context.Context, sid string, stop *Stop) (*session.State, error) {
	data, found, err := h.world.GetSnapshot(ctx, sid)
	if err != nil {
		return nil, fmt.Errorf("read the snapshot of %s: %w", sid, err)
	}
	if !found {
		return nil, nil //nolint:nilnil // none is valid
	}
	ignore := func(why error) (*session.State, error) {
		h.log.Warn("snapshot ignored", "session", sid, "error", why)
		return nil, nil //nolint:nilnil // none is valid
	}
	snap, err := session.ParseSnapshot(data)
	if err != nil {
		return ignore(err)
	}
	if stop != nil && snap.Seq >= stop.Seq {
		return ignore(fmt.Errorf("it is at %d, and the session stopped at %d", snap.Seq, stop.Seq))
	}
	has, err := h.has(ctx, sid, snap.Seq, snap.Leaf)
	switch {
	case err != nil:
		return nil, err
	case !has:
		return ignore(fmt.Errorf("the log has not the event at %d that it names", snap.Seq))
	}
	state, err := session.Restore(snap, content{ctx: ctx, h: h, sid: sid})
	var unknown *session.UnknownRulesError
	switch {
	case errors.As(err, &unknown), errors.Is(err, errUnread):
		return nil, err
	case err != nil:
		return ignore(err)
	case state.Session != sid:
		return ignore(fmt.Errorf("it is of session %s", state.Session))
	}
	return state, nil
}
