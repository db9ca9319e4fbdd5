package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/subjects"
)

// What is on core NATS is kept nowhere: it reaches who listens at the moment.

// PublishLive sends a streaming delta of a session to who listens.
func (b *Bus) PublishLive(sid string, payload []byte) error {
	subject, err := b.names.Live(sid)
	if err != nil {
		return err
	}
	return b.publishCore(subject, payload)
}

// SubscribeLive calls fn for each delta of a session (of all, if sid is empty)
// until ctx ends; one call at a time, in the order of each publisher. When it
// returns the subscription is in place.
func (b *Bus) SubscribeLive(ctx context.Context, sid string, fn func(sid string, payload []byte)) error {
	subject, err := b.names.LiveAll(), error(nil)
	if sid != "" {
		subject, err = b.names.Live(sid)
	}
	if err != nil {
		return err
	}
	return b.subscribe(ctx, subject, func(msg *nats.Msg) {
		if of, err := b.names.ParseLive(msg.Subject); err == nil {
			fn(of, msg.Data)
		}
	})
}

// PublishProgress sends what a session says about a run under way to who
// listens.
func (b *Bus) PublishProgress(sid string, payload []byte) error {
	subject, err := b.names.Progress(sid)
	if err != nil {
		return err
	}
	return b.publishCore(subject, payload)
}

// followedMax is how many messages about a session wait to be looked at before
// the connection drops them.
const followedMax = 8192

// FollowSession calls said with the notices of a session as they are published,
// repeats included, and with its progress, and live with its deltas, one at a
// time and in the order in which this connection gets them, until ctx ends.
// When it returns the subscriptions are in place. It reads no stream.
func (b *Bus) FollowSession(ctx context.Context, sid string, said, live func(payload []byte)) error {
	out, err := b.names.Out(sid)
	if err != nil {
		return err
	}
	progress, _ := b.names.Progress(sid)
	deltas, _ := b.names.Live(sid)
	came := make(chan *nats.Msg, followedMax)
	for _, subject := range []string{out, progress, deltas} {
		sub, err := b.nc.ChanSubscribe(subject, came)
		if err := b.inPlace(ctx, subject, sub, err); err != nil {
			return err
		}
	}
	go func() {
		for {
			select {
			case msg := <-came:
				if msg.Subject == deltas {
					live(msg.Data)
				} else {
					said(msg.Data)
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return nil
}

// PublishCancel tells bridges that a session wants effects stopped. It has left
// this process when PublishCancel returns nil: the event that caused it may be
// acknowledged then.
func (b *Bus) PublishCancel(ctx context.Context, sid string, payload []byte) error {
	subject, err := b.names.Cancel(sid)
	if err != nil {
		return err
	}
	if err := b.publishCore(subject, payload); err != nil {
		return err
	}
	return b.flush(ctx)
}

// SubscribeCancel calls fn for each cancellation of any session until ctx ends.
func (b *Bus) SubscribeCancel(ctx context.Context, fn func(sid string, payload []byte)) error {
	return b.subscribe(ctx, b.names.CancelAll(), func(msg *nats.Msg) {
		if sid, err := b.names.ParseCancel(msg.Subject); err == nil {
			fn(sid, msg.Data)
		}
	})
}

// ErrNoView says that nobody answered a request for a View: no session-actor
// runs, or none has the session's lane.
var ErrNoView = errors.New("nobody answers with this session's view: is a session-actor running?")

// RequestView asks for a session's View and returns its JSON. ErrNoView means
// that nobody listens, or that nobody answered before ctx ended.
func (b *Bus) RequestView(ctx context.Context, sid string) ([]byte, error) {
	subject, err := b.names.View(sid)
	if err != nil {
		return nil, err
	}
	watched, stop := b.open.watch(ctx, subject)
	defer stop()
	answer, err := b.nc.RequestWithContext(watched, subject, nil)
	err = because(watched, err)
	switch {
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, context.DeadlineExceeded), errors.Is(err, errReconnected), errors.Is(err, nats.ErrReconnectBufExceeded):
		return nil, fmt.Errorf("view of %s: %w (%w)", sid, ErrNoView, err)
	case err != nil:
		return nil, fmt.Errorf("view of %s: %w", sid, typed(err))
	case answer.Header.Get(subjects.HeaderServiceErrorCode) != "":
		return nil, fmt.Errorf("view of %s: the session-actor answers: %s", sid, answer.Header.Get(subjects.HeaderServiceError))
	default:
		return answer.Data, nil
	}
}

func (b *Bus) publishCore(subject string, payload []byte) error {
	err := b.nc.Publish(subject, payload)
	if errors.Is(err, nats.ErrMaxPayload) {
		return &MaxPayloadError{Subject: subject, Bytes: len(payload), Limit: int(b.nc.MaxPayload())}
	}
	if err != nil {
		return fmt.Errorf("publish to %s: %w", subject, typed(err))
	}
	return nil
}

// subscribe calls fn for each message until ctx ends. The server has the
// subscription when it returns, or the error why not.
func (b *Bus) subscribe(ctx context.Context, subject string, fn func(*nats.Msg)) error {
	sub, err := b.nc.Subscribe(subject, fn)
	return b.inPlace(ctx, subject, sub, err)
}

// inPlace waits until the server has a subscription, and ends it when ctx ends.
func (b *Bus) inPlace(ctx context.Context, subject string, sub *nats.Subscription, err error) error {
	if err != nil {
		return fmt.Errorf("subscribe to %s: %w", subject, typed(err))
	}
	if err := b.flush(ctx); err != nil {
		sub.Unsubscribe()
		return fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	// A denial came before the answer to the flush.
	if p := parseViolation(fmt.Sprint(b.nc.LastError())); p != nil && p.Op == "subscribe" && p.Subject == subject {
		sub.Unsubscribe()
		return p
	}
	context.AfterFunc(ctx, func() {
		if err := sub.Unsubscribe(); err != nil {
			b.log.Debug("unsubscribe_failed", "subject", subject, "error", err.Error())
		}
	})
	return nil
}

// flush waits until the server has all that was sent before.
func (b *Bus) flush(ctx context.Context) error {
	return b.repeat(ctx, "", func(ctx context.Context) error { return b.nc.FlushWithContext(ctx) })
}
