package client

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// Replayed is what folding a session's events again came to, and how it
// compares with what was stored when they were folded first.
type Replayed struct {
	Session  string     `json:"session"`
	Events   uint64     `json:"events"`   // folded
	Rejected int        `json:"rejected"` // of them
	Seq      uint64     `json:"seq"`      // of the last one
	Hash     codec.Hash `json:"hash"`
	Chain    codec.Hash `json:"chain"`

	EffectsSame uint64   `json:"effects_same"`          // effects whose stored bytes are those that the fold asks for
	EffectsGone uint64   `json:"effects_gone"`          // effects that are not stored: they are kept for about an hour, and a new one may come yet
	SnapshotAt  uint64   `json:"snapshot_at,omitempty"` // sequence of the snapshot that was compared; 0: none
	Differences []string `json:"differences,omitempty"` // what is not as it was stored; none: identical

	State *session.State `json:"-"` // as folded
}

// Identical reports whether nothing differs.
func (r *Replayed) Identical() bool { return len(r.Differences) == 0 }

// ErrNoSession says that the log holds no event of a session.
var ErrNoSession = errors.New("the log holds no event of this session")

// Replay folds a session's events from the first on, up to the sequence `to`
// (0: the newest), and compares with its effects, as far as they are still
// stored, and its snapshot. It writes nothing. each, if not nil, is called
// with every event and the state after it, which it must not keep. A session
// that goes on meanwhile differs for that in nothing.
func (c *Client) Replay(ctx context.Context, sid string, to uint64, each func(session.Event, *session.State)) (*Replayed, error) {
	// What is stored is read before the log: the events that it comes from are
	// in the log then.
	stored, err := c.stored(ctx, sid)
	if err != nil {
		return nil, err
	}
	last, err := c.bus.LastSeq(ctx)
	if err != nil {
		return nil, err
	}
	partial := to != 0 && to < last
	if !partial {
		to = last
	}
	var f *folding
	if to > 0 {
		for e, err := range c.bus.ReadSession(ctx, sid, 1, to, true) {
			if err != nil {
				return nil, fmt.Errorf("read session %s: %w", sid, err)
			}
			if f == nil {
				if f, err = c.folding(ctx, e); err != nil {
					return nil, err
				}
			}
			if err := f.fold(e, stored.snapshot); err != nil {
				return nil, err
			}
			if each != nil {
				each(e, f.state)
			}
		}
	}
	switch {
	case f == nil && partial:
		return nil, fmt.Errorf("%w up to %d", ErrNoSession, to)
	case f == nil:
		return nil, ErrNoSession
	}
	return c.compare(ctx, f, stored, partial)
}

// ReplayAll reads the whole log once, folds every session side by side, and
// calls done with each result, in the order in which the sessions began.
// Messages that are no events are counted in skipped. It holds all sessions'
// states in memory.
func (c *Client) ReplayAll(ctx context.Context, done func(*Replayed) error) (skipped int, err error) {
	bySession, order := map[string]*folding{}, []*folding(nil)
	skipped, err = c.bus.ReadAll(ctx, 1, func(e session.Event) error {
		if e.Session == "" {
			return nil
		}
		f := bySession[e.Session]
		if f == nil {
			var err error
			if f, err = c.folding(ctx, e); err != nil {
				return err
			}
			if f.snapshot, err = c.snapshot(ctx, e.Session); err != nil {
				return err
			}
			bySession[e.Session] = f
			order = append(order, f)
		}
		return f.fold(e, f.snapshot)
	})
	if err != nil {
		return skipped, err
	}
	for _, f := range order {
		replayed, err := c.verdict(ctx, f)
		if err != nil {
			return skipped, err
		}
		if err := done(replayed); err != nil {
			return skipped, err
		}
	}
	return skipped, nil
}

// verdict compares a session of a whole log's replay. One that differs is
// folded again by itself: it may have gone on since the log was read.
func (c *Client) verdict(ctx context.Context, f *folding) (*Replayed, error) {
	sid := f.result.Session
	stored, err := c.stored(ctx, sid)
	if err != nil {
		return nil, err
	}
	stored.snapshot = f.snapshot
	replayed, err := c.compare(ctx, f, stored, false)
	if err != nil || replayed.Identical() {
		return replayed, err
	}
	return c.Replay(ctx, sid, 0, nil)
}

// stored is what is kept of a session besides its events.
type stored struct {
	effects  map[string][]byte // payloads by name
	snapshot snapshot
	stopped  string // why the session is quarantined; empty: it is not
}

// snapshot is a session's snapshot, or why it can't be read. The zero value is
// none.
type snapshot struct {
	session.Snapshot
	found bool
	fault error
}

func (c *Client) stored(ctx context.Context, sid string) (s stored, err error) {
	if s.snapshot, err = c.snapshot(ctx, sid); err != nil {
		return s, err
	}
	why, stopped, err := c.bus.GetQuarantine(ctx, sid)
	if err != nil {
		return s, err
	}
	if stopped {
		s.stopped = string(why)
	}
	s.effects, err = c.effects(ctx, sid)
	return s, err
}

