package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/audit"
)

// verifyRest is how long a host rests after a verification, as a multiple of the
// time that it took: verification uses at most a twentieth of one core.
const verifyRest = 19

// verifyWithin is how long refolding one session may take.
const verifyWithin = 5 * time.Minute

// shouldVerify reports whether a snapshot should be verified. The choice is random,
// so that every session is verified at some time.
func (h *Host) shouldVerify() bool {
	return h.opts.VerifyPart > 0 && rand.Float64() < h.opts.VerifyPart
}

// verify starts the verification of a snapshot, unless the lane verifies another
// one.
func (l *Lane) verify(sid string, snapshot []byte) {
	if !l.verifying {
		l.verifying = true
		l.do(&verification{outside: l.outside, sid: sid, snapshot: snapshot})
	}
}

// verification compares a snapshot with what the log folds to.
type verification struct {
	outside
	sid      string
	snapshot []byte // nil: the stored one
}

func (w *verification) String() string { return "verifies " + w.sid }

func (w *verification) Do(ctx context.Context, report func(Input)) {
	w.inTurn(ctx, report)
	report(w)
}

func (w *verification) step(l *Lane) {
	if w.snapshot != nil {
		l.verifying = false
	}
}

// inTurn compares while no other lane of the host does, reports a mismatch, and then
// rests before the next one may begin. It returns false if ctx has ended.
func (w *verification) inTurn(ctx context.Context, report func(Input)) bool {
	select {
	case w.host.verifying <- struct{}{}:
		defer func() { <-w.host.verifying }()
	case <-ctx.Done():
		return false
	}
	began := time.Now()
	is, err := w.host.verify(ctx, w.sid, w.snapshot)
	switch {
	case err != nil && ctx.Err() == nil:
		w.log.Warn("snapshot not verified", "session", w.sid, "error", err)
	case is != nil:
		report(is)
	}
	return pause(ctx, verifyRest*time.Since(began))
}

// snapshotError reports that a snapshot is not what the session's events fold to.
type snapshotError struct {
	seq             uint64
	expected, found codec.Hash
	count           uint64    // events folded
	kept            codec.Ref // blob of its bytes; zero: not stored yet
	lost            error     // why its bytes are not stored
}

func (e *snapshotError) Error() string {
	text := fmt.Sprintf("the snapshot at %d is not what the log folds to: expected the state %s of %d events, found %s",
		e.seq, e.expected, e.count, e.found)
	switch {
	case e.lost != nil:
		text += fmt.Sprintf("; its bytes could not be kept: %v", e.lost)
	case !e.kept.IsZero():
		text += fmt.Sprintf("; its bytes are kept as blob %s", e.kept)
	}
	return text
}

// verify compares a snapshot with what the log folds to: data, or the stored
// snapshot if data is nil. It returns a mismatch, or nil if there is none.
func (h *Host) verify(ctx context.Context, sid string, data []byte) (is *mismatch, err error) {
	defer func() { err = recovered(recover(), err) }()
	if data == nil {
		var found bool
		if data, found, err = h.world.GetSnapshot(ctx, sid); err != nil || !found {
			return nil, err
		}
	}
	snap, err := session.ParseSnapshot(data)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, verifyWithin)
	defer cancel()
	expected := &audit.Stored{}
	expected.ExpectSnapshot(sid, data)
	r, err := audit.Session(ctx, h.world, h.installs.Pinned, sid, snap.Seq, expected, nil)
	switch {
	case err != nil:
		return nil, err
	case r.Panicked:
		return nil, errors.New(r.Differences[0].Text)
	case r.SnapshotAt == 0:
		return nil, nil //nolint:nilnil // the log does not have the event that it names: no load uses it
	}
	h.meters.ended(h.meters.compared, r.Hash == snap.Hash, "same", "different")
	if r.Hash == snap.Hash {
		return nil, nil //nolint:nilnil // it is right
	}
	return &mismatch{sid: sid, data: data, state: r.State, cause: &snapshotError{seq: snap.Seq, expected: r.Hash, found: snap.Hash, count: r.Events}}, nil
}

