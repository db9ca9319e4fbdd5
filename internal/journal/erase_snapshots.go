package journal

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// EventSeqs returns the sequences of a session's events in the log, in order, below the
// sequence before (0: all).
func (j *Journal) EventSeqs(ctx context.Context, sid string, before uint64) ([]uint64, error) {
	filter, err := j.names.Session(sid)
	if err != nil {
		return nil, err
	}
	return j.SeqsOf(ctx, j.names.LogStream(), filter, before)
}

// TombstoneOf returns the sequence of a session's last tombstone that its snapshot has; 0
// if the snapshot has none. It reads from the leader.
func (j *Journal) TombstoneOf(ctx context.Context, sid string) (seq uint64, err error) {
	key, err := subjects.SnapshotKey(sid)
	if err != nil {
		return 0, err
	}
	m, err := j.leaderKey(ctx, key)
	if err != nil || m.deleted() {
		return 0, err
	}
	snap, err := session.ParseSnapshot(m.data)
	if err != nil {
		return 0, nil //nolint:nilerr // a large one, which is not that of an erased session, or a damaged one
	}
	var state session.State
	if err := codec.Unmarshal(snap.State, &state.Record); err != nil || !state.IsErased() {
		return 0, nil //nolint:nilerr // as above
	}
	wakes, err := j.names.Stored(session.DoorWake, sid)
	if err != nil {
		return 0, err
	}
	for m, err := range j.read(ctx, j.names.LogStream(), wakes, 1, snap.Seq, true) {
		if err != nil {
			return 0, fmt.Errorf("read the tombstone of %s: %w", sid, err)
		}
		if e, err := j.event(m); err == nil && isTombstone(e) {
			seq = e.Seq
		}
	}
	return seq, nil
}

// EraseSnapshot erases the snapshot of a session, if it has text: not the one of an erased
// session. If it is a blob, the blob is deleted, and its bytes stay in the server's files
// until half of their block is dead.
func (j *Journal) EraseSnapshot(ctx context.Context, sid string) error {
	key, err := subjects.SnapshotKey(sid)
	if err != nil {
		return err
	}
	m, err := j.leaderKey(ctx, key)
	if err != nil || m.seq == 0 {
		return err
	}
	if ref, isRef := parseSnapshotRef(m.data); isRef {
		if err := j.deleteBlob(ctx, ref); err != nil {
			return fmt.Errorf("delete the snapshot of %s: %w", sid, err)
		}
	} else if snap, err := session.ParseSnapshot(m.data); err == nil {
		var state session.State
		if codec.Unmarshal(snap.State, &state.Record) == nil && state.IsErased() {
			return nil
		}
	}
	return j.Erase(ctx, j.names.SnapshotsStream(), m.seq, false)
}

// Sizes of RewriteSnapshots. The server's blocks of the bucket have at most 8 MiB.
const (
	fillerBytes = 512 << 10
	fillers     = 2*(8<<20)/fillerBytes + 1
)

// RewriteSnapshots makes the server drop the bytes of snapshots that were replaced. It
// stores each snapshot once more, unless it is replaced meanwhile, and fills two blocks with
// noise: then every block that was there is dead, and the server removes it. It returns how
// many snapshots it has stored.
func (j *Journal) RewriteSnapshots(ctx context.Context) (n int, err error) {
	prefix := j.names.SnapshotsSubject("")
	_, err = j.scan(ctx, j.names.SnapshotsStream(), 1, func(m stored) error {
		key, ours := strings.CutPrefix(m.subject, prefix)
		if _, ok := subjects.ParseSnapshotKey(key); !ours || !ok || m.deleted() {
			return nil // the revisions of other keys are fences
		}
		_, err := j.putKey(ctx, key, m.data, jetstream.WithExpectLastSequencePerSubject(m.seq))
		switch {
		case natsio.IsConflict(err):
			return nil // it was replaced
		case err == nil:
			n++
		}
		return err
	})
	if err != nil {
		return n, fmt.Errorf("store the snapshots again: %w", err)
	}
	noise := make([]byte, fillerBytes)
	for range fillers {
		_, _ = rand.Read(noise)
		if _, err := j.putKey(ctx, subjects.FillerKey, noise); err != nil {
			return n, fmt.Errorf("fill blocks of %s: %w", j.names.SnapshotsStream(), err)
		}
	}
	_, err = j.putKey(ctx, subjects.FillerKey, nil)
	return n, err
}
