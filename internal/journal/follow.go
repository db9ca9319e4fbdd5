package journal

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/natsio"
)

// FollowEvents yields the events of all sessions from a sequence of the log on, and then
// new ones, as FollowNotices does.
func (j *Journal) FollowEvents(ctx context.Context, from uint64) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		for m, err := range j.follow(ctx, j.names.LogStream(), "", from) {
			if err != nil {
				yield(session.Event{}, fmt.Errorf("follow events: %w", err))
				return
			}
			e, err := j.event(m)
			if errors.Is(err, errForeign) {
				continue
			}
			if err != nil {
				j.conn.Log.Warn("event_skipped", "seq", m.seq, "subject", m.subject, "error", err.Error())
				continue
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// follow reads a stream in order, and waits for more at its end.
func (j *Journal) follow(ctx context.Context, stream, filter string, from uint64) iter.Seq2[stored, error] {
	cfg := jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: max(from, 1)}
	if filter != "" {
		cfg.FilterSubjects = []string{filter}
	}
	return j.ordered(ctx, stream, cfg, true)
}

// ordered yields the messages of an ordered consumer: those stored when it begins, and
// with more also later ones, until ctx ends.
func (j *Journal) ordered(ctx context.Context, stream string, cfg jetstream.OrderedConsumerConfig, more bool) iter.Seq2[stored, error] {
	return func(yield func(stored, error) bool) {
		var consumer jetstream.Consumer
		var messages jetstream.MessagesContext
		err := j.conn.Retry(ctx, func(ctx context.Context) (err error) {
			if consumer, err = j.conn.JS.OrderedConsumer(ctx, stream, cfg); err == nil {
				messages, err = consumer.Messages()
			}
			return err
		})
		if err != nil {
			yield(stored{}, err)
			return
		}
		info := consumer.CachedInfo()
		defer func() {
			messages.Stop()
			if info := consumer.CachedInfo(); info != nil {
				j.deleteConsumer(ctx, info.Stream, info.Name)
			}
		}()
		defer context.AfterFunc(ctx, messages.Stop)()
		for more || info == nil || info.NumPending > 0 {
			msg, err := messages.Next()
			var meta *jetstream.MsgMetadata
			if err == nil {
				meta, err = msg.Metadata()
			}
			switch {
			case err == nil:
				m := stored{subject: msg.Subject(), seq: meta.Sequence.Stream, time: meta.Timestamp.UnixMilli(), header: msg.Headers(), data: msg.Data()}
				if !yield(m, nil) || !more && meta.NumPending == 0 {
					return
				}
				continue
			case ctx.Err() != nil:
				err = ctx.Err()
			case errors.Is(err, jetstream.ErrMsgIteratorClosed):
				err = natsio.ErrClosed
			}
			yield(stored{}, natsio.Typed(err))
			return
		}
	}
}

// deleteConsumer deletes an unused consumer: a stream may have a thousand, and the
// server keeps an unused one for minutes. After a failure the server deletes it later.
func (j *Journal) deleteConsumer(ctx context.Context, stream, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), natsio.RequestTimeout)
	defer cancel()
	_ = j.conn.JS.DeleteConsumer(ctx, stream, name)
}