// mismatch is a snapshot that is not what its session's events fold to. The right one
// replaces it before the session is quarantined: a release goes on from the stored
// snapshot.
type mismatch struct {
	sid   string
	data  []byte         // the snapshot
	state *session.State // the right one
	cause *snapshotError
	held  *actor    // the actor in memory at the first try; nil: none
	tried bool      // held is set
	at    time.Time // time of the next try
}

// replaceEvery is the time between two tries to store the right snapshot.
const replaceEvery = 10 * time.Second

func (w *mismatch) step(l *Lane) {
	if s := l.sessions[w.sid]; !l.owned() || s != nil && s.stop != nil {
		l.log.Warn("snapshot not verified", "session", w.sid, "error", fmt.Errorf("left to the lane's owner: %w", w.cause))
		return
	}
	l.replace(w)
}

// replace replaces a wrong snapshot with the right one, and parks the session's
// events meanwhile. Events that are already folded stay folded and are stored
// first. A queued snapshot of the session is as wrong and is dropped: stored later,
// it would replace the right one.
func (l *Lane) replace(w *mismatch) {
	sid, seq := w.sid, w.cause.seq+1
	s := l.sessions[sid]
	if s != nil && s.stop != nil {
		return
	}
	if s != nil && s.state != nil {
		seq = max(seq, s.state.Seq+1)
		s.barred = true
	}
	l.snapshots.drop(sid)
	if _, busy := l.parked[sid]; busy || l.snapshots.under[sid] {
		l.mismatches = append(l.mismatches, w)
		return
	}
	if !w.tried {
		w.held, w.tried = s, true
	}
	l.occupy(sid)
	l.do(&replacement{outside: l.outside, mismatch: w, seq: seq})
}

// replaceAgain retries. If the session in memory is still the same, nothing is
// folded again, since the log still folds to the same state up to there. Otherwise
// the snapshot that is stored by now is verified.
func (l *Lane) replaceAgain() {
	all := l.mismatches
	l.mismatches = nil
	for _, w := range all {
		switch {
		case l.now.Before(w.at) || !l.owned():
			l.mismatches = append(l.mismatches, w)
		case w.tried && (w.held == nil || l.sessions[w.sid] != w.held):
			l.do(&verification{outside: l.outside, sid: w.sid})
		default:
			l.replace(w)
		}
	}
}

// replacement stores the right snapshot in the place of a wrong one.
type replacement struct {
	outside
	*mismatch
	seq uint64 // the session is stopped from this event on
	err error
}

func (w *replacement) String() string { return "replaces the snapshot of " + w.sid }

// Do stores the wrong snapshot's bytes as evidence after it is replaced, not
// before: a large snapshot is already a blob of the same name, which the
// replacement deletes. If this process dies in between, only the evidence is lost,
// and the next owner goes on from the right snapshot. In the other order it would
// go on from a state that never was. For the same reason a session is stopped even
// if its evidence can't be stored.
func (w *replacement) Do(ctx context.Context, report func(Input)) {
	defer func() { report(w) }()
	data, err := snapshotOf(w.state)
	if err != nil {
		w.log.Error("snapshot not taken", "session", w.sid, "error", err)
		return // a fault of this program; the session is still stopped
	}
	within, cancel := context.WithTimeout(ctx, snapshotWithin)
	defer cancel()
	if w.err = w.host.world.PutSnapshot(within, w.sid, w.state.Seq, data); w.err != nil {
		return
	}
	within, cancelBlob := context.WithTimeout(ctx, snapshotWithin)
	defer cancelBlob()
	w.cause.kept, w.cause.lost = w.host.world.PutBlob(within, w.data)
}

func (w *replacement) step(l *Lane) {
	sid := w.sid
	if s := l.sessions[sid]; w.err == nil && (s == nil || s.stop == nil) {
		l.quarantine(session.Event{Session: sid, Seq: w.seq}, w.cause, nil)
		return
	}
	if w.err != nil {
		l.log.Warn("snapshot not verified", "session", sid, "seq", w.cause.seq,
			"error", fmt.Errorf("the right snapshot is not put in its place: %w: %w", w.err, w.cause))
		w.at = l.now.Add(replaceEvery)
		l.mismatches = append(l.mismatches, w.mismatch)
	}
	l.free(sid)
}
