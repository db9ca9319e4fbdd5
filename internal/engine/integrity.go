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

// integrity records whether the log has lost events, which nothing deletes, and
// which sessions are verified to have lost none. A snapshot may hold events that
// the log has lost since, so a load from it would not notice the loss. While the
// log has holes, each session is read once from the log's beginning and compared
// with what is stored of it.
type integrity struct {
	mu      sync.Mutex
	missing uint64          // sequences without an event, by the log's last answer
	sound   map[string]bool // verified since that number changed
}

// soundMax is how many verified sessions are remembered. Beyond it all are
// forgotten, and verified again at their next load.
const soundMax = 1 << 18

// checkIntegrity checks whether the log has lost events, and logs a change once. If
// the server does not answer, the last result stands.
func (h *Host) checkIntegrity(ctx context.Context) {
	missing, err := h.world.LogMissing(ctx)
	if err != nil {
		if ctx.Err() == nil {
			h.log.Warn("log not checked for lost events", "error", err)
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

// setVerified records that a session has lost no events.
func (h *Host) setVerified(sid string) {
	i := &h.integrity
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.sound == nil || len(i.sound) >= soundMax {
		i.sound = map[string]bool{}
	}
	i.sound[sid] = true
}

// damageError reports that a session's events in the log are not those that it was
// folded from: the session is quarantined.
type damageError struct {
	what string
	seq  uint64 // of the event at which it shows
}

func (e *damageError) Error() string { return "the log is not what it was: " + e.what }

// stopsSession reports whether an error of a load quarantines the session. Its lane
// then goes on.
func stopsSession(err error) bool {
	if err == nil {
		return false // the common case: below, the error variables are allocated
	}
	var damage *damageError
	var isolated *isolatedError
	return isPanic(err) || errors.As(err, &damage) || errors.As(err, &isolated)
}

// auditOnce audits a session that may have lost events: it compares the log with
// what is stored, and with the state in memory (nil: none). It returns a
// *damageError if events are lost or changed. It stores nothing.
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
	// If the fold panicked, the load will panic too, or stop before that event.
	if _, err = h.audit(ctx, sid, stored); err == nil {
		h.setVerified(sid)
	}
	return err
}

// audit compares the log with what is stored of a session. It returns a
// *damageError if that differs, beside the result. It stores nothing.
func (h *Host) audit(ctx context.Context, sid string, stored *audit.Stored) (*audit.Result, error) {
	r, err := audit.Session(ctx, h.world, h.installs.Pinned, sid, 0, stored, nil)
	if err != nil {
		return nil, err
	}
	if d := r.Damage(); d != nil {
		return r, &damageError{d.Text, d.Seq}
	}
	return r, nil
}

// loadReleased loads a session for its first event that is not done, after people
// have released it. It is folded from the log's beginning: its snapshot may be what
// was wrong. If the log has lost events, it goes on from what is there. A session
// that was stopped because its work failed is loaded like any other.
func (h *Host) loadReleased(ctx context.Context, e session.Event, stop *Stop) (s *actor, err error) {
	if stop.Retried {
		return h.load(ctx, e, true)
	}
	s = &actor{sid: e.Session, proven: true}
	if !stop.StaysStored() { // another owner may have stopped it again
		if s.stop, err = h.stopOf(ctx, e.Session); err != nil {
			return nil, err
		}
		if s.isStopped(e.Seq) {
			return s, nil
		}
	}
	if s.state, err = h.foldBefore(ctx, nil, e, stop.StaysStored()); err != nil {
		return nil, err
	}
	s.refolded = true
	s.stored = s.state.Seq
	h.setVerified(e.Session)
	return s, nil
}

// missing returns why the log does not have a delivered event. If the log lost its
// end, it returns errVoid, and a new epoch follows. If the log has a hole there,
// the event is lost, and it returns a *damageError.
func (h *Host) missing(ctx context.Context, e session.Event) error {
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
		return errVoid // the sequence was reused
	case !errors.Is(err, natsio.ErrNotFound):
		return err
	}
	return &damageError{fmt.Sprintf("the event at %d was delivered: expected the event of the hash %s, found none there", e.Seq, session.LeafOf(e)), e.Seq}
}
