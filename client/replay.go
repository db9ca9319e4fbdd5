package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// Replayed is what folding a session's events again came to, and how it
// compares with what was stored when they were folded first.
type Replayed struct {
	Session  string
	Events   uint64 // folded
	Rejected int    // of them
	Seq      uint64 // of the last one
	Hash     codec.Hash
	Chain    codec.Hash

	EffectsSame uint64   // effects whose stored bytes are those that the fold asks for
	EffectsGone uint64   // effects that are not stored any more: they are kept for about an hour
	SnapshotAt  uint64   // sequence of the snapshot that was compared; 0: none
	Differences []string // what is not as it was stored; none: identical

	State *session.State // as folded
}

// Identical reports whether nothing differs.
func (r *Replayed) Identical() bool { return len(r.Differences) == 0 }

// ErrNoSession says that the log holds no event of a session.
var ErrNoSession = errors.New("the log holds no event of this session")

// Replay folds a session's events from the first on, up to the sequence `to`
// (0: the newest), and compares with its effects, as far as they are still
// stored, and its snapshot. It writes nothing. each, if not nil, is called
// with every event and the state after it, which it must not keep.
func (c *Client) Replay(ctx context.Context, sid string, to uint64, each func(session.Event, *session.State)) (*Replayed, error) {
	last, err := c.bus.LastSeq(ctx)
	if err != nil {
		return nil, err
	}
	partial := to != 0 && to < last
	if to == 0 || to > last {
		to = last
	}
	installs := &installs{client: c}
	var f *folding
	if to > 0 {
		for e, err := range c.bus.ReadSession(ctx, sid, 1, to, true) {
			if err != nil {
				return nil, fmt.Errorf("read session %s: %w", sid, err)
			}
			if f == nil {
				if f, err = c.folding(ctx, installs, e); err != nil {
					return nil, err
				}
			}
			f.fold(e)
			if each != nil {
				each(e, f.state)
			}
		}
	}
	if f == nil {
		return nil, ErrNoSession
	}
	return f.end(partial), nil
}

// ReplayAll reads the whole log once, folds every session side by side, and
// calls done with each result, in the order in which the sessions began.
// Messages that are no events are counted in skipped.
func (c *Client) ReplayAll(ctx context.Context, done func(*Replayed) error) (skipped int, err error) {
	installs := &installs{client: c}
	bySession, order := map[string]*folding{}, []*folding(nil)
	skipped, err = c.bus.ReadAll(ctx, 1, func(e session.Event) error {
		if e.Session == "" {
			return nil
		}
		f := bySession[e.Session]
		if f == nil {
			var err error
			if f, err = c.folding(ctx, installs, e); err != nil {
				return err
			}
			bySession[e.Session] = f
			order = append(order, f)
		}
		f.fold(e)
		return nil
	})
	if err != nil {
		return skipped, err
	}
	for _, f := range order {
		if err := done(f.end(false)); err != nil {
			return skipped, err
		}
	}
	return skipped, nil
}

// folding is a session being folded again, beside what was stored of it.
type folding struct {
	state    *session.State
	stored   map[string][]byte // effects by name, as they are stored
	asked    map[string]bool   // effects that the fold asked for
	snapshot *session.Snapshot
	result   Replayed
}

// folding begins with the session's first event.
func (c *Client) folding(ctx context.Context, in *installs, first session.Event) (*folding, error) {
	sid := first.Session
	install, err := in.before(ctx, first.Seq)
	if err != nil {
		return nil, fmt.Errorf("session %s: %w", sid, err)
	}
	f := &folding{
		state: session.New(install, sid), stored: map[string][]byte{}, asked: map[string]bool{}, result: Replayed{Session: sid},
	}
	effects, err := c.bus.ListEffects(ctx, sid)
	if err != nil {
		return nil, err
	}
	for _, e := range effects {
		f.stored[e.Name.Effect] = e.Payload
	}
	data, found, err := c.bus.GetSnapshot(ctx, sid)
	if err != nil {
		return nil, err
	}
	if found {
		snap, err := session.ParseSnapshot(data)
		if err != nil {
			f.differ("%v", err)
		} else {
			f.snapshot = &snap
		}
	}
	return f, nil
}

