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
	s := storing{journal: j, outputs: outputs, errs: make([]error, len(outputs)), failed: map[string]int{}}
	asking := make(map[string]bool, len(outputs)) // sessions with effects or withdrawals
	for i := range outputs {
		if outputs[i].isAsk() {
			asking[outputs[i].Session] = true
		}
	}
	asks := s.begin(ctx, j.effects, (*Output).isAsk)
	wakes := s.begin(ctx, j.timers, (*Output).isWake)
	alone := s.begin(ctx, j.notices, func(o *Output) bool { return o.Notice != nil && !asking[o.Session] })
	s.end(asks)
	s.end(alone)
	s.end(s.begin(ctx, j.notices, func(o *Output) bool { return o.Notice != nil && asking[o.Session] }))
	s.end(wakes) // only the acknowledgement waits for them
	return s.errs
}

// isWake reports whether the output is a message schedule.
func (o *Output) isWake() bool { return o.Effect != nil && o.Effect.Class == session.ClassWake }

// isAsk reports whether the output is another effect, or a withdrawal.
func (o *Output) isAsk() bool { return o.Notice == nil && !o.isWake() }

// storing is one call of Store.
type storing struct {
	journal *Journal
	outputs []Output
	errs    []error
	failed  map[string]int // the first output of a session that failed
}

// begun is what a committer was given, and at which places of the outputs.
type begun struct {
	to     *committer
	writes []*write
	of     []int
	until  *waiter
	err    error
}

// begin gives some of the outputs to a committer.
func (s *storing) begin(ctx context.Context, to *committer, some func(*Output) bool) begun {
	g := begun{to: to}
	for i := range s.outputs {
		o := &s.outputs[i]
		if !some(o) {
			continue
		}
		if first, failed := s.failed[o.Session]; o.Notice != nil && failed && first < i {
			s.errs[i] = errOrder
			continue
		}
		w, err := s.journal.writeOf(o)
		if err != nil {
			s.fail(i, err)
			continue
		}
		g.writes, g.of = append(g.writes, w), append(g.of, i)
	}
	g.until, g.err = to.begin(ctx, g.writes)
	return g
}

// end waits for what was begun, and takes note of what became of it.
func (s *storing) end(g begun) {
	if g.err == nil {
		g.err = g.to.wait(g.until)
	}
	for at, i := range g.of {
		w, err := g.writes[at], g.err
		if err == nil {
			err = outcomeOf(&s.outputs[i], w)
		}
		if err != nil {
			s.fail(i, fmt.Errorf("store %s: %w", w.subject, err))
		}
	}
}

// fail notes that output i failed.
func (s *storing) fail(i int, err error) {
	s.errs[i] = err
	if first, some := s.failed[s.outputs[i].Session]; !some || i < first {
		s.failed[s.outputs[i].Session] = i
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
