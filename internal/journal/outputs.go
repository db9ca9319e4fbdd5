package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/subjects"
)

// Output is one message that the owner of a session stores: an effect, the
// withdrawal of one, or a notice. Exactly one of the three is set. An effect of
// class wake is stored as a message schedule.
type Output struct {
	Session  string
	Effect   *session.Effect
	Withdraw *session.Withdrawal // an effect whose claim is stored as withdrawn
	Notice   []byte              // JSON
	N        uint64              // number of the notice; 0: one that no fold says

	Awaited     bool   // a wake that somebody waits for: it is stored as soon as possible
	TraceParent string // header of an effect; empty: none. Owners may differ in it
}

// Store stores outputs together, and returns the error of each, nil if it is
// stored.
//
// An effect's name takes one message. Storing the same effect again does nothing;
// other bytes under the name are a *ViolationError. A wake replaces an earlier one
// of its name and time; one that has fired fires again. A withdrawal after a bridge's
// claim changes nothing and is no error.
//
// The notices of a session are stored in order, after its effects and withdrawals.
// None is stored after an output of the session that failed, so a notice never tells
// of an effect that is not stored.
//
// A payload that is too large is a *MaxPayloadError. A name that is taken and can't
// be read is an *UnreadableError. If ctx ends first, errors wrap ErrUnknownOutcome;
// storing everything again is safe.
func (j *Journal) Store(ctx context.Context, outputs []Output) []error {
	p := newParting(outputs)
	errs, failed := make([]error, len(outputs)), map[string]int{}
	asks := j.begin(ctx, j.effects, outputs, p.asks, errs, failed)
	wakes := j.begin(ctx, j.timers, outputs, p.wakes, errs, failed)
	alone := j.begin(ctx, j.notices, outputs, p.alone, errs, failed)
	j.end(j.effects, asks, outputs, errs, failed)
	j.end(j.notices, alone, outputs, errs, failed)
	behind := j.begin(ctx, j.notices, outputs, p.behind, errs, failed)
	j.end(j.notices, behind, outputs, errs, failed)
	j.end(j.timers, wakes, outputs, errs, failed) // only the acknowledgement waits for them
	return errs
}

// parting splits outputs by when they are stored. It holds their indices.
type parting struct {
	asks   []int // effects and withdrawals: at once
	wakes  []int // message schedules: at once
	alone  []int // notices of sessions without asks: at once
	behind []int // other notices: after the asks
}

func newParting(outputs []Output) (p parting) {
	p.asks = make([]int, 0, len(outputs))
	var asking map[string]bool
	notices := 0
	for i := range outputs {
		switch o := &outputs[i]; {
		case o.Notice != nil:
			notices++
		case o.isWake():
			p.wakes = append(p.wakes, i)
		default:
			p.asks = append(p.asks, i)
		}
	}
	if len(p.asks) > 0 && notices > 0 {
		asking = make(map[string]bool, len(p.asks))
		for _, i := range p.asks {
			asking[outputs[i].Session] = true
		}
	}
	for i := range outputs {
		switch {
		case outputs[i].Notice == nil:
		case asking[outputs[i].Session]:
			p.behind = append(p.behind, i)
		default:
			p.alone = append(p.alone, i)
		}
	}
	return p
}

// isWake reports whether the output is a message schedule.
func (o *Output) isWake() bool { return o.Effect != nil && o.Effect.Class == session.ClassWake }

// begun is what a committer was given, and at which places of the outputs.
type begun struct {
	writes []*write
	of     []int
	until  *waiter
	err    error
}

// begin gives the outputs at some places to c. failed has the first output of a
// session that failed.
func (j *Journal) begin(ctx context.Context, c *committer, outputs []Output, places []int, errs []error, failed map[string]int) (g begun) {
	if len(places) == 0 {
		return g
	}
	g.writes, g.of = make([]*write, 0, len(places)), make([]int, 0, len(places))
	for _, i := range places {
		o := &outputs[i]
		if first, some := failed[o.Session]; o.Notice != nil && some && first < i {
			errs[i] = errOrder
			continue
		}
		w, err := j.writeOf(o)
		if err != nil {
			errs[i] = err
			note(failed, o.Session, i)
			continue
		}
		g.writes, g.of = append(g.writes, w), append(g.of, i)
	}
	g.until, g.err = c.begin(ctx, g.writes)
	return g
}

// end waits for what was begun, and takes note of what became of it.
func (j *Journal) end(c *committer, g begun, outputs []Output, errs []error, failed map[string]int) {
	err := g.err
	if err == nil {
		err = c.wait(g.until)
	}
	for at, i := range g.of {
		w := g.writes[at]
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
func (j *Journal) writeOf(o *Output) (*write, error) {
	switch {
	case o.isWake():
		w, err := j.wakeWrite(o.Session, o.Effect)
		if err == nil {
			w.awaited = o.Awaited
		}
		return w, err
	case o.Effect != nil:
		return j.effectWrite(o.Session, o.Effect, o.TraceParent)
	case o.Withdraw != nil:
		w := o.Withdraw
		name := subjects.EffectName{Class: w.Class, Target: w.Target, Session: o.Session, Effect: w.Name}
		return j.claimWrite(subjects.ClaimName{EffectName: name, N: 1}, []byte(withdrawn))
	default:
		return j.noticeWrite(o.Session, o.N, o.Notice)
	}
}

// outcomeOf returns the error of an output whose write has its outcome.
func outcomeOf(o *Output, w *write) error {
	var unreadable *UnreadableError
	if o.Withdraw != nil && errors.As(w.err, &unreadable) {
		return nil // somebody has claimed it
	}
	if w.err != nil {
		return w.err
	}
	if o.Effect != nil && w.existing != nil && !bytes.Equal(w.existing, w.data) {
		return &ViolationError{Subject: w.subject, Stored: w.existing, Wanted: w.data}
	}
	return nil
}
