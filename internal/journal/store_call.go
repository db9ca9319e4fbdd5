package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/refold/refold/internal/natsio"
)

// Groups of outputs, in the order in which they are sent: notices come after the effects
// for which they are held back.
const (
	groupEffects = iota
	groupEvents
	groupWakes
	groupNotices
	groupsMax
)

type storeCall struct {
	journal *Journal
	ctx     context.Context
	outputs []Output
	errs    []error
	failed  map[string]int // index of the first output of a session that failed
	needs   *needed        // the effects for which notices are held back; nil: none
	groups  [groupsMax]outputGroup
	then    func(errs []error)

	mu   sync.Mutex
	open int           // groups without outcomes, and one while groups are begun
	over bool          // it ends, or has ended
	stop []func() bool // ends what waits for the end of ctx and of the committers
}

// outputGroup has the writes that one committer got.
type outputGroup struct {
	to     *committer
	writes []*write
	of     []int // index of each write's output
	waiter *waiter
	err    error
}

// beginFrom sends the n-th group and those after it. Unless it may wait, a goroutine goes
// on with the first one for which a committer has no room.
func (s *storeCall) beginFrom(n int, mayWait bool) {
	j := s.journal
	for ; n < groupsMax; n++ {
		some, to := (*Output).isEffect, j.effects
		switch n {
		case groupEvents:
			some, to = (*Output).isEvent, j.logs
		case groupWakes:
			some, to = (*Output).isWake, j.timers
		case groupNotices:
			some, to = (*Output).isNotice, j.notices
			if effects := s.groups[groupEffects]; effects.err != nil {
				s.end(effects) // so that no notice of their sessions is sent
			} else {
				s.needs = s.neededOf(effects)
			}
		}
		if !mayWait && to.isCrowded() {
			go s.beginFrom(n, true)
			return
		}
		s.groups[n] = s.begin(to, some, s.ended)
		if s.groups[n].waiter == nil {
			s.ended()
		}
	}
	s.mu.Lock()
	s.stop = append(s.stop, context.AfterFunc(s.ctx, func() { s.giveUp(fmt.Errorf("%w: %w", ErrUnknownOutcome, s.ctx.Err())) }))
	for _, g := range s.groups {
		if g.waiter != nil {
			s.stop = append(s.stop, context.AfterFunc(g.to.ended, func() { s.giveUp(natsio.ErrClosed) }))
		}
	}
	s.mu.Unlock()
	s.ended()
}

// ended counts a group that has its outcomes. After the last one it finishes.
func (s *storeCall) ended() {
	s.mu.Lock()
	s.open--
	finish := s.open == 0 && !s.over
	s.over = s.over || finish
	s.mu.Unlock()
	if finish {
		s.finish()
	}
}

// giveUp finishes without the outcomes that are not known yet.
func (s *storeCall) giveUp(err error) {
	s.mu.Lock()
	was := s.over
	s.over = true
	s.mu.Unlock()
	if was {
		return
	}
	for n := range s.groups {
		if g := &s.groups[n]; g.waiter != nil && !g.waiter.hasEnded() {
			g.err = err
		}
	}
	s.finish()
}

// finish records the errors and reports them, unless some outputs must be stored after
// others: then a goroutine does both.
func (s *storeCall) finish() {
	for _, stop := range s.stop {
		stop()
	}
	for _, n := range []int{groupEffects, groupNotices, groupEvents, groupWakes} {
		s.end(s.groups[n])
	}
	effects := s.groups[groupEffects]
	s.take(effects)
	next := s.nextOf(effects)
	if len(next) == 0 && !slices.ContainsFunc(s.outputs, func(o Output) bool { return o.taken || o.held }) {
		s.then(s.errs)
		return
	}
	go func() {
		s.needs = nil
		// Names that hold effects of another system, which has a session of this name.
		s.end(s.begin(s.journal.effects, func(o *Output) bool { return o.taken }, nil))
		s.withdrawNext(next)
		s.end(s.begin(s.journal.notices, func(o *Output) bool { return o.held }, nil))
		s.then(s.errs)
	}()
}

