package delivery

import (
	"context"
	"errors"
	"time"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

var errPinLost = errors.New("another has the pin")

// turn waits until no lane of this process is being reset but this one, and
// keeps the pin meanwhile; the caller calls done when it is.
//
// A reset has the server count what is pending, by a look at every subject of
// the lane: with a million sessions in the log that is half a second for each,
// in which the consumer hears nothing. Of eight at a time each took longer than a
// pin lasts, and so a host that took all lanes lost them, and began again.
func (l *Lane) turn(ctx context.Context, pin string) (done func(), err error) {
	done = func() { <-l.resetMu }
	select {
	case l.resetMu <- struct{}{}:
		return done, nil
	default:
	}
	inbox, msgs, unlisten, err := l.server.Listen(8)
	if err != nil {
		return nil, err
	}
	defer unlisten()
	tick := time.NewTicker(l.ttl / ttlPartKeep)
	defer tick.Stop()
	request := uint64(0)
	keep := func() error { // by a request that expires as it arrives, and so brings nothing
		request++
		return l.server.Pull(natsio.ReplySubject(inbox, request), PullRequest{Batch: 1, Expires: time.Nanosecond, Group: subjects.LaneGroup, Pin: pin})
	}
	for err = keep(); err == nil; {
		select {
		case l.resetMu <- struct{}{}:
			return done, nil
		case <-tick.C:
			err = keep()
		case m := <-msgs:
			if status, ok := readStatus(inbox, m); ok && status.code == statusWrongPin {
				err = errPinLost
			}
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return nil, err
}

// resetInTurn is reset for the owner of this pin. Without a pin (adopt) there is no
// turn to wait for: should the reset take longer than its caller waits, it happens
// even so, and is not asked for again.
func (l *Lane) resetInTurn(ctx context.Context, pin string) (pending uint64, err error) {
	done, err := l.turn(ctx, pin)
	if err != nil {
		return 0, err
	}
	defer done()
	return l.reset(ctx)
}

// giveBack ends the last epoch of a run: it makes sure of the acks, and unpins the lane
// even if that failed, with a time limit of its own. The next owner resets the lane
// itself, or waits for as long as a pin lasts.
func (l *Lane) giveBack(ctx context.Context, e *epoch) {
	ctx = context.WithoutCancel(ctx)
	last := e.window.end()
	e.unlisten()
	if last != "" && l.server.Reconnects() != e.reconnects {
		last = "" // see natsio.Conn.Incarnation
	}
	err := l.offer(ctx, e.pin, last)
	if errors.Is(err, errPinLost) {
		e.log.Info("lane_lost")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, max(l.ttl, time.Second))
	defer cancel()
	if err = errors.Join(err, l.server.Unpin(ctx)); err != nil {
		e.log.Warn("lane_given_back_late", "error", err.Error())
		return
	}
	e.log.Info("lane_given_back")
}

// offer has the server offer unacked events to the next owner at once: a process that
// stands by would find them only when it looks again. With nothing unacked, by the
// server's count, there is no reset. last is the last ack, if any.
func (l *Lane) offer(ctx context.Context, pin, last string) error {
	ctx, cancel := context.WithTimeout(ctx, max(l.ttl, time.Second))
	defer cancel()
	if last != "" {
		// A repeated ack with an answer: those before it are processed then.
		if err := l.server.AckSure(ctx, last); err != nil {
			return err
		}
	}
	info, err := l.server.Info(ctx)
	switch {
	case err != nil:
		return err
	case info.Pin != "" && info.Pin != pin:
		return errPinLost
	case info.Unacked == 0:
		return nil
	}
	_, err = l.resetInTurn(ctx, pin)
	return err
}
