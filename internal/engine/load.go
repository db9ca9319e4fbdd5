package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
)

// loadTries is how often the log is read for one delivered event.
const loadTries = 3

var (
	// errIncomplete says that a read ended before the event that caused it:
	// the replica that answered is behind.
	errIncomplete = errors.New("the log read does not include the delivered event")
	// errVoid says that the log lost an event after it was delivered.
	errVoid = errors.New("the log does not have the delivered event any more")
	// errRewritten says that the log has no event, or another one, where the
	// one stood that a state was folded up to.
	errRewritten = errors.New("the log does not have the folded event any more")
)

// load returns the session as it stands before e, or as its snapshot has it if
// that is at or past e. It emits nothing. informed says that the session is in
// no quarantine, and that all install records before e are known.
func (h *Host) load(ctx context.Context, e session.Event, informed bool) (s *actor, err error) {
	var stop *Stop
	if !informed {
		if stop, err = h.stopOf(ctx, e.Session); err != nil {
			return nil, err
		}
	}
	began, from := time.Now(), "log"
	defer func() {
		if err == nil && !s.stops(e.Seq) {
			h.meters.loaded(from, time.Since(began))
		}
	}()
	s = &actor{sid: e.Session, stop: stop, proven: true}
	if s.stops(e.Seq) {
		return s, nil
	}
	if err := h.auditOnce(ctx, e.Session, nil); err != nil {
		return nil, err
	}
	kept, err := h.restore(ctx, e, s.stop)
	defer kept.end()
	if err != nil {
		return nil, err
	}
	if kept != nil {
		from = "snapshot"
		s.state = kept.state
		s.snapped = s.state.Count
		s.loaded = kept.sample
	}
	if s.state == nil || s.state.Seq < e.Seq {
		if s.state, err = h.goOn(ctx, kept, e, informed); err != nil {
			return nil, err
		}
	}
	if informed && mayBegin(e) { // else it is not looked for new sessions
		h.olds.Store(s.state.Count > 0)
	}
	switch {
	case kept != nil && kept.void:
		s.snapped, s.loaded, from = 0, nil, "log"
	case s.state.Count == 0:
		from = "new"
	}
	s.stored = s.state.Seq
	return s, nil
}

// goOn folds a session from what its snapshot has (nil: from its beginning) to
// the event before e. Whether the log has the event that the snapshot names is
// looked up by its sequence, and what lies behind it is read from there on (see
// behind): a read by subject that begins at that event makes the server load its
// block of the log, and search it, twice.
func (h *Host) goOn(ctx context.Context, kept *restored, e session.Event, informed bool) (*session.State, error) {
	if kept == nil {
		return h.foldBefore(ctx, nil, nil, e, informed)
	}
	read := kept.behind
	named, err := read.first()
	if err != nil || named.Session != e.Session || session.LeafOf(named) != kept.leaf {
		// The log was rewritten, or something is in the way: the leader tells.
		counts, err := h.counts(ctx, e.Session, kept)
		switch {
		case err != nil:
			return nil, err
		case !counts:
			kept.void = true
			return h.foldBefore(ctx, nil, nil, e, informed)
		}
		read = nil // by a replica that is behind, or does not answer
	}
	return h.foldBefore(ctx, kept.state, read, e, informed)
}

// prove makes sure that the log still has what a session was folded up to, and
// folds what lies between that and e: below the lane's ack floor, so it is stored
// and nothing is emitted. It returns the quarantine of the session, too. After an
// error the state is of no use.
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
		state, err = h.foldBefore(ctx, state, nil, e, false)
	}
	return state, stop, err
}

// has reports whether the log's event at seq is the session's one with this
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

// foldBefore folds the session's events after state (nil: all) up to the one
// before e. That must be among those read, or they must be as many as the
// session has: a replica that is behind is not believed. read has begun to read them; nil: nobody has.
func (h *Host) foldBefore(ctx context.Context, state *session.State, read *behind, e session.Event, informed bool) (*session.State, error) {
	var err error
	for try := range loadTries {
		// What a try folded stays folded; the next one reads the rest.
		if try == 0 && read != nil {
			state, err = h.foldRead(ctx, e.Session, state, e.Seq, read.rest(), informed)
			if errors.Is(err, errIncomplete) && read.isWhole() {
				return state, nil
			}
		} else {
			state, err = h.foldTo(ctx, e.Session, state, e.Seq, try > 0, informed)
		}
		if !errors.Is(err, errIncomplete) {
			return state, err
		}
	}
	has, lookErr := h.has(ctx, e.Session, e.Seq, session.LeafOf(e))
	switch {
	case lookErr != nil:
		return nil, lookErr
	case !has:
		return nil, h.void(ctx, e)
	}
	return nil, err
}

