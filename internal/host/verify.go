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
	count           uint64 // events folded
	kept            codec.Ref
}

func (e *snapshotError) Error() string {
	return fmt.Sprintf("the snapshot at %d is not what the log folds to: expected the state %s of %d events, found %s; its bytes are kept as blob %s",
		e.seq, e.expected, e.count, e.found, e.kept)
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
	if cause.expected == cause.found {
		return nil
	}
	if cause.kept, err = l.host.world.PutBlob(ctx, p.data); err != nil {
		return err
	}
	l.inside(ctx, func() { err = l.condemn(ctx, p, state, cause) })
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

// condemn stops a session whose snapshot is wrong, behind all that was folded of
// it. The right one takes the snapshot's place first: released, the session goes
// on from what the log says. Called between two batches.
func (l *laneActor) condemn(ctx context.Context, p sample, right *session.State, cause error) error {
	s := l.sessions[p.sid]
	if !l.lane.Owned() || s != nil && s.stop != nil {
		return fmt.Errorf("left to the lane's owner: %w", cause)
	}
	seq := p.seq + 1
	if s != nil && s.state != nil {
		seq = max(seq, s.state.Seq+1)
	}
	l.snapshots.bar(s)
	instead := l.captureOf(&actor{sid: p.sid, state: right})
	if instead != nil {
		l.snapshots.put(instead)
		within := time.NewTimer(snapshotWithin)
		defer within.Stop()
		select {
		case <-instead.done:
		case <-within.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	at := arrival{event: session.Event{Session: p.sid, Seq: seq}, ack: func() {}}
	return l.quarantine(ctx, at, cause)
}
