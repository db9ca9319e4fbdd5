package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// errBucketThere says that the bucket of snapshots, which was not there, is: what
// was asked of it can be asked again.
const errBucketThere = natsio.Retryable("the bucket of snapshots is there again")

// askBucket is Retry for requests to the bucket of snapshots. The process that
// provisioned the bucket makes it again when it is gone: a cache is nothing to wait for.
func (j *Journal) askBucket(ctx context.Context, f func(context.Context) error) error {
	return j.conn.Retry(ctx, func(ctx context.Context) error {
		err := f(ctx)
		silent := errors.Is(err, jetstream.ErrNoStreamResponse) // it is gone, or has no leader just now
		switch {
		case !silent && natsio.CodeOf(err) != natsio.CodeStreamMissing:
			return err
		case j.streams.KeepsSnapshots():
			if err := j.streams.RemakeSnapshots(ctx); err != nil {
				return err
			}
			return errBucketThere // without err, which trying again can't help
		case silent:
			return j.whyNoStream(ctx, j.names.SnapshotsStream(), err)
		}
		return err
	})
}

// leaderKey reads what the bucket's leader has last under a key. Nothing ever was
// there if its sequence is 0.
func (j *Journal) leaderKey(ctx context.Context, key string) (m stored, err error) {
	err = j.askBucket(ctx, func(ctx context.Context) (err error) {
		m, err = j.lastOn(ctx, j.names.SnapshotsStream(), j.names.SnapshotsSubject(key))
		return err
	})
	return m, err
}

// replicaKey reads what any replica has last under a key; ErrNotFound if nothing is
// there. It may be older than what was put last.
func (j *Journal) replicaKey(ctx context.Context, key string) (value []byte, err error) {
	err = j.askBucket(ctx, func(ctx context.Context) error {
		for m, err := range j.read(ctx, j.names.SnapshotsStream(), j.names.SnapshotsSubject(key), 1, 0, false) {
			if err != nil || !m.deleted() {
				value = m.data
				return err
			}
		}
		return natsio.ErrNotFound
	})
	return value, err
}

// putKey puts a value under a key, as the client of a bucket does, and returns its
// revision; nil deletes the key.
func (j *Journal) putKey(ctx context.Context, key string, value []byte, opts ...jetstream.PublishOpt) (rev uint64, err error) {
	msg := nats.NewMsg(j.names.SnapshotsSubject(key))
	if msg.Data = value; len(value) == 0 {
		msg.Header.Set(subjects.HeaderKVOperation, "DEL")
	}
	err = j.askBucket(ctx, func(ctx context.Context) error {
		ack, err := j.conn.JS.PublishMsg(ctx, msg, opts...)
		if err == nil {
			rev = ack.Sequence
		}
		return err
	})
	return rev, err
}

// deleted reports whether a message of a bucket says that its key was deleted, or is
// none.
func (m *stored) deleted() bool {
	return m.seq == 0 || m.header.Get(subjects.HeaderKVOperation) != ""
}

// LaneNote returns what an owner of a lane has noted under a key of the snapshots
// bucket (subjects.GuardKey), and its revision; nil: nothing. It is read from the
// leader: the next owner must not miss it.
func (j *Journal) LaneNote(ctx context.Context, key string) (note []byte, rev uint64, err error) {
	m, err := j.leaderKey(ctx, key)
	if err != nil {
		return nil, 0, fmt.Errorf("note %s: %w", key, err)
	}
	if !m.deleted() {
		note = m.data
	}
	return note, m.seq, nil
}

// PutLaneNote notes something of a lane in place of what has the revision after
// (0: nothing has one), and returns the revision; nil deletes it. It fails with
// ErrOvertaken if something else was put or deleted since.
func (j *Journal) PutLaneNote(ctx context.Context, key string, note []byte, after uint64) (rev uint64, err error) {
	rev, err = j.putKey(ctx, key, note, jetstream.WithExpectLastSequencePerSubject(after))
	if natsio.IsConflict(err) {
		err = ErrOvertaken
	}
	if err != nil {
		return 0, fmt.Errorf("note %s: %w", key, err)
	}
	return rev, nil
}
