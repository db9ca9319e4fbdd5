package natsio

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/subjects"
)

// Messages on core NATS are kept nowhere: they reach those who listen at the moment.

// PublishLive sends a streaming delta of a session to those who listen.
func (c *Conn) PublishLive(sid string, payload []byte) error {
	subject, err := c.names.Live(sid)
	if err != nil {
		return err
	}
	return c.PublishCore(subject, payload)
}

// SubscribeLive calls fn for each delta of a session (of all, if sid is empty)
// until ctx ends; one call at a time, in the order of each publisher. When it
// returns the subscription is in place.
func (c *Conn) SubscribeLive(ctx context.Context, sid string, fn func(sid string, payload []byte)) error {
	subject, err := c.names.LiveAll(), error(nil)
	if sid != "" {
		subject, err = c.names.Live(sid)
	}
	if err != nil {
		return err
	}
	return c.Subscribe(ctx, subject, func(msg *nats.Msg) {
		if of, err := c.names.ParseLive(msg.Subject); err == nil {
			fn(of, msg.Data)
		}
	})
}

// PublishProgress sends what a session says about a run under way to those who listen.
func (c *Conn) PublishProgress(sid string, payload []byte) error {
	subject, err := c.names.Progress(sid)
	if err != nil {
		return err
	}
	return c.PublishCore(subject, payload)
}

// followedMax is how many messages about a session wait to be looked at before
// the connection drops them.
const followedMax = 8192

// FollowSession calls said with the notices of a session as they are published,
// repeats included, and with its progress, and live with its deltas, one at a
// time and in the order in which this connection gets them, until ctx ends.
// When it returns the subscriptions are in place. It reads no stream.
func (c *Conn) FollowSession(ctx context.Context, sid string, said, live func(payload []byte)) error {
	out, err := c.names.Out(sid)
	if err != nil {
		return err
	}
	progress, _ := c.names.Progress(sid)
	deltas, _ := c.names.Live(sid)
	came := make(chan *nats.Msg, followedMax)
	for _, subject := range []string{out, progress, deltas} {
		sub, err := c.NC.ChanSubscribe(subject, came)
		if err := c.inPlace(ctx, subject, sub, err); err != nil {
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
func (c *Conn) PublishCancel(ctx context.Context, sid string, payload []byte) error {
	subject, err := c.names.Cancel(sid)
	if err != nil {
		return err
	}
	if err := c.PublishCore(subject, payload); err != nil {
		return err
	}
	return c.Flush(ctx)
}

// SubscribeCancel calls fn for each cancellation of any session until ctx ends.
func (c *Conn) SubscribeCancel(ctx context.Context, fn func(sid string, payload []byte)) error {
	return c.Subscribe(ctx, c.names.CancelAll(), func(msg *nats.Msg) {
		if sid, err := c.names.ParseCancel(msg.Subject); err == nil {
			fn(sid, msg.Data)
		}
	})
}

// ErrNoView says that nobody answered a request for a View: no session-actor
// runs, or none has the session's lane.
var ErrNoView = errors.New("nobody answers with this session's view: is a session-actor running?")

// RequestView asks for a session's View and returns its JSON. ErrNoView means
// that nobody listens, or that nobody answered before ctx ended.
func (c *Conn) RequestView(ctx context.Context, sid string) ([]byte, error) {
	subject, err := c.names.View(sid)
	if err != nil {
		return nil, err
	}
	watched, stop := c.Watch(ctx, subject, false)
	defer stop()
	answer, err := c.NC.RequestWithContext(watched, subject, nil)
	err = Cause(watched, err)
	switch {
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, context.DeadlineExceeded), errors.Is(err, ErrReconnected), errors.Is(err, nats.ErrReconnectBufExceeded):
		return nil, fmt.Errorf("view of %s: %w (%w)", sid, ErrNoView, err)
	case err != nil:
		return nil, fmt.Errorf("view of %s: %w", sid, Typed(err))
	case answer.Header.Get(subjects.HeaderServiceErrorCode) != "":
		return nil, fmt.Errorf("view of %s: the session-actor answers: %s", sid, answer.Header.Get(subjects.HeaderServiceError))
	default:
		return answer.Data, nil
	}
}

// PublishCore publishes a message that no stream stores.
func (c *Conn) PublishCore(subject string, payload []byte) error {
	err := c.NC.Publish(subject, payload)
	if errors.Is(err, nats.ErrMaxPayload) {
		return &MaxPayloadError{Subject: subject, Bytes: len(payload), Limit: int(c.NC.MaxPayload())}
	}
	if err != nil {
		return fmt.Errorf("publish to %s: %w", subject, Typed(err))
	}
	return nil
}

// Subscribe calls fn for each message until ctx ends. The server has the
// subscription when it returns, or the error why not.
func (c *Conn) Subscribe(ctx context.Context, subject string, fn func(*nats.Msg)) error {
	sub, err := c.NC.Subscribe(subject, fn)
	return c.inPlace(ctx, subject, sub, err)
}

// inPlace waits until the server has a subscription, and ends it when ctx ends.
func (c *Conn) inPlace(ctx context.Context, subject string, sub *nats.Subscription, err error) error {
	if err != nil {
		return fmt.Errorf("subscribe to %s: %w", subject, Typed(err))
	}
	if err := c.Flush(ctx); err != nil {
		sub.Unsubscribe()
		return fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	// A denial came before the answer to the flush.
	if p := parseViolation(fmt.Sprint(c.NC.LastError())); p != nil && p.Op == "subscribe" && p.Subject == subject {
		sub.Unsubscribe()
		return p
	}
	context.AfterFunc(ctx, func() {
		if err := sub.Unsubscribe(); err != nil {
			c.Log.Debug("unsubscribe_failed", "subject", subject, "error", err.Error())
		}
	})
	return nil
}

// Flush waits until the server has all that was sent before.
func (c *Conn) Flush(ctx context.Context) error {
	return c.Repeat(ctx, "", func(ctx context.Context) error { return c.NC.FlushWithContext(ctx) })
}
