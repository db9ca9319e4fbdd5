package host

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
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

// sample has a snapshot verified beside the lane (nil: none), unless another one
// waits for that.
func (l *laneActor) sample(p *sample) {
	if p == nil {
		return
	}
	select {
	case l.samples <- *p:
	default:
	}
}

// verifies verifies samples until ctx ends, one at a time of all lanes of the
// host.
func (l *laneActor) verifies(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case p := <-l.samples:
			l.inTurn(ctx, func() {
				if err := l.verify(ctx, p); err != nil && ctx.Err() == nil {
					l.log.Warn("snapshot not verified", "session", p.sid, "seq", p.seq, "error", err)
				}
			})
		}
	}
}

// inTurn has a session refolded when no other lane of the host has one, and none
// is for a while after that. It reports false if ctx has ended.
func (l *laneActor) inTurn(ctx context.Context, refold func()) bool {
	select {
	case l.host.verifying <- struct{}{}:
		defer func() { <-l.host.verifying }()
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

// verify folds a session from the log's beginning up to the sample, and
// compares. A difference quarantines the session.
func (l *laneActor) verify(ctx context.Context, p sample) error {
	folding, cancel := context.WithTimeout(ctx, verifyWithin)
	defer cancel()
	state, err := l.host.refold(folding, p.sid, p.seq)
	if err != nil {
		return err
	}
	if state == nil || state.Seq != p.seq {
		return nil // the log has not the event that it names: no load uses it
	}
	cause := &snapshotError{seq: p.seq, expected: state.Hash(), found: p.hash, count: state.Count}
	l.host.meters.comparedWith(cause.expected == cause.found)
	if cause.expected == cause.found {
		return nil
	}
	var held *actor
	l.inside(ctx, func() {
		held = l.sessions[p.sid]
		err = l.quarantineWrong(ctx, p, state, cause)
	})
	if errors.Is(err, errNotReplaced) {
		l.beside.Go(func() { l.quarantineLater(ctx, p, held, state, cause) })
	}
	return err
}

// refold returns a session as it is after the event at seq, by the log alone.
func (h *Host) refold(ctx context.Context, sid string, seq uint64) (*session.State, error) {
	// The event behind it may not have come, so the read may end incomplete.
	state, err := h.foldTo(ctx, sid, nil, seq+1, true, false)
	if errors.Is(err, errIncomplete) {
		err = nil
	}
	return state, err
}

// errNotReplaced says that a session whose snapshot is wrong goes on for now:
// stopped, it would be released to that snapshot.
var errNotReplaced = errors.New("the right snapshot could not be put in place of a wrong one, so the session is not stopped yet; it is tried again")

// quarantineAgain is how long after a right snapshot could not be put it is tried
// again.
const quarantineAgain = 10 * time.Second

// quarantineLater quarantines a session as soon as the lane is owned and the right
// snapshot can be put. While the session that is in memory is the one that was
// (held), nothing is folded again, since what the log folds to up to there does
// not change, and nobody's turn to verify is taken. Of another one, or none, the
// snapshot that is there by then decides.
func (l *laneActor) quarantineLater(ctx context.Context, p sample, held *actor, right *session.State, cause *snapshotError) {
	for pause(ctx, quarantineAgain) {
		err, other := errNotReplaced, false
		l.inside(ctx, func() {
			switch {
			case !l.lane.Owned():
			case held == nil || l.sessions[p.sid] != held:
				other = true
			default:
				err = l.quarantineWrong(ctx, p, right, cause)
			}
		})
		switch {
		case other:
			l.inTurn(ctx, func() { l.examine(ctx, p.sid) })
			return
		case !errors.Is(err, errNotReplaced):
			return
		case ctx.Err() == nil:
			l.log.Warn("snapshot not verified", "session", p.sid, "seq", p.seq, "error", err)
		}
	}
}

// quarantineWrong stops a session whose snapshot is wrong, behind all that was folded of
// it. The right one takes the snapshot's place first: released, the session goes
// on from what the log says. Called between two batches.
//
// The wrong one's bytes are kept when it is replaced, not before: a large one is
// a blob by the same name already, which goes with it. Should this process die in
// between, the next owner goes on from the right snapshot, and all that is lost is
// the evidence. The other way round it would go on from a state that never was.
// For the same reason a session is stopped even if its evidence can't be kept.
func (l *laneActor) quarantineWrong(ctx context.Context, p sample, right *session.State, cause *snapshotError) error {
	s := l.sessions[p.sid]
	if !l.lane.Owned() || s != nil && s.stop != nil {
		return fmt.Errorf("left to the lane's owner: %w", cause)
	}
	seq := p.seq + 1
	if s != nil && s.state != nil {
		seq = max(seq, s.state.Seq+1)
	}
	l.snapshots.bar(s)
	if err := l.replace(ctx, &actor{sid: p.sid, state: right}); err != nil {
		return fmt.Errorf("%w: %w: %w", errNotReplaced, err, cause)
	}
	keeping, cancel := context.WithTimeout(ctx, snapshotWithin)
	defer cancel()
	because := *cause
	because.kept, because.lost = l.host.world.PutBlob(keeping, p.data)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	at := arrival{event: session.Event{Session: p.sid, Seq: seq}, ack: func() {}}
	return l.quarantine(ctx, at, &because)
}

// replace puts the snapshot of a session's right state in place of a wrong one.
// It waits for its turn behind those of the session that are on their way, of
// which none may come after it; if it is not put then, since another session's
// failed a moment ago, it is put here. The lane waits meanwhile, so all of it has
// the time of one snapshot, and what takes longer is left to the next try.
func (l *laneActor) replace(ctx context.Context, right *actor) error {
	ctx, cancel := context.WithTimeout(ctx, snapshotWithin)
	defer cancel()
	instead := l.captureOf(right)
	if instead == nil {
		return nil // a fault of this program, which says so; stopped, the session does no harm
	}
	here := *instead
	l.snapshots.put(instead)
	select {
	case <-instead.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if instead.err == nil {
		return nil
	}
	return l.snapshots.one(ctx, &here)
}
