package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/refold/refold/actors/session"
)

// Output is one message that the owner of a session stores: an effect that is
// asked, the withdrawal of one, or a notice. One of the three is given.
type Output struct {
	Session  string
	Effect   *session.Effect
	Withdraw string // name of an effect whose claim is stored as withdrawn
	Notice   []byte // JSON
	N        uint64 // number of the notice; 0: one that no fold says
}

// Store stores outputs together, and returns the error of each, nil if it is
// stored.
//
// An effect's name takes one message: asking twice is asking once, and other
// bytes under the name are a *ViolationError. A withdrawal that comes after a
// bridge's claim changes nothing and is no error. The notices of a session are
// stored in order, and after one that fails none; all of them after the
// withdrawals. A payload that is too large is a *MaxPayloadError. When ctx ends
// before all is known, each error wraps ErrUnknownOutcome; storing all again is
// safe.
func (b *Bus) Store(ctx context.Context, outputs []Output) []error {
	errs, writes := make([]error, len(outputs)), make([]*write, len(outputs))
	var effects, notices []*write
	withdraws, unsaid := false, map[string]bool{}
	for i := range outputs {
		o := &outputs[i]
		switch w, err := b.writeOf(o); {
		case err != nil:
			errs[i] = err
			unsaid[o.Session] = unsaid[o.Session] || o.Notice != nil
		case o.Notice == nil:
			writes[i], effects = w, append(effects, w)
			withdraws = withdraws || o.Withdraw != ""
		case unsaid[o.Session]:
			errs[i] = errOrder
		default:
			writes[i], notices = w, append(notices, w)
		}
	}
	err := b.storeBoth(ctx, effects, notices, withdraws)
	for i, w := range writes {
		if w == nil {
			continue
		}
		if errs[i] = err; err == nil {
			errs[i] = outcomeOf(&outputs[i], w)
		}
		if errs[i] != nil {
			errs[i] = fmt.Errorf("store %s: %w", w.msg.Subject, errs[i])
		}
	}
	return errs
}

// storeBoth stores the writes of two streams, which wait for one another only
// behind a withdrawal: who hears that a run is cancelled can rely on it.
func (b *Bus) storeBoth(ctx context.Context, effects, notices []*write, withdraws bool) error {
	asking, err := b.effects.begin(ctx, effects)
	if err == nil && withdraws {
		err = b.effects.wait(asking)
	}
	if err != nil {
		return err
	}
	telling, err := b.notices.begin(ctx, notices)
	return errors.Join(err, b.notices.wait(telling), b.effects.wait(asking))
}

// writeOf returns the write that an output is.
func (b *Bus) writeOf(o *Output) (*write, error) {
	switch {
	case o.Effect != nil:
		msg, err := b.effectMsg(o.Session, *o.Effect)
		if err != nil {
			return nil, err
		}
		return fenced(msg), nil
	case o.Withdraw != "":
		msg, err := b.claimMsg(o.Session, o.Withdraw, 1, []byte(withdrawn))
		if err != nil {
			return nil, err
		}
		return fenced(msg), nil
	default:
		msg, err := b.noticeMsg(o.Session, o.N, o.Notice)
		if err != nil {
			return nil, err
		}
		return &write{msg: msg, order: o.Session}, nil
	}
}

// outcomeOf returns the error of an output whose write has its outcome.
func outcomeOf(o *Output, w *write) error {
	if w.err != nil {
		return w.err
	}
	if o.Effect != nil && w.held != nil && !bytes.Equal(w.held, w.msg.Data) {
		return &ViolationError{Subject: w.msg.Subject, Stored: w.held, Wanted: w.msg.Data}
	}
	return nil
}
