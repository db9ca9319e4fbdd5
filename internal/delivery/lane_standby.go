package delivery

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// standBy waits until the server pins this client, and returns the pin; empty when ctx
// ends. left is the last event that a dead owner had received, if this client reset the
// lane.
//
// The server pins a client only when it has a message to deliver, and it redelivers a
// dead owner's events only after ack_wait. On a quiet lane the stand-by would wait that
// long. So it resets a lane that has unacked events and no owner, and the server offers
// them at once.
func (l *Lane) standBy(ctx context.Context) (pin string, left uint64) {
	warned := false // one line for an outage, however long
	for ctx.Err() == nil {
		timeout, left, err := l.claimOrphan(ctx)
		if err == nil {
			pin, err = l.probe(ctx, timeout)
		}
		switch {
		case pin != "":
			l.log.Info("lane_owned")
			return pin, left
		case err != nil && ctx.Err() == nil:
			if !warned {
				l.log.Warn("lane_waiting", "error", err.Error())
			}
			warned = true
			_ = natsio.Sleep(ctx, l.ttl/4) // the loop checks ctx
		default:
			warned = false
		}
	}
	return "", 0
}

// How long a probe waits, as fractions of the time that a pin lasts. It waits less if an
// owner has unacked events: the owner may be dead, and no message reports the end of its
// pin.
const (
	ttlPartProbe     = 2
	ttlPartProbeHeld = 8
)

// claimOrphan resets the lane if it has unacked events and no owner; left is the last
// delivered event then. timeout is how long to probe before the next check.
func (l *Lane) claimOrphan(ctx context.Context) (timeout time.Duration, left uint64, err error) {
	info, err := l.info(ctx)
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

// leftBy returns the last event that a former owner received, if it left unacked
// events, or else left. One unacked event is this client's, delivered with the pin. If
// the server does not answer, the lane counts as handed over.
func (l *Lane) leftBy(ctx context.Context, left uint64) uint64 {
	ctx, cancel := context.WithTimeout(ctx, l.ttl/2)
	defer cancel()
	info, err := l.server.Info(ctx)
	if err != nil || info.Unacked <= 1 {
		return left
	}
	return max(left, info.Delivered)
}

// probe requests one message without a pin and waits for it: the server pins the client
// that gets one. The message is dropped, since the reset that follows delivers it again
// in order.
func (l *Lane) probe(ctx context.Context, timeout time.Duration) (pin string, err error) {
	in, err := l.listen(8)
	if err != nil {
		return "", err
	}
	defer in.stop()
	if err := in.ask(PullRequest{Batch: 1, Expires: timeout, Group: subjects.LaneGroup}); err != nil {
		return "", natsio.Typed(err)
	}
	silence := time.NewTimer(l.ttl)
	defer silence.Stop()
	var m *nats.Msg
	select {
	case <-ctx.Done():
		in.stop()
		l.withdraw(ctx)
		select {
		case m = <-in.msgs: // it had been sent already: Run gives the pin back
		default:
			return "", nil
		}
	case m = <-in.msgs:
	case <-silence.C:
		select {
		case m = <-in.msgs: // it arrived in time; this goroutine was scheduled late
		default:
			return "", errSilent
		}
	}
	if status, ok := in.status(m); ok {
		return "", status.fault()
	}
	return l.pinOf(ctx, m)
}

// withdraw makes the server drop a request without a subscriber, by reading the
// consumer's state. Otherwise the server may pin that request, and then the lane has no
// owner until the pin expires. The same may happen if withdraw fails.
func (l *Lane) withdraw(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(l.ttl/2, time.Second/2))
	defer cancel()
	_, _ = l.server.Info(ctx)
}

var (
	errSilent = errors.New("the server does not answer: it may be restarting, or the consumer has no leader")
	errNoPin  = errors.New("the server pins no client: it needs nats-server 2.14 or later, and the consumer's priority policy")
)

// pinOf returns the pin in a delivery's headers. The server appends its header after
// the publisher's, which may have the same name.
func (l *Lane) pinOf(ctx context.Context, m *nats.Msg) (string, error) {
	if pins := m.Header.Values(subjects.HeaderPinID); len(pins) > 0 {
		return pins[len(pins)-1], nil
	}
	// Headers that don't parse hide the server's header. The pin is new, so the
	// consumer still has it.
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
