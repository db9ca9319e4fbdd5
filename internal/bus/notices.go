package bus

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/subjects"
)

// noticeBytesMax bounds a notice: a run's output may be inline text.
const noticeBytesMax = session.EventBytesMax

// Notice is a notice as it was published.
type Notice struct {
	Session string
	Seq     uint64 // in the stream of notices
	Time    int64  // Unix milliseconds
	Payload []byte // JSON
}

// Notify publishes the nth notice of a session. The same n again within the
// stream's duplicate window stores nothing and is success; readers drop later
// repeats by n. n 0 (a notice that no fold says) has no such number.
func (b *Bus) Notify(ctx context.Context, sid string, n uint64, payload []byte) error {
	return errors.Join(b.Store(ctx, []Output{{Session: sid, Notice: payload, N: n}})...)
}

func (b *Bus) noticeWrite(sid string, n uint64, payload []byte) (*write, error) {
	subject, err := b.names.Out(sid)
	if err != nil {
		return nil, err
	}
	w := &write{subject: subject, data: payload, order: sid}
	if n > 0 {
		w.id = subjects.NoticeID(sid, n)
	} else {
		w.id = nuid.Next()
	}
	return w, b.check(w, noticeBytesMax)
}

// LastNotice returns the sequence of the last notice of any session, 0 if
// there is none: following from the next one on misses nothing that is said
// after this call.
func (b *Bus) LastNotice(ctx context.Context) (uint64, error) {
	return b.lastSeq(ctx, b.names.NoticesStream())
}

// FollowNotices yields the notices of a session (of all, if sid is empty) from
// a sequence of the notices' stream on, and then as they come, until ctx ends
// or the reader stops. From 0 on means all that are kept. A lost connection is
// no error; it goes on where it was. The last thing it yields when ctx ends is
// ctx's error.
func (b *Bus) FollowNotices(ctx context.Context, sid string, from uint64) iter.Seq2[Notice, error] {
	return func(yield func(Notice, error) bool) {
		filter := b.names.OutAll()
		if sid != "" {
			var err error
			if filter, err = b.names.Out(sid); err != nil {
				yield(Notice{}, err)
				return
			}
		}
		for m, err := range b.follow(ctx, b.names.NoticesStream(), filter, from) {
			if err != nil {
				yield(Notice{}, fmt.Errorf("follow notices: %w", err))
				return
			}
			of, err := b.names.ParseOut(m.subject)
			if err != nil {
				continue // published by somebody under a name that is no session's
			}
			if !yield(Notice{Session: of, Seq: m.seq, Time: m.time, Payload: m.data}, nil) {
				return
			}
		}
	}
}

// FollowEvents yields the events of a session (of all, if sid is empty) from a
// sequence of the log on, and then as they come, as FollowNotices does.
func (b *Bus) FollowEvents(ctx context.Context, sid string, from uint64) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		filter := ""
		if sid != "" {
			var err error
			if filter, err = b.names.Session(sid); err != nil {
				yield(session.Event{}, err)
				return
			}
		}
		for m, err := range b.follow(ctx, b.names.LogStream(), filter, from) {
			if err != nil {
				yield(session.Event{}, fmt.Errorf("follow events: %w", err))
				return
			}
			e, err := b.event(m)
			if err != nil {
				b.log.Warn("event_skipped", "seq", m.seq, "subject", m.subject, "error", err.Error())
				continue
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// follow reads a stream in order, and waits for more at its end.
func (b *Bus) follow(ctx context.Context, stream, filter string, from uint64) iter.Seq2[stored, error] {
	return func(yield func(stored, error) bool) {
		cfg := jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: max(from, 1)}
		if filter != "" {
			cfg.FilterSubjects = []string{filter}
		}
		var consumer jetstream.Consumer
		var messages jetstream.MessagesContext
		err := b.retry(ctx, func(ctx context.Context) (err error) {
			if consumer, err = b.js.OrderedConsumer(ctx, stream, cfg); err == nil {
				messages, err = consumer.Messages()
			}
			return err
		})
		if err != nil {
			yield(stored{}, err)
			return
		}
		defer func() {
			messages.Stop()
			if info := consumer.CachedInfo(); info != nil {
				b.deleteConsumer(ctx, info.Stream, info.Name)
			}
		}()
		defer context.AfterFunc(ctx, messages.Stop)()
		for {
			msg, err := messages.Next()
			if err == nil {
				var meta *jetstream.MsgMetadata
				if meta, err = msg.Metadata(); err == nil {
					m := stored{subject: msg.Subject(), seq: meta.Sequence.Stream, time: meta.Timestamp.UnixMilli(), header: msg.Headers(), data: msg.Data()}
					if !yield(m, nil) {
						return
					}
					continue
				}
			}
			if ctx.Err() != nil {
				err = ctx.Err()
			} else if errors.Is(err, jetstream.ErrMsgIteratorClosed) {
				err = ErrClosed
			}
			yield(stored{}, typed(err))
			return
		}
	}
}
