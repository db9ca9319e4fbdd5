package session

import "slices"

// needWake sees to it that a wake is due by deadline, the earliest of all that
// is open after an event. A session keeps at most one useful wake open: a new
// one is asked only if none is due by then.
func (s *State) needWake(deadline int64) {
	for i := range s.Wakes {
		if s.Wakes[i].Due <= deadline {
			return
		}
	}
	if len(s.Wakes) == WakesMax {
		// The one due last is of no use any more: this one comes before it
		// and asks for the next. It is withdrawn; its schedule still fires, and
		// that settlement has no effect.
		last := 0
		for i := range s.Wakes {
			if s.Wakes[i].Due > s.Wakes[last].Due {
				last = i
			}
		}
		s.withdraw(Place{wake: s.Wakes[last].Number, call: -1})
		s.Wakes = slices.Delete(s.Wakes, last, last+1)
	}
	s.WakesAsked++
	s.Wakes = append(s.Wakes, OpenWake{At: s.Clock, Due: deadline, Number: s.WakesAsked})
}

// wakeStatus returns what the session knows of wake n.
func (s *State) wakeStatus(n uint32) effectStatus {
	if n > s.WakesAsked {
		return effectUnknown
	}
	for i := range s.Wakes {
		if s.Wakes[i].Number == n {
			return effectOpen
		}
	}
	return effectOver
}

// settleWake folds the settlement of open wake n: the clock is at least its
// due, and what is overdue then is settled from state alone.
func (s *State) settleWake(n uint32) {
	at := slices.IndexFunc(s.Wakes, func(w OpenWake) bool { return w.Number == n })
	s.Clock = max(s.Clock, s.Wakes[at].Due)
	s.Wakes = slices.Delete(s.Wakes, at, at+1)
	s.settleOverdue()
	s.settleOverdueSyncs()
}

// settleOverdue settles everything whose deadline has come. An unsafe call may
// have taken effect, and the model is told so; claims are not in the log, so
// the fold can't know better, and a live bridge has said better before.
func (s *State) settleOverdue() {
	run, t := s.Run, s.Turn
	switch {
	case run == nil:
	case run.Deadline > 0 && run.Deadline <= s.Clock && run.Lifecycle != Paused:
		s.stopRun(Ended{Lifecycle: Failed, Code: CodeRunDeadline, Detail: "the run's deadline has passed"})
	case !s.turnIsRuns():
	case t.stepOpen():
		if t.Step.Deadline <= s.Clock {
			s.withdraw(Place{run: t.Run, turn: t.Number, call: -1, step: true})
			s.fallBack(CodeDeadlineExceeded, "no settlement from step/"+run.Config.StepHook.Hook+" by its deadline")
		}
	case t.RetryAt > 0:
		if t.RetryAt <= s.Clock && run.Lifecycle != Paused {
			t.Attempt++
			s.forgetGenerationsHash()
			s.openGeneration()
		}
	case t.Open:
		if t.Deadline <= s.Clock {
			t.Open = false
			s.withdraw(Place{run: t.Run, turn: t.Number, attempt: uint32(t.Attempt), call: -1})
			failed := Fault{
				Code: CodeDeadlineExceeded, Detail: "no settlement from llm/" + run.Config.Provider + " by its deadline", Retryable: true,
			}
			s.turnFailed(&failed)
			s.generationFailed(failed)
		}
	case t.Batch != nil:
		s.settleOverdueCalls()
	}
}

// settleOverdueCalls settles the calls of the batch whose deadline has come,
// and denies those over which nobody decided in time.
func (s *State) settleOverdueCalls() {
	t, overdue := s.Turn, false
	for i := range t.Batch.Calls {
		c := &t.Batch.Calls[i]
		switch {
		case c.Status == CallAwaiting && c.Approval.Deadline <= s.Clock:
			overdue = true
			s.endCall(i, CallIgnored, CodeApprovalExpired, "nobody decided over the call in time: it was not run")
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
	tool := s.tool(c.ToolID)
	from := "host loop " + tool.Executor.Target
	if c.Sync > 0 {
		from = "space/" + s.readEnable(c.Arguments).target()
		s.endSyncOf(c, CodeDeadlineExceeded, noSettlement(from))
	} else if !s.isHostLoop(c) {
		from = "tool/" + callTarget(tool, c.Host)
		s.withdraw(Place{run: t.Run, turn: t.Number, call: int32(i)})
	}
	detail := noSettlement(from)
	if tool.RetrySafe {
		s.endCall(i, CallFailed, CodeDeadlineExceeded, detail)
		return
	}
	s.endCall(i, CallUnknown, CodeOutcomeUnknown, detail+"; it may have taken effect")
}

// withdraw makes the end of the effect at a place an output of this event. The
// state is still what it was asked from.
func (s *State) withdraw(p Place) {
	e := s.effect(p, nil)
	s.withdrawn = append(s.withdrawn, Withdrawal{Name: e.Name, Class: e.Class, Target: e.Target, Claimed: e.Claimed})
}

// nextDeadline returns the earliest deadline of all that is open.
func (s *State) nextDeadline() (int64, bool) {
	next, any := int64(0), false
	add := func(deadline int64) {
		if !any || deadline < next {
			next, any = deadline, true
		}
	}
	if s.Spaces != nil {
		for i := range s.Spaces.Syncs {
			add(s.Spaces.Syncs[i].Deadline)
		}
	}
	run, t := s.Run, s.Turn
	if run == nil {
		return next, any
	}
	if run.Deadline > 0 && run.Lifecycle != Paused {
		add(run.Deadline)
	}
	switch {
	case !s.turnIsRuns():
	case t.stepOpen():
		add(t.Step.Deadline)
	case t.Open:
		add(t.Deadline)
	case t.RetryAt > 0:
		if run.Lifecycle != Paused {
			add(t.RetryAt)
		}
	case t.Batch != nil:
		for i := range t.Batch.Calls {
			switch c := &t.Batch.Calls[i]; c.Status {
			case CallOpen:
				add(c.Deadline)
			case CallAwaiting:
				add(c.Approval.Deadline)
			}
		}
	}
	return next, any
}
