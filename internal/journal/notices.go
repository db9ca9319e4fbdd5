package journal

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/natsio"
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
func (j *Journal) Notify(ctx context.Context, sid string, n uint64, payload []byte) error {
	return errors.Join(j.Store(ctx, []Output{{Session: sid, Notice: payload, N: n}})...)
}

func (j *Journal) noticeWrite(sid string, n uint64, payload []byte) (*write, error) {
	subject, err := j.names.Out(sid)
	if err != nil {
		return nil, err
	}
	id := subjects.NoticeID(sid, n)
	if n == 0 {
		id = nuid.Next()
	}
	w := &write{subject: subject, data: payload, order: sid, headers: []string{subjects.HeaderMsgID, id}}
	return w, j.check(w, noticeBytesMax)
}

// LastNotice returns the sequence of the last notice of any session, 0 if
// there is none: following from the next one on misses nothing that is said
// after this call.
func (j *Journal) LastNotice(ctx context.Context) (uint64, error) {
	return j.lastSeq(ctx, j.names.NoticesStream())
}

// FollowNotices yields the notices of a session (of all, if sid is empty) from
// a sequence of the notices' stream on, and then as they come, until ctx ends
// or the reader stops. From 0 on means all that are kept. A lost connection is
// no error; it goes on where it was. The last thing it yields when ctx ends is
// ctx's error.
func (j *Journal) FollowNotices(ctx context.Context, sid string, from uint64) iter.Seq2[Notice, error] {
	return func(yield func(Notice, error) bool) {
		filter := j.names.OutAll()
		if sid != "" {
			var err error
			if filter, err = j.names.Out(sid); err != nil {
				yield(Notice{}, err)
				return
			}
		}
		for m, err := range j.follow(ctx, j.names.NoticesStream(), filter, from) {
			if err != nil {
				yield(Notice{}, fmt.Errorf("follow notices: %w", err))
				return
			}
			of, err := j.names.ParseOut(m.subject)
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
func (j *Journal) FollowEvents(ctx context.Context, sid string, from uint64) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		filter := ""
		if sid != "" {
			var err error
			if filter, err = j.names.Session(sid); err != nil {
				yield(session.Event{}, err)
				return
			}
		}
		for m, err := range j.follow(ctx, j.names.LogStream(), filter, from) {
			if err != nil {
				yield(session.Event{}, fmt.Errorf("follow events: %w", err))
				return
			}
			e, err := j.event(m)
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

// ordered yields what an ordered consumer brings: all that is there when it begins,
// and with more what comes then, until ctx ends.
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

// deleteConsumer deletes a consumer that nobody needs any more: a stream takes a
// thousand, and the server keeps one for minutes. One that can't be deleted the server
// deletes later.
func (j *Journal) deleteConsumer(ctx context.Context, stream, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), natsio.RequestTimeout)
	defer cancel()
	_ = j.conn.JS.DeleteConsumer(ctx, stream, name)
}
