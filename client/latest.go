package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// foldedEvent is one event of a history with the notices of its fold.
type foldedEvent struct {
	session.Event
	active  uint32           // the run that was active before it; 0: none
	notices []session.Notice // about it
	after   *session.State   // valid until the next event
}

// rejected returns why the event had no effect, nil if the session accepted it.
func (t *foldedEvent) rejected() *RejectedError {
	for _, n := range t.notices {
		if d, ok := n.Data.(session.EventRejected); ok {
			return &RejectedError{Code: d.Code, Detail: d.Detail}
		}
	}
	return nil
}

// refold folds a session's events after state (nil: all of them) up to the
// sequence `to` (0: the newest), and calls each with every event until it returns
// false. It returns the last state, nil if there is none.
func (c *Client) refold(ctx context.Context, sid string, state *session.State, to uint64, each func(*foldedEvent) bool) (*session.State, error) {
	from := uint64(1)
	if state != nil {
		from = state.Seq + 1
	}
	return c.foldEach(ctx, state, c.bus.ReadSession(ctx, sid, from, to, true), each)
}

// foldEach folds events after state, and calls each with every event until it returns
// false. It returns the last state.
func (c *Client) foldEach(ctx context.Context, state *session.State, events iter.Seq2[session.Event, error], each func(*foldedEvent) bool) (*session.State, error) {
	for e, err := range events {
		if err != nil {
			return state, err
		}
		t, err := c.fold(ctx, state, e)
		if err != nil {
			return state, err
		}
		state = t.after
		if !each(&t) {
			break
		}
	}
	return state, nil
}

// begin returns the state of a session before its first event.
func (c *Client) begin(ctx context.Context, first session.Event) (*session.State, error) {
	install, err := c.installs.Pinned(ctx, first.Seq)
	if err != nil {
		return nil, fmt.Errorf("session %s: %w", first.Session, err)
	}
	return session.New(install, first.Session), nil
}

// fold folds the next event of a session, whose state is nil before the first one.
func (c *Client) fold(ctx context.Context, state *session.State, e session.Event) (t foldedEvent, err error) {
	if state == nil {
		if state, err = c.begin(ctx, e); err != nil {
			return t, err
		}
	}
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("session %s: the fold panicked at event %d: %v", e.Session, e.Seq, v)
		}
	}()
	t = foldedEvent{Event: e, after: state}
	if state.Run != nil {
		t.active = state.Run.Number
	}
	if err := state.Foldable(); err != nil {
		return t, err
	}
	t.notices, _ = state.Evolve(e) // a rejection is among the notices
	return t, nil
}

// snapshotBelow returns the state in the session's snapshot, if that is valid and
// its sequence is below the given one (0: any); else nil, and the caller folds
// the session from its first event.
func (c *Client) snapshotBelow(ctx context.Context, sid string, below uint64) (*session.State, error) {
	data, found, err := c.bus.GetSnapshot(ctx, sid)
	if err != nil || !found {
		return nil, err
	}
	snap, err := session.ParseSnapshot(data)
	if err != nil || below != 0 && snap.Seq >= below {
		return nil, nil
	}
	e, err := c.bus.EventAt(ctx, snap.Seq)
	if err != nil || e.Session != sid || session.LeafOf(e) != snap.Leaf {
		return nil, ctx.Err() // the snapshot is of a lost log
	}
	state, err := c.Restore(ctx, snap)
	if err != nil || state.Session != sid {
		return nil, ctx.Err()
	}
	return state, nil
}

type source struct {
	ctx context.Context
	c   *Client
}

// Restore returns the state of a snapshot of a session: what the session's events up to
// Snapshot.Seq fold to. It reads what the snapshot names, such as the install record.
// The caller owns the state.
func (c *Client) Restore(ctx context.Context, snap session.Snapshot) (*session.State, error) {
	return session.Restore(snap, source{ctx: ctx, c: c})
}

// Install returns the parsed install record with a hash.
func (s source) Install(hash codec.Hash) (*session.Install, error) {
	return s.c.installs.Named(s.ctx)(hash)
}

// Registry returns the registry that the event at seq set.
func (s source) Registry(seq uint64, _ codec.Hash) (*planner.Registry, error) {
	e, err := s.c.bus.EventAt(s.ctx, seq)
	if err != nil {
		return nil, err
	}
	return session.ParseRegistrySet(e)
}

// Space returns the manifest in the event at seq.
func (s source) Space(seq uint64, _ codec.Hash) (*space.Manifest, error) {
	e, err := s.c.bus.EventAt(s.ctx, seq)
	if err != nil {
		return nil, err
	}
	m, _, err := session.ParseSnapshotReady(e)
	return m, err
}

func (c *Client) latest(ctx context.Context, sid string) (*session.State, error) {
	state, err := c.snapshotBelow(ctx, sid, 0)
	if err == nil {
		state, err = c.refold(ctx, sid, state, 0, func(*foldedEvent) bool { return true })
	}
	if err == nil && state == nil {
		err = ErrNoSession
	}
	return state, err
}

// ViewNow returns the view after the session's latest event. It folds the log itself, from
// the session's snapshot: it needs no session-actor, and is never behind the log, as View
// may be for a moment. It has nothing of what session-actors and bridges report: unserved
// and troubles.
func (c *Client) ViewNow(ctx context.Context, sid string) (session.View, error) {
	state, err := c.latest(ctx, sid)
	if err != nil {
		return session.View{}, fmt.Errorf("view of session %s: %w", sid, err)
	}
	return state.View(), nil
}

func errNotThere(sid string, seq uint64) error {
	return fmt.Errorf("event %d: %w: it is of another session than %s, or of none", seq, ErrNoSession, sid)
}

// Taken returns the outcome of the event at seq, which every publishing method
// returns: the view after that event, a *RejectedError with the reason if the
// event had no effect, or a *QuarantinedError if the session stopped before it. If
// the event repeats another one, with the same id and content, Taken returns the
// outcome of that one, however old it is.
//
// Taken folds the log itself, from the session's snapshot, so it needs no
// session-actor. Effects that the event opens are published when a session-actor
// runs.
func (c *Client) Taken(ctx context.Context, sid string, seq uint64) (session.View, error) {
	if _, err := c.quarantineAfter(ctx, sid, seq); err != nil {
		return session.View{}, err
	}
	state, err := c.snapshotBelow(ctx, sid, seq)
	if err != nil {
		return session.View{}, err
	}
	var refused *RejectedError
	state, err = c.refold(ctx, sid, state, seq, func(t *foldedEvent) bool {
		if t.Seq == seq {
			refused = t.rejected()
		}
		return true
	})
	switch {
	case err != nil:
		return session.View{}, fmt.Errorf("outcome of event %d: %w", seq, err)
	case state == nil || state.Seq != seq:
		return session.View{}, errNotThere(sid, seq)
	case refused != nil && isRepeat(refused):
		first, err := c.repeated(ctx, sid, seq)
		if err != nil || first == 0 {
			return state.View(), cmp.Or(err, error(refused))
		}
		return c.Taken(ctx, sid, first)
	case refused != nil:
		return state.View(), refused
	}
	return state.View(), nil
}

// isUnfoldable reports whether this program can't fold a session that a
// session-actor may be able to fold, now or later.
func isUnfoldable(err error) bool {
	var unknown *session.UnknownRulesError
	return errors.As(err, &unknown) || errors.Is(err, journal.ErrNoInstall)
}
