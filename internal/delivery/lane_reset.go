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
	for request, due := uint64(0), true; ; {
		if due {
			request++
			// It expires as it arrives, so it brings nothing.
			keep := PullRequest{Batch: 1, Expires: time.Nanosecond, Group: subjects.LaneGroup, Pin: pin}
			if err := l.server.Pull(natsio.ReplySubject(inbox, request), keep); err != nil {
				return nil, err
			}
		}
		due = false
		select {
		case l.resetMu <- struct{}{}:
			return done, nil
		case <-tick.C:
			due = true
		case m := <-msgs:
			if status, ok := readStatus(inbox, m); ok && status.code == statusWrongPin {
				return nil, errPinLost
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// resetInTurn is reset for who has this pin. Who has none (adopt) waits for no
// turn: should the reset take longer than that is waited for, it happens even so,
// and is not asked for again.
func (l *Lane) resetInTurn(ctx context.Context, pin string) (pending uint64, err error) {
	done, err := l.turn(ctx, pin)
	if err != nil {
		return 0, err
	}
	defer done()
	return l.reset(ctx)
}

// giveBack ends the last epoch of a run: the acks are made sure of, and the lane
// is unpinned, whatever became of what comes before that, and with a time of its
// own: the next owner resets the lane itself, or waits for as long as a pin lasts.
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

// offer has what is delivered and not acked offered to the next owner at once:
// who stands by would find it only when it looks again. With nothing unacked, by
// the server's count, no reset keeps it busy. last is the last ack, if any.
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
