package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/natsio"
)

// LaneNote returns what an owner of a lane has noted under a key of the snapshots
// bucket (subjects.GuardKey), and its revision; nil: nothing. It is read from the leader: the next owner must not miss it.
func (j *Journal) LaneNote(ctx context.Context, key string) (note []byte, rev uint64, err error) {
	m, err := j.leaderKey(ctx, key)
	switch {
	case errors.Is(err, natsio.ErrNotFound):
		return nil, 0, nil
	case err != nil:
		return nil, 0, fmt.Errorf("note %s: %w", key, err)
	case m.deleted():
		return nil, m.seq, nil
	}
	return m.data, m.seq, nil
}

// PutLaneNote notes something of a lane in place of what has the revision after
// (0: nothing has one), and returns the revision; nil deletes it. It fails with
// ErrOvertaken if something else was put or deleted since.
func (j *Journal) PutLaneNote(ctx context.Context, key string, note []byte, after uint64) (rev uint64, err error) {
	rev, err = j.putKey(ctx, key, note, jetstream.WithExpectLastSequencePerSubject(after))
	switch {
	case natsio.IsConflict(err):
		return 0, fmt.Errorf("note %s: %w", key, ErrOvertaken)
	case err != nil:
		return 0, fmt.Errorf("note %s: %w", key, err)
	}
	return rev, nil
}
