package session

import (
	"cmp"
	"iter"
	"slices"
	"strconv"

	"github.com/refold/refold/codec"
)

// active is the index of the active run; other indexes are those of the queue.
const active = -1

// runs yields the active run, if any, and the queued ones, with their indexes.
func (s *State) runs() iter.Seq2[int, *Run] {
	return func(yield func(int, *Run) bool) {
		if s.Run != nil && !yield(active, s.Run) {
			return
		}
		for i := range s.Queue {
			if !yield(i, &s.Queue[i]) {
				return
			}
		}
	}
}

// addressed returns the index of the run that a request names; 0 names the active
// one.
func (s *State) addressed(number uint32) (int, *refusal) {
	if number == 0 || s.Run != nil && s.Run.Number == number {
		if s.Run == nil {
			return 0, refuse(RejectRunNotActive, "no run is active")
		}
		return active, nil
	}
	at := slices.IndexFunc(s.Queue, func(r Run) bool { return r.Number == number })
	if at < 0 {
		return 0, refuse(RejectStale, "run "+strconv.FormatUint(uint64(number), 10)+" is neither active nor queued")
	}
	return at, nil
}

// activeOnly is addressed for requests that only the active run accepts.
func (s *State) activeOnly(number uint32, what string) *refusal {
	at, bad := s.addressed(number)
	if bad == nil && at != active {
		bad = illegal(what, Queued)
	}
	return bad
}

// illegal refuses a request that a run does not accept in its lifecycle.
func illegal(what string, from Lifecycle) *refusal {
	return refuse(RejectIllegalTransition, "a run that is "+string(from)+" takes no "+what)
}

func controlFault(reason string) *refusal {
	if len(reason) > DetailBytesMax {
		return refuse(RejectLimitExceeded, "reason: at most "+strconv.Itoa(DetailBytesMax)+" bytes")
	}
	return nil
}

// runCancelRequested ends the active run at once, or removes a queued one.
func (s *State) runCancelRequested(b *RunControl) *refusal {
	if bad := controlFault(b.Reason); bad != nil {
		return bad
	}
	at, bad := s.addressed(b.Run)
	if bad != nil {
		return bad
	}
	end := Ended{Lifecycle: Cancelled, Code: CodeCancelled, Detail: b.Reason}
	if at == active {
		s.stopRun(end)
		return nil
	}
	run := s.Queue[at]
	s.Queue = slices.Delete(s.Queue, at, at+1)
	notify(s, NoticeRunFinished, RunFinished{
		Run: run.Number, Lifecycle: Cancelled, Code: end.Code, Detail: end.Detail, Untaken: seqsOf(run.Steers),
	})
	return nil
}

// runInterruptRequested lets open effects settle, opens no new ones, and then ends
// the run.
func (s *State) runInterruptRequested(b *RunControl) *refusal {
	if bad := cmp.Or(controlFault(b.Reason), s.activeOnly(b.Run, "interrupt")); bad != nil {
		return bad
	}
	s.interrupt()
	return nil
}

// interrupt gives every call that was not opened its result, and ends the run as
// soon as nothing but wakes is open.
func (s *State) interrupt() {
	run := s.Run
	if run.Lifecycle == Interrupting {
		return
	}
	wasPaused := run.Lifecycle == Paused
	run.endPause(s.Clock)
	run.Lifecycle, run.Before, run.Held, run.Breach = Interrupting, "", "", false
	if wasPaused { // its deadline may have passed before the pause
		defer s.settleOverdue()
	}
	t := s.Turn
	if !s.turnIsRuns() {
		s.endInterrupted()
		return
	}
	t.RetryAt = 0
	if t.Batch != nil && t.isOpen() {
		for i := range t.Batch.Calls {
			if c := &t.Batch.Calls[i]; c.Status == CallWaiting || c.Status == CallAwaiting {
				s.endCall(i, CallCancelled, CodeCancelled, detailNotOpened)
			}
		}
		s.closeGroup()
		return
	}
	if !t.Open && !t.stepOpen() {
		s.endInterrupted()
	}
}

func (s *State) endInterrupted() { s.endRun(Ended{Lifecycle: Interrupted, Code: "", Detail: ""}, nil) }

// turnIsRuns reports whether the latest turn is the active run's.
func (s *State) turnIsRuns() bool { return s.Turn != nil && s.Run != nil && s.Turn.Run == s.Run.Number }

// What the model is told of calls that a cancel or an interrupt ended.
const (
	detailNotOpened  = "the run was stopped before the call was asked"
	detailInProgress = "the run was stopped while the call was in progress; it may have taken effect"
	detailUndecided  = "the run was stopped before anybody decided over the call"
)

// stopRun ends the active run at once: open effects are withdrawn, every call gets
// a result, and the model is not called again.
func (s *State) stopRun(end Ended) {
	t := s.Turn
	if s.turnIsRuns() {
		if t.stepOpen() {
			s.withdraw(t.step())
			t.Step.close()
		}
		if t.Open {
			s.withdraw(t.generation())
			t.Open = false
		}
		t.RetryAt = 0
		if t.Batch != nil && t.isOpen() {
			s.stopCalls()
			s.fileResults()
		}
	}
	s.endRun(end, nil)
}

