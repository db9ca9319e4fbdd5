package bus

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Head is what the server tells of an event without its payload.
type Head struct {
	Session string
	Seq     uint64
}

// LaneHeads yields the heads of a lane's events that the log took at since or
// later, in order, of as many lanes as the log has. The server sends some 100
// bytes of each. What is stored meanwhile may come or not. An error ends it. They
// are pushed, since clients may write any header: a message that has no payload and
// says that it is a status is one for whoever pulls by nats.go.
func (b *Bus) LaneHeads(ctx context.Context, lane, lanes int, since time.Time) iter.Seq2[Head, error] {
	return func(yield func(Head, error) bool) {
		var all []Head
		err := b.scanHeads(ctx, b.names.LogStream(), since, b.names.LaneFilters(lane, lanes), func(m stored) error {
			if _, sid, err := b.names.ParseStored(m.subject); err == nil && sid != "" {
				all = append(all, Head{Session: sid, Seq: m.seq})
			}
			return nil
		})
		for _, one := range all {
			if !yield(one, nil) {
				return
			}
		}
		if err != nil {
			yield(Head{}, fmt.Errorf("read the heads of lane %d: %w", lane, err))
		}
	}
}

// head is a message without its payload.
type head struct {
	msg  jetstream.Msg
	meta *jetstream.MsgMetadata
}

// heads yields the messages of a stream without their payloads, as cfg says, as
// far as there are any when it begins. An error ends it.
func (b *Bus) heads(ctx context.Context, stream string, cfg jetstream.OrderedConsumerConfig) iter.Seq2[head, error] {
	return func(yield func(head, error) bool) {
		messages, pending, done, err := b.beginHeads(ctx, stream, cfg)
		if err != nil {
			yield(head{}, typed(err))
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
				yield(head{}, typed(err))
				return
			}
			pending = meta.NumPending
			if !yield(head{msg, meta}, nil) {
				return
			}
		}
	}
}

// beginHeads begins to read, and returns how many there are; messages is nil if
// there is none. Call done at the end: a stream takes a thousand consumers, and
// the server keeps one that nobody needs for minutes.
func (b *Bus) beginHeads(ctx context.Context, stream string, cfg jetstream.OrderedConsumerConfig) (messages jetstream.MessagesContext, pending uint64, done func(), err error) {
	cfg.HeadersOnly = true
	err = b.retry(ctx, func(ctx context.Context) error {
		consumer, err := b.js.OrderedConsumer(ctx, stream, cfg)
		if err != nil {
			return err
		}
		info := consumer.CachedInfo()
		if info == nil {
			return errors.New("the server does not say what there is to read")
		}
		done = func() { b.deleteConsumer(ctx, info.Stream, info.Name) }
		if pending = info.NumPending; pending > 0 {
			messages, err = consumer.Messages()
		}
		return err
	})
	return messages, pending, done, err
}
