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

// errBucketRemade means that the bucket of snapshots was recreated, and that the
// request can be retried.
const errBucketRemade = natsio.Retryable("the bucket of snapshots was recreated")

// askBucket is Retry for requests to the bucket of snapshots. The process that
// provisioned the bucket recreates it when it is deleted, since it is a cache.
func (j *Journal) askBucket(ctx context.Context, f func(context.Context) error) error {
	return j.conn.Retry(ctx, func(ctx context.Context) error {
		err := f(ctx)
		silent := errors.Is(err, jetstream.ErrNoStreamResponse) // it does not exist, or has no leader now
		switch {
		case !silent && natsio.CodeOf(err) != natsio.CodeStreamMissing:
			return err
		case j.streams.KeepsSnapshots():
			if err := j.streams.RemakeSnapshots(ctx); err != nil {
				return err
			}
			return errBucketRemade // does not wrap err, which is not transient
		case silent:
			return j.whyNoStream(ctx, j.names.SnapshotsStream(), err)
		}
		return err
	})
}

// leaderKey reads the last message of a key from the bucket's leader. Its sequence is
// 0 if there is none.
func (j *Journal) leaderKey(ctx context.Context, key string) (m stored, err error) {
	err = j.askBucket(ctx, func(ctx context.Context) (err error) {
		m, err = j.lastOn(ctx, j.names.SnapshotsStream(), j.names.SnapshotsSubject(key))
		return err
	})
	return m, err
}

// replicaKey reads the value of a key from any replica, which may not have the latest
// one; ErrNotFound if there is none.
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

// putKey puts a value under a key and returns its revision; nil deletes the key.
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

// deleted reports whether a bucket's message marks a deleted key, or there is none.
func (m *stored) deleted() bool {
	return m.seq == 0 || m.header.Get(subjects.HeaderKVOperation) != ""
}

// LaneNote returns the note of a lane's owner under a key of the snapshots bucket
// (subjects.GuardKey), and its revision; nil: there is none. It reads from the leader,
// since the next owner must not miss the note.
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

// PutLaneNote replaces the note of revision after (0: there is none), and returns the
// new revision; nil deletes the note. It fails with ErrOvertaken if the note has another
// revision by now.
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
