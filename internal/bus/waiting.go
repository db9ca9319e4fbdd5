package bus

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/subjects"
)

// Waiting is a session that has a snapshot, most often one with open wakes.
type Waiting struct {
	Session string
	Due     int64  // of the earliest one, Unix milliseconds; 0: it has none
	Seq     uint64 // in the bucket's stream
}

// PutWaiting is PutSnapshot for a state with open wakes, of which the earliest
// is due at due (Unix milliseconds): ListWaiting finds it.
func (b *Bus) PutWaiting(ctx context.Context, sid string, seq uint64, data []byte, due int64) error {
	return b.putSnapshot(ctx, sid, seq, data, due)
}

// ListWaiting yields the sessions whose snapshots were put by PutWaiting, from
// a sequence of the bucket's stream on, in the order of their putting. It reads
// no snapshot: the server sends what it knows of each, some 100 bytes. What is
// put meanwhile may come or not. An error ends it.
func (b *Bus) ListWaiting(ctx context.Context, from uint64) iter.Seq2[Waiting, error] {
	return func(yield func(Waiting, error) bool) {
		for w, err := range b.ListSnapshots(ctx, from) {
			if (err != nil || w.Due != 0) && !yield(w, err) {
				return
			}
		}
	}
}

// ListSnapshots yields all sessions that have a snapshot, as ListWaiting does
// those that wait.
func (b *Bus) ListSnapshots(ctx context.Context, from uint64) iter.Seq2[Waiting, error] {
	return func(yield func(Waiting, error) bool) {
		filter := []string{b.names.SnapshotsSubject(subjects.SnapshotKeys)}
		cfg := jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: max(from, 1), FilterSubjects: filter}
		for msg, err := range b.heads(ctx, b.names.SnapshotsStream(), cfg) {
			if err != nil {
				yield(Waiting{}, fmt.Errorf("list snapshots: %w", err))
				return
			}
			if w, ok := b.snapshotted(msg.msg, msg.meta.Sequence.Stream); ok && !yield(w, nil) {
				return
			}
		}
	}
}

// snapshotted reads what the headers of a snapshot say. A key that was deleted
// has none.
func (b *Bus) snapshotted(msg jetstream.Msg, seq uint64) (Waiting, bool) {
	if msg.Headers().Get(subjects.HeaderKVOperation) != "" {
		return Waiting{}, false
	}
	due, err := strconv.ParseInt(msg.Headers().Get(subjects.HeaderWakeDue), 10, 64)
	if err != nil {
		due = 0
	}
	sid, ok := subjects.ParseSnapshotKey(msg.Subject()[len(b.names.SnapshotsSubject("")):])
	return Waiting{Session: sid, Due: due, Seq: seq}, ok
}

// deleteConsumer deletes a consumer that nobody needs any more. One that can't
// be deleted the server deletes later.
func (b *Bus) deleteConsumer(ctx context.Context, stream, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), apiTimeout)
	defer cancel()
	_ = b.js.DeleteConsumer(ctx, stream, name)
}

// EffectsKept returns for how long the names of effects are kept: max_age of
// their stream; 0 is for ever.
func (b *Bus) EffectsKept(ctx context.Context) (kept time.Duration, err error) {
	err = b.retry(ctx, func(ctx context.Context) error {
		stream, err := b.js.Stream(ctx, b.names.EffectsStream())
		if err == nil {
			kept = stream.CachedInfo().Config.MaxAge
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("look at %s: %w", b.names.EffectsStream(), typed(err))
	}
	return kept, nil
}
