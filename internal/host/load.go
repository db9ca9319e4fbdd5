package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
)

// actor is one session in memory.
type actor struct {
	state   *session.State
	asked   map[string]bool // open effects that were asked since it was loaded
	proven  bool            // its place in the log is known, in this era
	stopped bool            // quarantined
	snapped uint64          // events folded when the last snapshot was taken
	used    uint64          // when it was used last, by the lane's count
}

// loadTries is how often the log is read for one delivered event.
const loadTries = 3

// errIncomplete says that a read ended before the event that caused it: the
// replica that answered is behind.
var errIncomplete = errors.New("the log read does not include the delivered event")

// load returns the session as it stands before the event at seq, or as its
// snapshot has it if that is at or past seq. It emits nothing.
func (h *Host) load(ctx context.Context, sid string, seq uint64) (*actor, error) {
	stopped, err := h.stopped(ctx, sid, seq)
	if err != nil {
		return nil, err
	}
	if stopped {
		return &actor{stopped: true, proven: true}, nil
	}
	state, err := h.fromSnapshot(ctx, sid)
	if err != nil {
		return nil, err
	}
	a := &actor{state: state, asked: map[string]bool{}, proven: true}
	if state != nil {
		a.snapped = state.Count
		if state.Seq >= seq {
			return a, nil
		}
	}
	for try := range loadTries {
		a.state, err = h.foldTo(ctx, sid, state, seq, try > 0)
		if !errors.Is(err, errIncomplete) {
			break
		}
		// The state was folded part of the way; what is left is read again,
		// from the leader.
		state = a.state
	}
	return a, err
}

// prove folds what lies between a session's folded mark and the event at seq.
// It lies below the lane's ack floor, so it is stored and nothing is emitted.
func (h *Host) prove(ctx context.Context, sid string, a *actor, seq uint64) error {
	var err error
	for try := range loadTries {
		if a.state, err = h.foldTo(ctx, sid, a.state, seq, try > 0); !errors.Is(err, errIncomplete) {
			break
		}
	}
	a.proven = err == nil
	return err
}

// foldTo folds the session's events after state up to the one before seq. The
// event at seq must be among those read, or the read was incomplete.
func (h *Host) foldTo(ctx context.Context, sid string, state *session.State, seq uint64, leader bool) (*session.State, error) {
	from := uint64(1)
	if state != nil {
		from = state.Seq + 1
	}
	for e, err := range h.world.ReadSession(ctx, sid, from, seq, leader) {
		if err != nil {
			return state, fmt.Errorf("read session %s from %d: %w", sid, from, err)
		}
		if state == nil {
			install, err := h.installs.Pinned(ctx, e.Seq)
			if err != nil {
				return nil, err
			}
			state = session.New(install, sid)
		}
		if e.Seq == seq {
			return state, nil
		}
		if _, err := h.guarded(state, e); isPanic(err) {
			return state, err
		}
	}
	return state, errIncomplete
}

// fromSnapshot returns the state of the session's snapshot, nil if there is
// none that counts.
func (h *Host) fromSnapshot(ctx context.Context, sid string) (*session.State, error) {
	data, found, err := h.world.GetSnapshot(ctx, sid)
	if err != nil {
		return nil, fmt.Errorf("read the snapshot of %s: %w", sid, err)
	}
	if !found {
		return nil, nil
	}
	snap, err := session.ParseSnapshot(data)
	if err != nil {
		h.log.Warn("snapshot ignored", "session", sid, "error", err)
		return nil, nil
	}
	last, err := h.world.EventAt(ctx, snap.Seq)
	switch {
	case errors.Is(err, bus.ErrNotFound):
		h.log.Warn("snapshot ignored: the log has nothing at its sequence", "session", sid, "seq", snap.Seq)
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read event %d of %s: %w", snap.Seq, sid, err)
	case last.Session != sid || session.LeafOf(last) != snap.Leaf:
		h.log.Warn("snapshot ignored: the log has another event at its sequence", "session", sid, "seq", snap.Seq)
		return nil, nil
	}
	state, err := session.Restore(snap, h.installs.Named(ctx))
	var unknown *session.UnknownRulesError
	switch {
	case errors.As(err, &unknown):
		return nil, err
	case err != nil:
		h.log.Warn("snapshot ignored", "session", sid, "error", err)
		return nil, nil
	}
	return state, nil
}

// panicError says that the fold panicked: a fault of this program, which stops
// one session.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("the fold panicked: %v", e.value) }

func isPanic(err error) bool {
	var p *panicError
	return errors.As(err, &p)
}

// guarded folds e, turning a panic into an error.
func (h *Host) guarded(state *session.State, e session.Event) (notices []session.Notice, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{v}
		}
	}()
	return h.evolve(state, e)
}
