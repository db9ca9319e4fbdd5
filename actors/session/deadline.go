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
		// and asks for the next. It is withdrawn; its settlement, if it comes
		// all the same, is stale.
		last := 0
		for i := range s.Wakes {
			if s.Wakes[i].Due > s.Wakes[last].Due {
				last = i
			}
		}
		s.withdraw(wakeName(s.Wakes[last].Number), false)
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
}

// settleOverdue settles every open effect whose deadline has come. An unsafe
// call may have taken effect, and the model is told so; claims are not in the
// log, so the fold can't know better, and a live bridge has said better
// before.
func (s *State) settleOverdue() {
	t := s.Turn
	if s.Run == nil || t == nil {
		return
	}
	if step := t.Step; step != nil && step.Open {
		if step.Deadline <= s.Clock {
			s.withdraw(stepName(t.Run, t.Number), false)
			s.fallBack(CodeDeadlineExceeded, "no settlement from step/"+s.Run.Config.StepHook.Hook+" by its deadline")
		}
		return
	}
	if t.Open && t.Deadline <= s.Clock {
		t.Open = false
		t.Step.forgetGeneration()
		s.withdraw(turnName(t.Run, t.Number), true)
		s.endRun(Ended{Lifecycle: Failed, Code: CodeDeadlineExceeded,
			Detail: "no settlement from llm/" + s.Run.Config.Provider + " by its deadline"}, nil)
		return
	}
	if t.Batch == nil {
		return
	}
	overdue := false
	for i := range t.Batch.Calls {
		c := &t.Batch.Calls[i]
		if c.Status != CallOpen || c.Deadline > s.Clock {
			continue
		}
		overdue = true
		tool := s.tool(c.ToolID)
		from := "host loop " + tool.Executor.Target
		if !s.isHostLoop(c) {
			from = "tool/" + tool.Executor.Target
			s.withdraw(callName(t.Run, t.Number, i), !tool.RetrySafe)
		}
		detail := "no settlement from " + from + " by its deadline"
		if tool.RetrySafe {
			s.endCall(i, CallFailed, CodeDeadlineExceeded, detail)
		} else {
			s.endCall(i, CallUnknown, CodeOutcomeUnknown, detail+"; it may have taken effect")
		}
	}
	if overdue {
		s.closeGroup()
	}
}

// withdraw makes the end of an effect an output of this event.
func (s *State) withdraw(name string, claimed bool) {
	s.withdrawn = append(s.withdrawn, Withdrawal{Name: name, Claimed: claimed})
}

// nextDeadline returns the earliest deadline of all that is open.
func (s *State) nextDeadline() (int64, bool) {
	t := s.Turn
	if s.Run == nil || t == nil {
		return 0, false
	}
	if t.Step != nil && t.Step.Open {
		return t.Step.Deadline, true
	}
	if t.Open {
		return t.Deadline, true
	}
	next, any := int64(0), false
	if t.Batch != nil {
		for i := range t.Batch.Calls {
			if c := &t.Batch.Calls[i]; c.Status == CallOpen && (!any || c.Deadline < next) {
				next, any = c.Deadline, true
			}
		}
	}
	return next, any
}
