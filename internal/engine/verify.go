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

// verifyRest is how many times as long as it took to verify a snapshot a host
// verifies no other: at most a twentieth of one core goes into it.
const verifyRest = 19

// verifyWithin is how long refolding one session may take.
const verifyWithin = 5 * time.Minute

// sample is a snapshot that is to be compared with what the log folds to.
type sample struct {
	sid  string
	seq  uint64
	hash codec.Hash // of its state
	data []byte     // all of it
}

// chosen reports whether a snapshot is to be verified: chance decides, so that
// no session is always or never.
func (h *Host) chosen() bool { return h.opts.VerifyPart > 0 && rand.Float64() < h.opts.VerifyPart }

// sample has a snapshot verified, unless another one waits for that.
func (l *Lane) sample(p *sample) {
	switch {
	case !l.verifying:
		l.verifying = true
		l.do(&verification{outside: l.outside, sid: p.sid, of: p})
	case l.sampled == nil:
		l.sampled = p
	}
}

// verification compares a snapshot with what the log folds to, and rests after that.
type verification struct {
	outside
	sid string
	of  *sample // nil: the snapshot that is stored
}

func (w *verification) String() string { return "verifies " + w.sid }

func (w *verification) Do(ctx context.Context, tell func(Input)) {
	w.host.inTurn(ctx, func() {
		if wrong := w.auditSnapshot(ctx, w.sid, w.of); wrong != nil {
			tell(wrong)
		}
	})
	tell(w)
}

func (w *verification) step(l *Lane) {
	if w.of == nil {
		return // it was found wrong before, and is none of the samples
	}
	l.verifying = false
	if next := l.sampled; next != nil {
		l.sampled = nil
		l.sample(next)
	}
}

// inTurn has a session refolded when no other lane of the host has one, and none
// is for a while after that. It reports false if ctx has ended.
func (h *Host) inTurn(ctx context.Context, refold func()) bool {
	select {
	case h.verifying <- struct{}{}:
		defer func() { <-h.verifying }()
	case <-ctx.Done():
		return false
	}
	began := time.Now()
	refold()
	return pause(ctx, verifyRest*time.Since(began))
}

// snapshotError says that a snapshot is not what the session's events fold to.
type snapshotError struct {
	seq             uint64
	expected, found codec.Hash
	count           uint64    // events folded
	kept            codec.Ref // its bytes; zero: they are not kept yet
	lost            error     // why they are not kept
}

func (e *snapshotError) Error() string {
	said := fmt.Sprintf("the snapshot at %d is not what the log folds to: expected the state %s of %d events, found %s",
		e.seq, e.expected, e.count, e.found)
	switch {
	case e.lost != nil:
		said += fmt.Sprintf("; its bytes could not be kept: %v", e.lost)
	case !e.kept.IsZero():
		said += fmt.Sprintf("; its bytes are kept as blob %s", e.kept)
	}
	return said
}

// auditSnapshot compares a snapshot with what the log folds to: p, or that of sid
// which is stored. It returns what is wrong, nil if nothing is.
func (o outside) auditSnapshot(ctx context.Context, sid string, p *sample) *wrong {
	is, err := o.host.verify(ctx, sid, p)
	if err != nil && ctx.Err() == nil {
		o.log.Warn("snapshot not verified", "session", sid, "error", err)
	}
	return is
}

func (h *Host) verify(ctx context.Context, sid string, p *sample) (is *wrong, err error) {
	defer func() { err = recovered(recover(), err) }()
	if p == nil {
		data, found, err := h.world.GetSnapshot(ctx, sid)
		if err != nil || !found {
			return nil, err
		}
		snap, err := session.ParseSnapshot(data)
		if err != nil {
			return nil, err
		}
		p = &sample{sid: sid, seq: snap.Seq, hash: snap.Hash, data: data}
	}
	ctx, cancel := context.WithTimeout(ctx, verifyWithin)
	defer cancel()
	expected := &audit.Stored{}
	expected.ExpectSnapshot(sid, p.data)
	r, err := audit.Session(ctx, h.world, h.installs.Pinned, sid, p.seq, expected, nil)
	switch {
	case err != nil:
		return nil, err
	case r.Panicked:
		return nil, errors.New(r.Differences[0].Text)
	case r.SnapshotAt == 0:
		return nil, nil //nolint:nilnil // the log has not the event that it names: no load uses it
	}
	h.meters.comparedWith(r.Hash == p.hash)
	if r.Hash == p.hash {
		return nil, nil //nolint:nilnil // it is right
	}
	return &wrong{of: p, state: r.State, cause: &snapshotError{seq: p.seq, expected: r.Hash, found: p.hash, count: r.Events}}, nil
}

