package journal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// SnapshotAt is where the snapshot of a session is.
type SnapshotAt struct {
	Session string
	Seq     uint64 // in the bucket's stream
}

// ListSnapshots yields the sessions that have a snapshot, from a sequence of the
// bucket's stream on, in the order in which they were put. It reads no snapshot:
// the server sends some 100 bytes of each. What is put meanwhile may come or not.
// An error ends it.
func (j *Journal) ListSnapshots(ctx context.Context, from uint64) iter.Seq2[SnapshotAt, error] {
	return func(yield func(SnapshotAt, error) bool) {
		fail := func(err error) { yield(SnapshotAt{}, fmt.Errorf("list snapshots: %w", natsio.Typed(err))) }
		filter := []string{j.names.SnapshotsSubject(subjects.SnapshotKeys)}
		cfg := jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: max(from, 1), FilterSubjects: filter}
		messages, pending, done, err := j.beginHeads(ctx, j.names.SnapshotsStream(), cfg)
		if err != nil {
			fail(err)
			return
		}
		defer done()
		if messages == nil {
			return
		}
		defer messages.Stop()
		defer context.AfterFunc(ctx, messages.Stop)()
		for pending > 0 {
			msg, err := messages.Next()
			var meta *jetstream.MsgMetadata
			if err == nil {
				meta, err = msg.Metadata()
			}
			if err != nil {
				if ctx.Err() != nil {
					err = ctx.Err()
				}
				fail(err)
				return
			}
			pending = meta.NumPending
			if msg.Headers().Get(subjects.HeaderKVOperation) != "" {
				continue // deleted
			}
			sid, ok := subjects.ParseSnapshotKey(strings.TrimPrefix(msg.Subject(), j.names.SnapshotsSubject("")))
			if ok && !yield(SnapshotAt{sid, meta.Sequence.Stream}, nil) {
				return
			}
		}
	}
}

// beginHeads begins to read, and returns how many there are; messages is nil if
// there is none. Call done at the end: a stream takes a thousand consumers, and
// the server keeps one that nobody needs for minutes.
func (j *Journal) beginHeads(ctx context.Context, stream string, cfg jetstream.OrderedConsumerConfig) (messages jetstream.MessagesContext, pending uint64, done func(), err error) {
	cfg.HeadersOnly = true
	err = j.conn.Retry(ctx, func(ctx context.Context) error {
		consumer, err := j.conn.JS.OrderedConsumer(ctx, stream, cfg)
		if err != nil {
			return err
		}
		info := consumer.CachedInfo()
		if info == nil {
			return errors.New("the server does not say what there is to read")
		}
		done = func() { j.deleteConsumer(ctx, info.Stream, info.Name) }
		if pending = info.NumPending; pending > 0 {
			messages, err = consumer.Messages()
		}
		return err
	})
	return messages, pending, done, err
}

// deleteConsumer deletes a consumer that nobody needs any more. One that can't
// be deleted the server deletes later.
func (j *Journal) deleteConsumer(ctx context.Context, stream, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), natsio.RequestTimeout)
	defer cancel()
	_ = j.conn.JS.DeleteConsumer(ctx, stream, name)
}
