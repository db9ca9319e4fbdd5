package delivery

import (
	"context"
	"errors"
	"time"
)

var errPinLost = errors.New("another client has the pin")

// lockResets waits until no other lane of this process is being reset, and keeps the
// pin meanwhile. The caller must call done after its reset.
//
// For a reset the server counts the pending events over all subjects of the lane. With
// a million sessions in the log that takes half a second, in which the consumer answers
// nothing. Eight concurrent resets each took longer than a pin lasts, so a process that
// took over all lanes lost them again and again.
func (l *Lane) lockResets(ctx context.Context, pin string) (done func(), err error) {
	done = func() { <-l.resetMu }
	select {
	case l.resetMu <- struct{}{}:
		return done, nil
	default:
	}
	in, err := l.listen(8)
	if err != nil {
		return nil, err
	}
	defer in.stop()
	tick := time.NewTicker(l.ttl / ttlPartKeep)
	defer tick.Stop()
	for err = in.ask(keepsPin(pin)); err == nil; {
		select {
		case l.resetMu <- struct{}{}:
			return done, nil
		case <-tick.C:
			err = in.ask(keepsPin(pin))
		case m := <-in.msgs:
			if status, ok := in.status(m); ok && status.code == statusWrongPin {
				err = errPinLost
			}
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return nil, err
}

// resetInTurn is reset for the owner of this pin, after lockResets. claimOrphan has no
// pin and does not wait: its reset happens even if it takes longer than the caller
// waits, and is not repeated.
func (l *Lane) resetInTurn(ctx context.Context, pin string) (pending uint64, err error) {
	done, err := l.lockResets(ctx, pin)
	if err != nil {
		return 0, err
	}
	defer done()
	return l.reset(ctx)
}

// giveBack ends the last epoch of a run: it confirms the acks, and then unpins the
// lane, even after a failure. Each step has a timeout. After a failure the next owner
// resets the lane itself, or waits until the pin expires.
func (l *Lane) giveBack(ctx context.Context, e *epoch) {
	ctx = context.WithoutCancel(ctx)
	last := e.window.end()
	e.stop()
	if last != "" && l.server.Reconnects() != e.reconnects {
		last = "" // see natsio.Conn.Incarnation
	}
	err := l.offerUnacked(ctx, e.pin, last)
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

// offerUnacked resets the lane, so that the server offers unacked events to the next
// owner at once; a stand-by would find them only at its next check. If the server has no
// unacked events there is no reset. last is the reply subject of the last ack, if any.
func (l *Lane) offerUnacked(ctx context.Context, pin, last string) error {
	ctx, cancel := context.WithTimeout(ctx, max(l.ttl, time.Second))
	defer cancel()
	if last != "" {
		// Repeats the ack as a request: its answer confirms all earlier acks.
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
