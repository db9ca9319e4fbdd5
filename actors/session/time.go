package session

import (
	"math"
	"slices"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/codec"
)

// isWokenBy reports whether a wake is due by a deadline.
func (s *State) isWokenBy(deadline int64) bool {
	return slices.ContainsFunc(s.Wakes, func(w OpenWake) bool { return w.Due <= deadline })
}

// needWake ensures that a wake is due by deadline, the earliest of all that is open
// after an event. A session keeps at most one useful wake open: a new one is opened
// only if none is due by then.
func (s *State) needWake(deadline int64) {
	if s.isWokenBy(deadline) {
		return
	}
	if len(s.Wakes) >= WakesMax {
		// The wake due last is of no use any more: the new one comes before it and
		// opens the next. It is withdrawn; its schedule still fires, and that
		// settlement has no effect. A wake of a schedule stays.
		last := -1
		for i := range s.Wakes {
			if s.scheduleOfWake(s.Wakes[i].Number) == nil && (last < 0 || s.Wakes[i].Due > s.Wakes[last].Due) {
				last = i
			}
		}
		s.withdraw(Place{kind: kindWake, n: s.Wakes[last].Number})
		s.Wakes = slices.Delete(s.Wakes, last, last+1)
	}
	s.WakesAsked++
	s.Wakes = append(s.Wakes, OpenWake{At: s.Clock, Due: deadline, Number: s.WakesAsked})
}

// wakes is the folder of the effects of class wake.
type wakes struct{}

func (wakes) decode(typ string, data codec.Raw) (any, string, *refusal) {
	if typ == TypeScheduleFired {
		b := &ScheduleFired{}
		bad := decodeBody(data, b)
		return b, b.Effect, bad
	}
	b := &WakeSettled{}
	bad := decodeBody(data, b)
	return b, b.Effect, bad
}

func (wakes) status(s *State, p Place) (codec.Hash, effectStatus) {
	switch {
	case p.n > s.WakesAsked:
		return codec.Hash{}, effectUnknown
	case s.wakeAt(p.n) >= 0:
		return codec.Hash{}, effectOpen
	}
	return codec.Hash{}, effectOver
}

func (s *State) wakeAt(n uint32) int {
	return slices.IndexFunc(s.Wakes, func(w OpenWake) bool { return w.Number == n })
}

// settle folds the settlement of a wake. It advances the clock to at least the
// wake's due, and then settles whatever is overdue from state alone. What a run's deadline
// ends is over when a schedule fires.
func (wakes) settle(s *State, p Place, b *settlement) *refusal {
	at := s.wakeAt(p.n)
	s.Clock = max(s.Clock, s.Wakes[at].Due)
	s.Wakes = slices.Delete(s.Wakes, at, at+1)
	s.settleOverdue()
	for _, of := range numberedClasses {
		of.settleOverdue(s)
	}
	s.settleSchedule(p.n, b)
	return nil
}

func (wakes) open(s *State, index int) (uint32, bool) {
	if index >= len(s.Wakes) {
		return 0, false
	}
	return s.Wakes[index].Number, true
}

func (wakes) deadline(*State) int64 { return noDeadline }

func (wakes) settleOverdue(*State) {}

// settleOverdue settles everything whose deadline has passed. The model is told
// that an unsafe call may have taken effect: claims are not in the log, so the fold
// can't know more, and a live bridge would have settled the call before.
func (s *State) settleOverdue() {
	run, t := s.Run, s.Turn
	s.repeatStops()
	switch {
	case run == nil:
	case run.Deadline > 0 && run.Deadline <= s.Clock && run.Lifecycle != Paused:
		s.stopRun(Ended{Lifecycle: Failed, Code: CodeRunDeadline, Detail: sentence.Say(sentence.RunDeadline)})
	case !s.turnIsRuns():
	case t.stepOpen():
		if t.Step.Deadline <= s.Clock {
			s.withdraw(t.step())
			s.fallBack(CodeDeadlineExceeded, noSettlement("step/"+run.Config.StepHook.Hook))
		}
	case t.RetryAt > 0:
		if t.RetryAt <= s.Clock && run.Lifecycle != Paused {
			s.nextAttempt()
			s.openGeneration()
		}
	case t.Open:
		if t.Deadline <= s.Clock {
			t.Open = false
			s.withdraw(s.generation())
			detail := noSettlement("llm/" + s.generationProvider())
			failed := Fault{Code: CodeDeadlineExceeded, Detail: detail.String(), Retryable: true}
			s.turnFailed(&failed)
			s.generationFailed(failed, detail)
		}
	case t.Batch != nil:
		s.settleOverdueCalls()
		s.repeatChildren()
	}
}