// fold folds one event and compares what it asks for.
func (f *folding) fold(e session.Event) {
	if _, err := f.state.Evolve(e); err != nil {
		f.result.Rejected++
	}
	for _, effect := range f.state.OpenExcept(func(name string) bool { return f.asked[name] }) {
		f.asked[effect.Name] = true
		stored, found := f.stored[effect.Name]
		switch {
		case !found:
			f.result.EffectsGone++
		case bytes.Equal(stored, effect.Payload):
			f.result.EffectsSame++
		default:
			f.differ("effect %s: %d bytes are stored, the fold asks for %d others", effect.Name, len(stored), len(effect.Payload))
		}
	}
	if f.snapshot == nil || f.snapshot.Seq != e.Seq {
		return
	}
	f.result.SnapshotAt = e.Seq
	if hash := f.state.Hash(); hash != f.snapshot.Hash {
		f.differ("snapshot at %d: its state is %s, the fold's is %s", e.Seq, f.snapshot.Hash, hash)
	}
}

// end closes the account. Of a partial fold the effects asked later are not
// missed.
func (f *folding) end(partial bool) *Replayed {
	r := &f.result
	r.State, r.Events, r.Seq, r.Hash, r.Chain = f.state, f.state.Count, f.state.Seq, f.state.Hash(), f.state.Chain
	if partial {
		return r
	}
	for name := range f.stored {
		if !f.asked[name] {
			f.differ("effect %s is stored, and the fold never asks for it", name)
		}
	}
	if f.snapshot != nil && r.SnapshotAt == 0 {
		f.differ("snapshot at %d: the session has no event there", f.snapshot.Seq)
	}
	return r
}

func (f *folding) differ(format string, args ...any) {
	f.result.Differences = append(f.result.Differences, fmt.Sprintf(format, args...))
}

// installs finds the install record that a session pinned.
type installs struct {
	client *Client
	parsed map[uint64]*session.Install // by sequence; nil: can't be pinned
}

// before returns what a session pins whose first event is at seq: the newest
// record before it that can be pinned, else the oldest.
func (in *installs) before(ctx context.Context, seq uint64) (*session.Install, error) {
	if in.parsed == nil {
		in.parsed = map[uint64]*session.Install{}
	}
	if install, _, err := in.walk(ctx, seq); install != nil || err != nil {
		return install, err
	}
	// None before it: the oldest of all.
	_, oldest, err := in.walk(ctx, math.MaxUint64)
	if err == nil && oldest == nil {
		err = errors.New("the log holds no install record that can be pinned")
	}
	return oldest, err
}

// walk goes back from seq. It returns the first record that can be pinned and
// lies before seq, and the last one that it saw on its way to the oldest.
func (in *installs) walk(ctx context.Context, seq uint64) (newest, oldest *session.Install, err error) {
	for before := seq; ; {
		e, found, err := in.client.bus.InstallBefore(ctx, before)
		if err != nil || !found {
			return nil, oldest, err
		}
		install, known := in.parsed[e.Seq]
		if !known {
			if install, err = session.ParseInstall(e.Payload); err != nil {
				var unknown *session.UnknownRulesError
				if errors.As(err, &unknown) {
					return nil, nil, err
				}
				install = nil
			}
			in.parsed[e.Seq] = install
		}
		if install != nil {
			oldest = install
			if e.Seq < seq && seq != math.MaxUint64 {
				return install, install, nil
			}
		}
		if e.Seq >= before {
			return nil, oldest, nil
		}
		before = e.Seq
	}
}

// Folder returns a function that folds a session's events one after the other,
// from the first one on, and returns the state after each. The state is the
// function's: read it until the next call.
func (c *Client) Folder(sid string) func(context.Context, session.Event) (*session.State, error) {
	var state *session.State
	return func(ctx context.Context, e session.Event) (*session.State, error) {
		if state == nil {
			install, err := (&installs{client: c}).before(ctx, e.Seq)
			if err != nil {
				return nil, err
			}
			state = session.New(install, sid)
		}
		_, _ = state.Evolve(e) // a rejection is part of the history
		return state, nil
	}
}
