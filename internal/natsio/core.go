package natsio

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/subjects"
)

// Core NATS stores no message: only current subscribers receive it.

// PublishLive publishes a streaming delta of a session.
func (c *Conn) PublishLive(sid string, payload []byte) error {
	subject, err := c.names.Live(sid)
	if err != nil {
		return err
	}
	return c.PublishCore(subject, payload)
}

// SubscribeLive calls fn for each delta of a session (of all, if sid is empty)
// until ctx ends; one call at a time, in the order of each publisher. The server
// has the subscription when SubscribeLive returns.
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

// PublishProgress publishes a session's progress in its active run.
func (c *Conn) PublishProgress(sid string, payload []byte) error {
	subject, err := c.names.Progress(sid)
	if err != nil {
		return err
	}
	return c.PublishCore(subject, payload)
}

// followedMax is how many messages of a session are buffered before the connection
// drops them.
const followedMax = 8192

// FollowSession calls notice for each notice of a session, repeats included, and for
// its progress, and live, if not nil, for its deltas, until ctx ends. The calls are one at a
// time, in the order in which the connection receives the messages. It calls lost
// after a reconnect: messages may be missing. The server has the subscriptions when
// FollowSession returns. It reads no stream.
func (c *Conn) FollowSession(ctx context.Context, sid string, lost func(), notice, live func(payload []byte)) error {
	out, err := c.names.Out(sid)
	if err != nil {
		return err
	}
	progress, _ := c.names.Progress(sid)
	deltas, _ := c.names.Live(sid)
	msgs, all := make(chan *nats.Msg, followedMax), []string{out, progress}
	if live != nil {
		all = append(all, deltas)
	}
	for _, subject := range all {
		sub, err := c.NC.ChanSubscribe(subject, msgs)
		if err := c.inPlace(ctx, subject, sub, err); err != nil {
			return err
		}
	}
	reconnected := make(chan struct{}, 1)
	stop := c.Listen(nil, reconnected)
	go func() {
		defer stop()
		for {
			select {
			case <-reconnected:
				lost()
			case msg := <-msgs:
				switch {
				case c.Ignores(msg):
				case msg.Subject == deltas:
					live(msg.Data)
				default:
					notice(msg.Data)
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return nil
}

// PublishCancel tells bridges that a session withdraws effects. The server has the
// message when PublishCancel returns nil: the event that caused it may be
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

// ErrNoView means that nobody answered a request for a View: no session-actor
// runs, or none owns the session's lane.
var ErrNoView = errors.New("nobody answers with this session's view: is a session-actor running?")

// RequestView requests a session's View and returns its JSON. ErrNoView means
// that nobody listens, or that nobody answered before ctx ended.
func (c *Conn) RequestView(ctx context.Context, sid string) ([]byte, error) {
	subject, err := c.names.View(sid)
	if err != nil {
		return nil, err
	}
	watched, stop := c.Watch(ctx, subject, false)
	defer stop()
	answer, err := c.NC.RequestMsgWithContext(watched, &nats.Msg{Subject: subject, Header: c.Stamp(nil)})
	err = Cause(watched, err)
	switch {
	case err == nil && c.Ignores(answer):
		return nil, fmt.Errorf("view of %s: %w (another system answered)", sid, ErrNoView)
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
	return c.PublishWith(subject, nil, payload)
}

// PublishWith is PublishCore with headers, to which that of the log is added.
func (c *Conn) PublishWith(subject string, h nats.Header, payload []byte) error {
	err := c.NC.PublishMsg(&nats.Msg{Subject: subject, Header: c.Stamp(h), Data: payload})
	if errors.Is(err, nats.ErrMaxPayload) {
		return c.PayloadError(err, subject, len(payload))
	}
	if err != nil {
		return fmt.Errorf("publish to %s: %w", subject, Typed(err))
	}
	return nil
}

// Subscribe calls fn for each message until ctx ends, except those of other systems. The
// server has the subscription when Subscribe returns nil.
func (c *Conn) Subscribe(ctx context.Context, subject string, fn func(*nats.Msg)) error {
	sub, err := c.NC.Subscribe(subject, func(m *nats.Msg) {
		if !c.Ignores(m) {
			fn(m)
		}
	})
	return c.inPlace(ctx, subject, sub, err)
}

// inPlace waits until the server has a subscription. It unsubscribes when ctx ends.
func (c *Conn) inPlace(ctx context.Context, subject string, sub *nats.Subscription, err error) error {
	if err != nil {
		return fmt.Errorf("subscribe to %s: %w", subject, Typed(err))
	}
	if err := c.Flush(ctx); err != nil {
		sub.Unsubscribe()
		return fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	// The server sends a denial before its answer to the flush.
	if p := c.denialIn(fmt.Sprint(c.NC.LastError())); p != nil && p.Op == "subscribe" && p.Subject == subject {
		sub.Unsubscribe()
		return p
	}
	// It fails only if the connection is closed, which ends subscriptions too. Nothing is
	// logged: the owner of the log may be gone by then.
	context.AfterFunc(ctx, func() { _ = sub.Unsubscribe() })
	return nil
}

// Flush waits until the server has received everything sent before.
func (c *Conn) Flush(ctx context.Context) error {
	return c.Repeat(ctx, "", func(ctx context.Context) error {
		err := c.NC.FlushWithContext(ctx)
		if errors.Is(err, nats.ErrConnectionClosed) && !c.NC.IsClosed() {
			return ErrReconnected // nats.go says that of a flush that a lost connection ends
		}
		return err
	})
}
