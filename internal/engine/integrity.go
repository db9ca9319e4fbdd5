package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/audit"
	"github.com/refold/refold/internal/natsio"
)

// integrity is whether the log has lost events, which nothing deletes, and which
// sessions are known to have lost none of them. A snapshot is of a state that
// was folded before the loss, so that a load from it would go on as though
// nothing were missing: while the log has holes, a session is read from the
// log's beginning once, and compared with what is stored of it.
type integrity struct {
	mu      sync.Mutex
	missing uint64          // sequences without an event, when the log was asked last
	sound   map[string]bool // examined since that number changed
}

// soundMax is how many sessions are remembered as sound. Beyond it all are
// forgotten, and examined again when they are loaded.
const soundMax = 1 << 18

// ask asks the log whether it lost events, and says so once when that changes.
// If it does not answer, what was known stands.
func (h *Host) askIntegrity(ctx context.Context) {
	missing, err := h.world.LogMissing(ctx)
	if err != nil {
		if ctx.Err() == nil {
			h.log.Warn("log not asked whether it lost events", "error", err)
		}
		return
	}
	i := &h.integrity
	i.mu.Lock()
	was := i.missing
	if i.missing = missing; missing != was {
		i.sound = map[string]bool{}
	}
	i.mu.Unlock()
	switch {
	case missing == was:
	case missing > 0:
		h.log.Error("the log has lost events: sessions are read from its beginning and compared with what is stored of them; run `refold verify --all --quarantine`",
			"missing", missing, "before", was)
	default:
		h.log.Info("the log has all its events again", "before", was)
	}
}

// unverified reports whether a session may have lost events.
func (h *Host) unverified(sid string) bool {
	i := &h.integrity
	i.mu.Lock()
	defer i.mu.Unlock()
	return (i.missing > 0 || h.opts.Doubt) && !i.sound[sid]
}

// setVerified takes a session as sound.
func (h *Host) setVerified(sid string) {
	i := &h.integrity
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.sound == nil || len(i.sound) >= soundMax {
		i.sound = map[string]bool{}
	}
	i.sound[sid] = true
}

// damageError says that a session's events in the log are not those that it was
// folded from: it is quarantined.
type damageError struct{ what string }

func (e *damageError) Error() string { return "the log is not what it was: " + e.what }

// stopsSession reports whether an error of a load is the session's own: it is
// quarantined for it, and its lane goes on.
func stopsSession(err error) bool {
	if err == nil {
		return false // it is asked for each event: what is looked for below would be allocated
	}
	var damage *damageError
	return isPanic(err) || errors.As(err, &damage)
}

// auditOnce compares a session that may have lost events with what is stored of it,
// and with what is in memory of it (nil: nothing). A *damageError says that it has lost
// some. It stores nothing.
func (h *Host) auditOnce(ctx context.Context, sid string, held *session.State) error {
	if !h.unverified(sid) {
		return nil
	}
	stored, err := audit.Read(ctx, h.world, sid)
	if err != nil {
		return err
	}
	if held != nil {
		stored.ExpectState(held)
	}
	result, err := audit.Session(ctx, h.world, h.installs.Pinned, sid, 0, stored, nil)
	if err != nil {
		return err
	}
	// If the fold panicked, the load comes upon the same, or stops before it.
	if d := result.Damage(); d != nil {
		return &damageError{d.Text}
	}
	h.setVerified(sid)
	return nil
}

// loadReleased loads a session that people have released, for its first event
// that is not done. If the log has lost events of it, they know that by now: it
// is read from the log's beginning, and goes on from what is there. informed is as
// for load.
func (h *Host) loadReleased(ctx context.Context, e session.Event, informed bool) (*actor, error) {
	err := h.auditOnce(ctx, e.Session, nil)
	var damage *damageError
	switch {
	case err == nil:
		return h.load(ctx, e, informed)
	case !errors.As(err, &damage):
		return nil, err
	}
	h.log.Warn("released session goes on without what the log has lost of it", "session", e.Session, "seq", e.Seq, "error", err)
	s := &actor{sid: e.Session, proven: true, accepted: true}
	if s.state, err = h.foldBefore(ctx, nil, e, false); err != nil {
		return nil, err
	}
	s.stored = s.state.Seq
	h.setVerified(e.Session)
	return s, nil
}

// void says why the log does not have an event that it delivered: its end was
// lost, and the lane begins anew; or it has a hole there, and that event is
// known to be lost.
func (h *Host) void(ctx context.Context, e session.Event) error {
	last, err := h.world.LastSeq(ctx)
	if err != nil {
		return err
	}
	if last < e.Seq {
		return errVoid
	}
	_, err = h.world.EventAt(ctx, e.Seq)
	switch {
	case err == nil:
		return errVoid // another one has its sequence
	case !errors.Is(err, natsio.ErrNotFound):
		return err
	}
	return &damageError{fmt.Sprintf("the event at %d was delivered: expected the event of the hash %s, found none there", e.Seq, session.LeafOf(e))}
}