// stopCalls gives every call of the batch without a result one.
func (s *State) stopCalls() {
	t := s.Turn
	for i := range t.Batch.Calls {
		c := &t.Batch.Calls[i]
		switch c.Status {
		case CallWaiting:
			s.endCall(i, CallCancelled, CodeCancelled, detailNotOpened)
		case CallAwaiting:
			s.endCall(i, CallCancelled, CodeCancelled, detailUndecided)
		case CallOpen:
			if c.Sync > 0 {
				s.endSyncOf(c, CodeCancelled, "the run whose call asked for it was stopped")
			} else if !s.isHostLoop(c) {
				s.withdraw(t.call(i))
			}
			s.endCall(i, CallCancelled, CodeCancelled, detailInProgress)
		}
	}
	t.Batch.Group = len(t.Batch.Plan.Groups)
}

// runPauseRequested opens no new effects until the run is resumed. Open effects may
// settle.
func (s *State) runPauseRequested(b *RunControl) *refusal {
	if bad := cmp.Or(controlFault(b.Reason), s.activeOnly(b.Run, "pause")); bad != nil {
		return bad
	}
	if from := s.Run.Lifecycle; from == Paused || from == Interrupting {
		return illegal("pause", from)
	}
	s.pause()
	return nil
}

func (s *State) pause() {
	run := s.Run
	run.Before, run.Lifecycle, run.PausedAt = run.Lifecycle, Paused, s.Clock
}

// runResumeRequested lets a paused run go on where it stopped.
func (s *State) runResumeRequested(door Door, data codec.Raw) *refusal {
	var b RunResumeRequested
	if bad := decodeBody(data, &b); bad != nil {
		return bad
	}
	if bad := cmp.Or(controlFault(b.Reason), s.activeOnly(b.Run, "resume")); bad != nil {
		return bad
	}
	run := s.Run
	if run.Lifecycle != Paused {
		return illegal("resume", run.Lifecycle)
	}
	if bad := s.budgetResumeFault(door, b.Budget); bad != nil {
		return bad
	}
	if b.Budget != nil {
		run.Config.Budget = b.Budget
	}
	run.endPause(s.Clock)
	held := run.Held
	run.Lifecycle, run.Before, run.Held, run.Breach = run.Before, "", "", false
	switch {
	case run.Deadline > 0 && run.Deadline <= s.Clock: // it had passed before the pause: nothing is opened any more
	case run.Lifecycle == WaitingInput && len(run.Steers) > 0:
		run.Lifecycle, run.Answer, run.Finish = Running, 0, ""
		s.startTurn()
	case held == HeldTurn:
		s.startTurn()
	case held == HeldGeneration:
		s.startGeneration(nil)
	case s.turnIsRuns() && s.Turn.Batch != nil && s.Turn.isOpen():
		s.openGroup()
	}
	s.settleOverdue()
	return nil
}

// endPause extends the deadline of a paused run by the length of the pause.
func (r *Run) endPause(clock int64) {
	if r.Lifecycle == Paused && r.Deadline > 0 {
		r.Deadline += clock - r.PausedAt
	}
	r.PausedAt = 0
}

// holds reports whether the active run is paused, and records what is held back.
func (s *State) holds(what Held) bool {
	if s.Run.Lifecycle != Paused {
		return false
	}
	s.Run.Held = what
	return true
}

func (s *State) runEdited(b *RunEdited) *refusal {
	if bad := inputFault(&b.Input); bad != nil {
		return bad
	}
	if b.Run == 0 {
		return refuse(RejectInvalidData, "run: is missing: the number of a queued run")
	}
	at, bad := s.addressed(b.Run)
	if bad != nil {
		return bad
	}
	if at == active {
		return illegal("edit", s.Run.Lifecycle)
	}
	run := &s.Queue[at]
	run.Seq, run.InputBytes = s.Seq, b.Input.shownBytes()
	notify(s, NoticeRunQueued, run.placed())
	return nil
}

func (s *State) runCompleted(b *RunEnded) *refusal { return s.runEnded(TypeRunCompleted, b) }

func (s *State) runFailed(b *RunEnded) *refusal { return s.runEnded(TypeRunFailed, b) }

// runEnded ends a run whose config has completion explicit.
func (s *State) runEnded(typ string, b *RunEnded) *refusal {
	if len(b.Code) > CodeBytesMax || len(b.Detail) > DetailBytesMax {
		return refuse(RejectLimitExceeded, "code is at most "+strconv.Itoa(CodeBytesMax)+" bytes, detail "+strconv.Itoa(DetailBytesMax))
	}
	if bad := s.activeOnly(b.Run, typ); bad != nil {
		return bad
	}
	run := s.Run
	if run.Lifecycle != WaitingInput {
		return illegal(typ, run.Lifecycle)
	}
	end := Ended{Lifecycle: Completed, Code: b.Code, Detail: b.Detail}
	if typ == TypeRunFailed {
		end.Lifecycle = Failed
		if end.Code == "" {
			end.Code = CodeExplicit
		}
	}
	s.endRun(end, nil)
	return nil
}

// sessionClosed ends every run and closes the session.
func (s *State) sessionClosed(*SessionClosed) *refusal {
	s.Closed = true
	queue := s.Queue
	s.Queue = nil
	s.closeSpaces()
	if s.Run != nil {
		s.stopRun(Ended{Lifecycle: Cancelled, Code: CodeCancelled, Detail: "the session was closed"})
	}
	for i := range queue {
		notify(s, NoticeRunFinished, RunFinished{
			Run: queue[i].Number, Lifecycle: Cancelled, Code: CodeCancelled, Detail: "the session was closed", Untaken: seqsOf(queue[i].Steers),
		})
	}
	return nil
}