// wrong is a snapshot that is not what its session's events fold to. The session is
// quarantined, but not before the right snapshot is in its place: stopped, it would
// be released to the wrong one.
type wrong struct {
	of    *sample
	state *session.State // the right one
	cause *snapshotError
	held  *actor    // what was in memory when that was found
	tried bool      // held is known
	at    time.Time // it is tried again then
	seq   uint64    // from which on the session is stopped
}

// replaceEvery is how long after a right snapshot could not be put it is tried
// again.
const replaceEvery = 10 * time.Second

func (w *wrong) step(l *Lane) { l.replace(w) }

// replace puts the right snapshot in the place of a wrong one, and has the
// session's events wait for that. What is folded of it is stored first, and
// stays.
func (l *Lane) replace(w *wrong) {
	sid := w.of.sid
	if _, busy := l.parked[sid]; busy {
		l.later(w, 0)
		return
	}
	s := l.sessions[sid]
	if !w.tried {
		w.held, w.tried = s, true
	}
	if !l.owned() || s != nil && s.stop != nil {
		l.log.Warn("snapshot not verified", "session", sid, "error", fmt.Errorf("left to the lane's owner: %w", w.cause))
		return
	}
	w.seq = w.of.seq + 1
	if s != nil && s.state != nil {
		w.seq = max(w.seq, s.state.Seq+1)
		s.barred = true
	}
	l.occupy(sid)
	if p := l.captureOf(&actor{sid: sid, state: w.state}); p != nil {
		p.right = w
		l.put(p)
	} else {
		l.replaced(w, nil) // a fault of this program, which says so; stopped, the session does no harm
	}
}

// keep keeps the wrong snapshot's bytes when it is replaced, not before: a large
// one is a blob by the same name already, which goes with it. Should this process
// die in between, the next owner goes on from the right snapshot, and all that is
// lost is the evidence. The other way round it would go on from a state that never
// was. For the same reason a session is stopped even if its evidence can't be kept.
func (w *wrong) keep(ctx context.Context, h *Host) {
	ctx, cancel := context.WithTimeout(ctx, snapshotWithin)
	defer cancel()
	w.cause.kept, w.cause.lost = h.world.PutBlob(ctx, w.of.data)
}

// replaced stops a session whose right snapshot is in its place, or tries again
// later (err).
func (l *Lane) replaced(w *wrong, err error) {
	sid := w.of.sid
	if s := l.sessions[sid]; err == nil && (s == nil || s.stop == nil) {
		l.quarantine(session.Event{Session: sid, Seq: w.seq}, w.cause, nil)
		return
	}
	if err != nil {
		l.log.Warn("snapshot not verified", "session", sid, "seq", w.of.seq, "error", fmt.Errorf("the right snapshot is not put in its place: %w: %w", err, w.cause))
		l.later(w, replaceEvery)
	}
	l.free(sid)
}

// later tries again to replace a wrong snapshot.
func (l *Lane) later(w *wrong, after time.Duration) {
	w.at = l.now.Add(after)
	l.wrong = append(l.wrong, w)
}

// replaceAgain tries again what could not be done. While the session that is in
// memory is the one that was, nothing is folded again, since what the log folds to
// up to there does not change. Of another one, or none, the snapshot that is there
// by then decides.
func (l *Lane) replaceAgain() {
	all := l.wrong
	l.wrong = nil
	for _, w := range all {
		switch {
		case l.now.Before(w.at):
			l.wrong = append(l.wrong, w)
		case !l.owned():
			l.later(w, replaceEvery)
		case w.tried && (w.held == nil || l.sessions[w.of.sid] != w.held):
			l.do(&verification{outside: l.outside, sid: w.of.sid})
		default:
			l.replace(w)
		}
	}
}