// settleOverdueCalls settles the calls of the batch whose deadline has passed, and
// denies those that nobody decided over in time.
func (s *State) settleOverdueCalls() {
	t, overdue := s.Turn, false
	for i := range t.Batch.Calls {
		c := &t.Batch.Calls[i]
		switch {
		case c.Status == CallAwaiting && c.Approval.Deadline <= s.Clock:
			overdue = true
			s.endCall(i, CallIgnored, CodeApprovalExpired, sentence.Say(sentence.NotDecided))
		case c.Status == CallOpen && c.Deadline <= s.Clock:
			overdue = true
			s.settleOverdueCall(i)
		}
	}
	if overdue {
		s.closeGroup()
	}
}

// settleOverdueCall ends open call i without its settlement.
func (s *State) settleOverdueCall(i int) {
	t := s.Turn
	c := &t.Batch.Calls[i]
	if s.needsNobody(c) {
		s.waitIsOver(i)
		return
	}
	tool := s.tool(c.ToolID)
	from := "host loop " + tool.Executor.Target
	switch {
	case c.Sync > 0:
		from = "space/" + s.readEnable(c.Arguments).target()
		s.endSyncOf(c, CodeDeadlineExceeded, noSettlement(from))
	case s.isChild(c):
		from = "session " + c.Child.Session
	case !s.isUnbridged(c):
		from = "tool/" + callTarget(tool, c.Host)
		s.withdraw(t.call(i))
	}
	detail := noSettlement(from)
	if tool.RetrySafe {
		s.endCall(i, CallFailed, CodeDeadlineExceeded, detail)
		return
	}
	s.endCall(i, CallUnknown, CodeOutcomeUnknown, detail.And(sentence.MayHaveRun))
}

// withdraw adds a withdrawal of an effect to the event's outputs. It must be called
// before the state that opened the effect changes.
func (s *State) withdraw(p Place) {
	e := s.effect(p, nil)
	w := Withdrawal{Name: e.Name, Class: e.Class, Target: e.Target, Claimed: e.Claimed}
	if w.Claimed {
		w.Hash = codec.Sum(e.Payload)
	}
	s.withdrawn = append(s.withdrawn, w)
}

// noDeadline is later than all deadlines.
const noDeadline = math.MaxInt64

// nextDeadline returns the earliest deadline of everything that is open.
func (s *State) nextDeadline() (int64, bool) {
	next := s.runDeadline()
	for _, of := range numberedClasses {
		next = min(next, of.deadline(s))
	}
	return next, next != noDeadline
}

// runDeadline returns the earliest deadline of the active run and its open effects.
func (s *State) runDeadline() int64 {
	next, run, t := s.stopsRepeated(), s.Run, s.Turn
	if run == nil {
		return next
	}
	if run.Deadline > 0 && run.Lifecycle != Paused {
		next = min(next, run.Deadline)
	}
	switch {
	case !s.turnIsRuns():
	case t.stepOpen():
		next = min(next, t.Step.Deadline)
	case t.Open:
		next = min(next, t.Deadline)
	case t.RetryAt > 0:
		if run.Lifecycle != Paused {
			next = min(next, t.RetryAt)
		}
	case t.Batch != nil:
		for i := range t.Batch.Calls {
			switch c := &t.Batch.Calls[i]; c.Status {
			case CallOpen:
				next = min(next, c.Deadline)
				if c.Child != nil {
					next = min(next, c.Child.Repeat)
				}
			case CallAwaiting:
				next = min(next, c.Approval.Deadline)
			}
		}
	}
	return next
}
