package session

import "strconv"

// steerRequested gives the active run input before its next turn. Without an
// active run it starts one.
func (s *State) steerRequested(b *SteerRequested) *refusal {
	if bad := contentFault("input", &b.Input, false); bad != nil {
		return bad
	}
	if b.Run == 0 && s.Run == nil {
		return s.newRun(Run{Config: s.configFor(DoorIn, nil)}, "")
	}
	at, bad := s.addressed(b.Run)
	switch {
	case bad != nil:
		return bad
	case at != active:
		return illegal("steer", Queued)
	case s.Run.Lifecycle == Interrupting:
		return s.newRun(Run{Config: s.Run.requested()}, BusyQueue)
	}
	return s.steer()
}

// steer keeps the input of the event being folded for the active run's next
// turn, and asks that turn if the run waits for input.
func (s *State) steer() *refusal {
	run := s.Run
	if len(run.Steers) >= SteersMax {
		return refuse(RejectLimitExceeded, "the run holds its "+strconv.Itoa(SteersMax)+" steers that no turn has taken")
	}
	run.Steers = append(run.Steers, s.Seq)
	if run.Lifecycle == WaitingInput {
		run.Lifecycle, run.Answer = Running, 0
		s.startTurn()
	}
	return nil
}

// takeSteers puts the steers that wait into the transcript, before the turn
// that is about to be asked.
func (s *State) takeSteers() {
	for _, seq := range s.Run.Steers {
		s.appendItem(Item{Role: RoleUser, Seq: seq})
	}
	s.Run.Steers = nil
}

// requeueSteers makes of steers that an ended run did not take a run at the
// head of the queue. It has no roles: who steers was given none.
func (s *State) requeueSteers(ended *Run) {
	if len(ended.Steers) == 0 || s.Closed {
		return
	}
	s.Runs++
	run := Run{Config: ended.requested(), Number: s.Runs, Seq: ended.Steers[0], Steers: ended.Steers[1:]}
	s.Queue = append([]Run{run}, s.Queue...)
	say(s, NoticeRunQueued, RunPlaced{Run: run.Number, Seq: run.Seq})
}

// requested returns the config that the run was requested with: overrides of
// the run end with it.
func (r *Run) requested() RunConfig {
	config := r.Config
	if o := r.Asked; o != nil {
		config.Disable, config.Enable, config.Force = o.Disable, o.Enable, o.Force
	}
	return config
}