// foldTo folds the session's events after state up to the one before seq. The
// event at seq must be among those read, or the read was incomplete.
func (h *Host) foldTo(ctx context.Context, sid string, state *session.State, seq uint64, leader, informed bool) (*session.State, error) {
	from := uint64(1)
	if state != nil {
		from = state.Seq + 1
	}
	return h.foldRead(ctx, sid, state, seq, h.world.ReadSession(ctx, sid, from, seq, leader), informed)
}

// foldRead is foldTo with the events as they are read.
func (h *Host) foldRead(ctx context.Context, sid string, state *session.State, seq uint64, events iter.Seq2[session.Event, error], informed bool) (*session.State, error) {
	for e, err := range events {
		if err != nil {
			return state, fmt.Errorf("read session %s up to %d: %w", sid, seq, err)
		}
		if state == nil {
			install, err := h.pinned(ctx, e.Seq, informed)
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
func (h *Host) pinned(ctx context.Context, seq uint64, informed bool) (*session.Install, error) {
	if informed {
		// None that can be pinned: the lane waits for one, which it can't be
		// told of before this event is folded.
		if install, err := h.installs.Known(seq); !errors.Is(err, journal.ErrNoInstall) {
			return install, err
		}
	}
	return h.installs.Pinned(ctx, seq)
}

// restored is the state of a snapshot, whose place in the log may not have been
// looked at.
type restored struct {
	state  *session.State
	seq    uint64 // of the event that it names
	leaf   codec.Hash
	sample *sample // nil: it is not to be verified
	void   bool    // the log has another event there, or none: it does not count
	behind *behind // reads what the log has from there on; nil: nobody asks
}

// end ends what reads beside; nil is fine.
func (r *restored) end() {
	if r != nil {
		r.behind.end()
	}
}

// fromSnapshot returns the state of the session's snapshot, nil if there is
// none that counts.
func (h *Host) fromSnapshot(ctx context.Context, sid string, stop *Stop) (*session.State, error) {
	kept, err := h.restore(ctx, session.Event{Session: sid}, stop)
	if kept == nil {
		return nil, err
	}
	return kept.state, err
}

// restore returns the snapshot of before's session, nil if there is none that
// counts. If it is of an event before that one, whether the log has the event that
// the snapshot names is for who reads on from there to see: from that event up to
// that one the log is read while the snapshot is restored.
func (h *Host) restore(ctx context.Context, before session.Event, stop *Stop) (kept *restored, err error) {
	sid := before.Session
	last := h.lookForLast(ctx, before)
	var read *behind
	defer func() {
		switch {
		case read == nil:
			last.end()
		case kept == nil:
			read.end() // nobody needs it
		}
	}()
	data, found, err := h.world.GetSnapshot(ctx, sid)
	if err != nil {
		return nil, fmt.Errorf("read the snapshot of %s: %w", sid, err)
	}
	if before.Seq > 0 {
		h.bare.Store(!found)
	}
	if !found {
		return nil, nil //nolint:nilnil // there is none
	}
	if seq, ok := session.SnapshotSeq(data); ok && seq < before.Seq {
		read = h.readBehind(ctx, seq, before, last)
		runtime.Gosched() // it asks before this computes: nobody else may run what it just began
	}
	ignore := func(why error) (*restored, error) {
		h.log.Warn("snapshot ignored", "session", sid, "error", why)
		return nil, nil //nolint:nilnil // it does not count
	}
	snap, err := session.ParseSnapshot(data)
	if err != nil {
		return ignore(err)
	}
	if stop != nil && snap.Seq >= stop.Seq {
		return ignore(fmt.Errorf("it is at %d, and the session stopped at %d", snap.Seq, stop.Seq))
	}
	is := &restored{seq: snap.Seq, leaf: snap.Leaf, behind: read}
	if snap.Seq >= before.Seq {
		counts, err := h.counts(ctx, sid, is)
		if err != nil || !counts {
			return nil, err
		}
	}
	is.state, err = session.Restore(snap, content{ctx: ctx, h: h, sid: sid})
	var unknown *session.UnknownRulesError
	switch {
	case errors.As(err, &unknown), errors.Is(err, errUnread):
		return nil, err
	case err != nil:
		return ignore(err)
	case is.state.Session != sid:
		return ignore(fmt.Errorf("it is of session %s", is.state.Session))
	}
	read.has(is.state.Count)
	if h.chosen() {
		is.sample = &sample{sid: sid, seq: snap.Seq, hash: snap.Hash, data: data}
	}
	return is, nil
}

// counts reports whether the log's event at a snapshot's sequence is the one that
// it names.
func (h *Host) counts(ctx context.Context, sid string, kept *restored) (bool, error) {
	has, err := h.has(ctx, sid, kept.seq, kept.leaf)
	if err != nil || has {
		return err == nil, err
	}
	h.log.Warn("snapshot ignored", "session", sid, "error", fmt.Sprintf("the log has not the event at %d that it names", kept.seq))
	return false, nil
}