func (c *Client) effects(ctx context.Context, sid string) (map[string][]byte, error) {
	all, err := c.bus.ListEffects(ctx, sid)
	if err != nil {
		return nil, err
	}
	byName := make(map[string][]byte, len(all))
	for _, e := range all {
		byName[e.Name.Effect] = e.Payload
	}
	return byName, nil
}

func (c *Client) snapshot(ctx context.Context, sid string) (s snapshot, err error) {
	data, found, err := c.bus.GetSnapshot(ctx, sid)
	if err != nil || !found {
		return s, err
	}
	s.found = true
	s.Snapshot, s.fault = session.ParseSnapshot(data)
	return s, nil
}

// folding is a session being folded again.
type folding struct {
	state    *session.State
	asked    map[string]codec.Hash // payloads of the effects that the fold asked for
	names    []string              // of these, in the order of asking
	snapshot snapshot
	result   Replayed
}

// folding begins with the session's first event.
func (c *Client) folding(ctx context.Context, first session.Event) (*folding, error) {
	install, err := c.installs.Pinned(ctx, first.Seq)
	if err != nil {
		return nil, fmt.Errorf("session %s: %w", first.Session, err)
	}
	return &folding{
		state: session.New(install, first.Session), asked: map[string]codec.Hash{}, result: Replayed{Session: first.Session},
	}, nil
}

// fold folds one event and keeps what it asks for.
func (f *folding) fold(e session.Event, snap snapshot) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("session %s: the fold panicked at event %d: %v", e.Session, e.Seq, v)
		}
	}()
	if _, err := f.state.Evolve(e); err != nil {
		f.result.Rejected++
	}
	known := func(name string) bool {
		_, asked := f.asked[name]
		return asked
	}
	for _, effect := range f.state.OpenExcept(known) {
		f.asked[effect.Name] = codec.Sum(effect.Payload)
		f.names = append(f.names, effect.Name)
	}
	if snap.found && snap.fault == nil && snap.Seq == e.Seq {
		f.result.SnapshotAt = e.Seq
		if hash := f.state.Hash(); hash != snap.Hash {
			f.differ("snapshot at %d: its state is %s, the fold's is %s", e.Seq, snap.Hash, hash)
		}
	}
	return nil
}

// compare closes the account. Of a partial fold what was stored later is not
// missed.
func (c *Client) compare(ctx context.Context, f *folding, s stored, partial bool) (*Replayed, error) {
	r := &f.result
	r.State, r.Events, r.Seq, r.Hash, r.Chain = f.state, f.state.Count, f.state.Seq, f.state.Hash(), f.state.Chain
	held := s.effects
	for again := false; ; again = true {
		r.EffectsSame, r.EffectsGone = 0, 0
		for _, name := range f.names {
			if payload, found := held[name]; !found {
				r.EffectsGone++
			} else if codec.Sum(payload) == f.asked[name] {
				r.EffectsSame++
			}
		}
		if r.EffectsGone == 0 || again {
			break
		}
		// Those of the newest events may have been stored since.
		var err error
		if held, err = c.effects(ctx, r.Session); err != nil {
			return nil, err
		}
	}
	for _, name := range f.names {
		if payload, found := held[name]; found && codec.Sum(payload) != f.asked[name] {
			f.differ("effect %s: other bytes are stored (%d, %s) than the fold asks for (%s)", name, len(payload), codec.Sum(payload), f.asked[name])
		}
	}
	if partial {
		return r, nil
	}
	var strange []string
	for name := range s.effects {
		if _, asked := f.asked[name]; !asked {
			strange = append(strange, name)
		}
	}
	slices.Sort(strange)
	for _, name := range strange {
		f.differ("effect %s is stored, and the fold never asks for it", name)
	}
	switch {
	case s.snapshot.fault != nil:
		f.differ("%v", s.snapshot.fault)
	case s.snapshot.found && r.SnapshotAt == 0:
		f.differ("snapshot at %d: the session has no event there", s.snapshot.Seq)
	}
	if s.stopped != "" {
		f.differ("the session is quarantined: %s", s.stopped)
	}
	return r, nil
}

func (f *folding) differ(format string, args ...any) {
	f.result.Differences = append(f.result.Differences, fmt.Sprintf(format, args...))
}

// Folder returns a function that folds a session's events one after the other,
// from the first one on, and returns the state after each. The state is the
// function's: read it until the next call.
func (c *Client) Folder(sid string) func(context.Context, session.Event) (*session.State, error) {
	var state *session.State
	return func(ctx context.Context, e session.Event) (*session.State, error) {
		if state == nil {
			install, err := c.installs.Pinned(ctx, e.Seq)
			if err != nil {
				return nil, err
			}
			state = session.New(install, sid)
		}
		_, _ = state.Evolve(e) // a rejection is part of the history
		return state, nil
	}
}