// begin sends the outputs that some selects to a committer. then is called when all have
// their outcomes; nil: nothing is.
func (s *storeCall) begin(to *committer, some func(*Output) bool, then func()) outputGroup {
	g := outputGroup{to: to}
	for i := range s.outputs {
		o := &s.outputs[i]
		if !some(o) {
			continue
		}
		o.held = false
		if first, failed := s.failed[o.Session]; o.Notice != nil && failed && first < i {
			s.errs[i] = errOrder
			continue
		}
		w, err := s.journal.writeOf(o)
		if err != nil {
			s.fail(i, err)
			continue
		}
		if o.Notice != nil {
			w.needs = s.needs
		}
		g.writes, g.of = append(g.writes, w), append(g.of, i)
	}
	var before *committer
	if to == s.journal.effects {
		before = s.journal.notices
	}
	g.waiter, g.err = to.beginBefore(s.ctx, g.writes, before, then)
	return g
}

// neededOf returns the effects that must be stored before the notices of their sessions.
// The committer of notices holds these back, and refuses those of a session with an
// effect that was not stored at once: that may be stored yet.
func (s *storeCall) neededOf(effects outputGroup) *needed {
	if effects.waiter == nil {
		return nil
	}
	of := make([]string, len(effects.of)) // the caller may change its outputs once ctx has ended
	for at, i := range effects.of {
		of[at] = s.outputs[i].Session
	}
	unstored := sync.OnceValue(func() map[string]bool {
		sessions := map[string]bool{}
		for at, w := range effects.writes {
			if w.err != nil || w.foreign || w.existing != nil && !bytes.Equal(w.existing, w.data) {
				sessions[of[at]] = true
			}
		}
		return sessions
	})
	return &needed{effects.waiter, func(session string) bool { return !unstored()[session] }}
}

// end waits for a group and records its errors.
func (s *storeCall) end(g outputGroup) {
	if g.err == nil {
		g.err = g.to.wait(g.waiter)
	}
	for at, i := range g.of {
		w, err := g.writes[at], g.err
		if s.outputs[i].held = err == nil && errors.Is(w.err, errHeld); s.outputs[i].held {
			continue
		}
		if err == nil {
			err = outcomeOf(&s.outputs[i], w)
		}
		if err != nil {
			s.fail(i, fmt.Errorf("store %s: %w", w.subject, err))
		}
	}
}

// take marks the effects whose names hold those of another system, which has a session of
// this name: they are stored under names with the log's identity.
func (s *storeCall) take(g outputGroup) {
	for at, i := range g.of {
		o := &s.outputs[i]
		o.taken = o.Effect != nil && s.errs[i] == nil && g.writes[at].foreign
	}
}

// nextOf returns the withdrawals of a group that met claims of other effects, to be stored
// as the next claims.
func (s *storeCall) nextOf(g outputGroup) map[*Output]bool {
	var next map[*Output]bool
	for at, i := range g.of {
		o := &s.outputs[i]
		if o.Withdraw == nil || s.errs[i] != nil || max(o.N, 1) == ClaimsMax {
			continue
		}
		if w := g.writes[at]; w.existing != nil && (w.foreign || WithdrawsNext(o.Withdraw, w.existing)) {
			o.N = max(o.N, 1) + 1
			if next == nil {
				next = map[*Output]bool{}
			}
			next[o] = true
		}
	}
	return next
}

// withdrawNext stores withdrawals until none meets a claim of another effect.
func (s *storeCall) withdrawNext(next map[*Output]bool) {
	for len(next) > 0 {
		g := s.begin(s.journal.effects, func(o *Output) bool { return next[o] }, nil)
		s.end(g)
		next = s.nextOf(g)
	}
}

func (s *storeCall) fail(i int, err error) {
	s.errs[i] = err
	if first, known := s.failed[s.outputs[i].Session]; !known || i < first {
		s.failed[s.outputs[i].Session] = i
	}
}

// outcomeOf returns the error of an output whose write has an outcome.
func outcomeOf(o *Output, w *write) error {
	var unreadable *UnreadableError
	if o.Withdraw != nil && errors.As(w.err, &unreadable) {
		return nil // it is claimed
	}
	if w.err != nil {
		return w.err
	}
	if o.Effect != nil && w.foreign && !o.taken {
		return nil // storeBeside stores it
	}
	if o.Effect != nil && w.existing != nil && !bytes.Equal(w.existing, w.data) {
		return &ViolationError{Subject: w.subject, Stored: w.existing, Wanted: w.data}
	}
	return nil
}
