package delivery

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// standBy waits until the server pins this client, and returns the pin; empty
// when ctx ends. left is the last event that a dead owner had been given, if this
// client reset the lane for that.
//
// The server pins a client only when it has a message to deliver. What a dead
// owner held is not offered before ack_wait is over, so standing by on a quiet
// lane would be waiting for that long: a reset of a lane that has no owner and
// something unacked offers it at once.
func (l *Lane) standBy(ctx context.Context) (pin string, left uint64) {
	told := false // one line for one outage, however long
	for ctx.Err() == nil {
		within, left, err := l.adopt(ctx)
		if err == nil {
			pin, err = l.probe(ctx, within)
		}
		switch {
		case pin != "":
			l.log.Info("lane_owned")
			return pin, left
		case err != nil && ctx.Err() == nil:
			if !told {
				l.log.Warn("lane_waiting", "error", err.Error())
			}
			told = true
			_ = natsio.Sleep(ctx, l.ttl/4) // its error is ctx's, which the loop reads
		default:
			told = false
		}
	}
	return "", 0
}

// Parts of the time that a pin lasts, for which a message is waited for: less
// where somebody has the lane and events unacked. Should that one be dead, then
// nothing tells the end of its pin but another look.
const (
	ttlPartProbe     = 2
	ttlPartProbeHeld = 8
)

// adopt resets the lane if nobody owns it and somebody left events unacked; left
// is the last one that was delivered then. It returns for how long to wait for a
// message before the next look.
func (l *Lane) adopt(ctx context.Context) (within time.Duration, left uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, max(l.ttl, time.Second))
	defer cancel()
	info, err := l.look(ctx)
	switch {
	case err != nil:
		return 0, 0, natsio.Typed(err)
	case info.Unacked == 0:
		return l.ttl / ttlPartProbe, 0, nil
	case info.Pin != "":
		return l.ttl / ttlPartProbeHeld, 0, nil
	}
	l.log.Info("lane_adopted", "unacked", info.Unacked)
	_, err = l.reset(ctx)
	return l.ttl / ttlPartProbe, info.Delivered, natsio.Typed(err)
}

// leftTo returns the last event that a former owner was given and that is not
// acknowledged, or left if there is none: with the pin comes one unacked event of
// this client's. If the server does not answer, the lane counts as handed over.
func (l *Lane) leftTo(ctx context.Context, left uint64) uint64 {
	ctx, cancel := context.WithTimeout(ctx, l.ttl/2)
	defer cancel()
	info, err := l.server.Info(ctx)
	if err != nil || info.Unacked <= 1 {
		return left
	}
	return max(left, info.Delivered)
}

// probe asks for one message without a pin, and waits for it. The client that gets
// one is pinned. The message itself is dropped: the reset that follows brings it
// again, in its place.
func (l *Lane) probe(ctx context.Context, within time.Duration) (pin string, err error) {
	inbox, msgs, stop, err := l.server.Listen(8)
	if err != nil {
		return "", natsio.Typed(err)
	}
	defer stop()
	err = l.server.Pull(natsio.ReplySubject(inbox, 1), PullRequest{
		Batch: 1, Expires: within, Group: subjects.LaneGroup,
	})
	if err != nil {
		return "", natsio.Typed(err)
	}
	silence := time.NewTimer(l.ttl)
	defer silence.Stop()
	var m *nats.Msg
	select {
	case <-ctx.Done():
		stop()
		l.withdraw(ctx)
		select {
		case m = <-msgs: // it was on its way: the pin is to be given back
		default:
			return "", nil
		}
	case m = <-msgs:
	case <-silence.C:
		select {
		case m = <-msgs: // it arrived in time; this goroutine ran late
		default:
			return "", errSilent
		}
	}
	if status, ok := readStatus(inbox, m); ok {
		return "", status.fault()
	}
	return l.pinOf(ctx, m)
}

// withdraw makes the server drop a request that nobody listens for any more, by
// asking for the consumer's state. Else it may pin that request, and then nobody
// has the lane for as long as a pin lasts. If it fails, that may happen.
func (l *Lane) withdraw(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(l.ttl/2, time.Second/2))
	defer cancel()
	_, _ = l.server.Info(ctx)
}

var (
	errSilent = errors.New("the server does not answer: it may be restarting, or the consumer has no leader")
	errNoPin  = errors.New("the server pins no client: it needs nats-server 2.14 or later, and the consumer's priority policy")
)

// pinOf returns the pin that a delivery tells. The server appends its header
// to those of the publisher, who may have written one of the same name.
func (l *Lane) pinOf(ctx context.Context, m *nats.Msg) (string, error) {
	if pins := m.Header.Values(subjects.HeaderPinID); len(pins) > 0 {
		return pins[len(pins)-1], nil
	}
	// Headers that don't parse hide the server's own. The pin is fresh, so it
	// is still the one that the consumer knows.
	ctx, cancel := context.WithTimeout(ctx, l.ttl/2)
	defer cancel()
	info, err := l.server.Info(ctx)
	if err != nil {
		return "", natsio.Typed(err)
	}
	if info.Pin != "" {
		return info.Pin, nil
	}
	return "", errNoPin
}
