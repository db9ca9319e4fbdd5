package session

import "strconv"

// steerRequested gives the active run input before its next turn. Without an active
// run it starts one.
func (s *State) steerRequested(b *SteerRequested) *refusal {
	if bad := inputFault(&b.Input); bad != nil {
		return bad
	}
	if b.Run == 0 && s.Run == nil {
		return s.newRun(Run{Config: s.configFor(), InputBytes: b.Input.shownBytes()}, "")
	}
	at, bad := s.addressed(b.Run)
	switch {
	case bad != nil:
		return bad
	case at != active:
		return illegal("steer", Queued)
	case s.Run.Lifecycle == Interrupting:
		return s.newRun(s.Run.next(b.Input.shownBytes()), BusyQueue)
	}
	return s.steer(b.Input.shownBytes())
}

// steer adds the input of the event being folded to the active run's steers, and
// opens the next turn if the run waits for input. bytes is what a model is shown of
// the input.
func (s *State) steer(bytes int64) *refusal {
	run := s.Run
	if len(run.Steers) >= SteersMax {
		return refuse(RejectLimitExceeded, "the run holds its "+strconv.Itoa(SteersMax)+" steers that no turn has taken")
	}
	run.Steers = append(run.Steers, Steer{Bytes: bytes, Seq: s.Seq})
	if run.Lifecycle == WaitingInput {
		run.Lifecycle, run.Answer, run.Finish = Running, 0, ""
		s.startTurn()
	}
	return nil
}

// takeSteers appends the waiting steers to the transcript, before a turn is opened.
func (s *State) takeSteers() {
	for _, steer := range s.Run.Steers {
		s.appendItem(Item{Role: RoleUser, Seq: steer.Seq}, steer.Bytes)
	}
	s.Run.Steers = nil
}

// requeueSteers makes a run at the head of the queue of the steers that an ended
// run did not take. It has no roles, since steers have none.
func (s *State) requeueSteers(ended *Run) {
	if len(ended.Steers) == 0 || s.Closed {
		return
	}
	s.Runs++
	first := ended.Steers[0]
	run := ended.next(first.Bytes)
	run.Number, run.Seq, run.Steers = s.Runs, first.Seq, ended.Steers[1:]
	s.Queue = append([]Run{run}, s.Queue...)
	notify(s, NoticeRunQueued, run.placed())
}

// seqsOf returns the sequences of steers, nil if there are none.
func seqsOf(steers []Steer) []uint64 {
	var seqs []uint64
	for i := range steers {
		seqs = append(seqs, steers[i].Seq)
	}
	return seqs
}

// next returns a run of steers that r did not take: with what r was requested with,
// but for its roles.
func (r *Run) next(inputBytes int64) Run {
	return Run{Config: r.requested(), Doubt: r.Doubt, InputBytes: inputBytes, Only: r.Only, Operators: r.Operators, Workspace: r.Workspace}
}

// requested returns the config that the run was requested with, without later
// overrides of the run.
func (r *Run) requested() RunConfig {
	config := r.Config
	if o := r.Asked; o != nil {
		config.Disable, config.Enable, config.Force = o.Disable, o.Enable, o.Force
	}
	return config
}
