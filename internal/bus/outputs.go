package bus

import (
	"bytes"
	"context"
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
// bridge's claim changes nothing and is no error. Notices are stored last, those
// of a session in order, and none behind an output of it that failed: what they
// say is so. A payload that is too large is a *MaxPayloadError. When ctx
// ends before all is known, errors wrap ErrUnknownOutcome; storing all again is
// safe.
func (b *Bus) Store(ctx context.Context, outputs []Output) []error {
	errs, failed := make([]error, len(outputs)), map[string]int{}
	for _, last := range []bool{false, true} {
		c := b.effects
		if last {
			c = b.notices
		}
		b.storeSome(ctx, c, outputs, errs, failed, last)
	}
	return errs
}

// storeSome stores the notices among outputs, or all else, through c. failed
// has the first output of a session that failed.
func (b *Bus) storeSome(ctx context.Context, c *committer, outputs []Output, errs []error, failed map[string]int, notices bool) {
	n := 0
	for i := range outputs {
		if (outputs[i].Notice != nil) == notices {
			n++
		}
	}
	writes, of := make([]*write, 0, n), make([]int, 0, n)
	for i := range outputs {
		o := &outputs[i]
		if (o.Notice != nil) != notices {
			continue
		}
		if first, some := failed[o.Session]; notices && some && first < i {
			errs[i] = errOrder
			continue
		}
		w, err := b.writeOf(o)
		if err != nil {
			errs[i] = err
			note(failed, o.Session, i)
			continue
		}
		writes, of = append(writes, w), append(of, i)
	}
	err := c.commit(ctx, writes)
	for at, i := range of {
		w := writes[at]
		if errs[i] = err; err == nil {
			errs[i] = outcomeOf(&outputs[i], w)
		}
		if errs[i] != nil {
			errs[i] = fmt.Errorf("store %s: %w", w.subject, errs[i])
			note(failed, outputs[i].Session, i)
		}
	}
}

// note notes that output i of a session failed.
func note(failed map[string]int, sid string, i int) {
	if first, some := failed[sid]; !some || i < first {
		failed[sid] = i
	}
}

// writeOf returns the write that an output is.
func (b *Bus) writeOf(o *Output) (*write, error) {
	switch {
	case o.Effect != nil:
		return b.effectWrite(o.Session, o.Effect)
	case o.Withdraw != "":
		return b.claimWrite(o.Session, o.Withdraw, 1, []byte(withdrawn))
	default:
		return b.noticeWrite(o.Session, o.N, o.Notice)
	}
}

// outcomeOf returns the error of an output whose write has its outcome.
func outcomeOf(o *Output, w *write) error {
	if w.err != nil {
		return w.err
	}
	if o.Effect != nil && w.held != nil && !bytes.Equal(w.held, w.data) {
		return &ViolationError{Subject: w.subject, Stored: w.held, Wanted: w.data}
	}
	return nil
}
