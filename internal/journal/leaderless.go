package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// put stores one message and returns its acknowledgement. While the outcome is
// unknown the same message is sent again, until ctx ends; so it must carry a
// message id or a fence. limit is what data may have.
func (j *Journal) put(ctx context.Context, stream string, msg *nats.Msg, limit int) (*jetstream.PubAck, error) {
	if len(msg.Data) > limit {
		return nil, &natsio.MaxPayloadError{Subject: msg.Subject, Bytes: len(msg.Data), Limit: limit}
	}
	var ack *jetstream.PubAck
	err := j.conn.Repeat(ctx, msg.Subject, func(ctx context.Context) (err error) {
		ack, err = j.conn.JS.PublishMsg(ctx, msg)
		if errors.Is(err, jetstream.ErrNoStreamResponse) {
			return j.whyNoStream(ctx, stream, err)
		}
		return err
	})
	switch {
	case err == nil:
		return ack, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	default:
		return nil, j.conn.PayloadError(err, msg.Subject, len(msg.Data))
	}
}

// leaderless is how long a stream may have no leader before a user who leaves
// JetStream alone takes it for missing. Servers elect one within ten seconds.
const leaderless = 30 * time.Second

// unanswered records when publishes began to get no answer. A user who leaves
// JetStream alone keeps one.
type unanswered struct {
	mu          sync.Mutex
	first, last time.Time
}

// since records an unanswered request at now and returns the time of the first one
// of its series. A series ends when none is recorded for leaderless.
func (u *unanswered) since(now time.Time) time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	if now.Sub(u.last) > leaderless {
		u.first = now
	}
	u.last = now
	return u.first
}

// whyNoStream tells a stream that is not there, which is final, from one that
// has no leader just now, which err stands for.
func (j *Journal) whyNoStream(ctx context.Context, stream string, err error) error {
	if j.unanswered != nil {
		if now := time.Now(); now.Sub(j.unanswered.since(now)) > leaderless {
			return jetstream.ErrStreamNotFound
		}
		return err
	}
	if _, missing := j.conn.JS.Stream(ctx, stream); errors.Is(missing, jetstream.ErrStreamNotFound) {
		return missing
	}
	return err
}

// fence stores data as the only message of a subject. If the subject has a
// message, won tells whether that has the same bytes, and holder is what it
// has; both read from the leader.
func (j *Journal) fence(ctx context.Context, stream string, msg *nats.Msg, limit int) (won bool, holder []byte, err error) {
	msg.Header.Set(subjects.HeaderExpectLastSubject, "0")
	wait := natsio.RetryWaitMin
	for {
		_, err := j.put(ctx, stream, msg, limit)
		if err == nil {
			return true, msg.Data, nil
		}
		if !natsio.IsConflict(err) {
			return false, nil, err
		}
		held, err := j.leaderGet(ctx, stream, getRequest{LastFor: msg.Subject})
		if err == nil {
			return bytes.Equal(held.data, msg.Data), held.data, nil
		}
		if !errors.Is(err, natsio.ErrNotFound) {
			return false, nil, err
		}
		// Another write was in pendingPublish and is not stored: the name is free.
		if err := natsio.Sleep(ctx, wait); err != nil {
			return false, nil, fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
		}
		wait = min(2*wait, natsio.RetryWaitMax)
	}
}
