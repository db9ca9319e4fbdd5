package session

import "slices"

// startRun makes run the active one and opens its first turn. ignored are names in
// its request that the registry does not have.
func (s *State) startRun(run Run, ignored ...string) {
	run.Lifecycle = Running
	if d := run.Config.DeadlinesMS; d != nil && d.Run > 0 {
		run.Deadline = s.Clock + d.Run
	}
	s.Run = &run
	notify(s, NoticeRunStarted, run.placed(ignored...))
	if !s.transcriptFull() { // or every later run would add to a full one
		s.appendItem(Item{Role: RoleUser, Seq: run.Seq}, run.InputBytes)
	}
	s.Run.InputBytes = 0 // the transcript counts it from now on
	s.startTurn()
}

// transcriptFull reports whether the transcript is too large for a generation.
func (s *State) transcriptFull() bool {
	most := TranscriptBytesMax
	if s.Spaces != nil || s.Run.Config.PromptRefs != nil {
		most -= promptBytesMax // the effect has a prompt too
	}
	return len(s.Items) > ItemsMax || int(s.ItemBytes) > most
}

// endRun ends the active run with all that is open of it, and starts the next
// queued run. The output is the answer in the event being folded, if there is one,
// else the answer with which the run waited for input.
func (s *State) endRun(end Ended, answer *GenerationSettled) {
	run := s.Run
	end.Number = run.Number
	end.Detail = clip(end.Detail, DetailBytesMax)
	end.OverBudget = s.overBudget()
	end.FinishReason = run.Finish
	if answer != nil {
		end.FinishReason = answer.oddFinish()
	}
	s.notifyFinished(run, &end, answer)
	s.forgetTurnSettled()
	if end.Lifecycle == Cancelled {
		run.Steers = nil
	}
	if s.turnIsRuns() {
		s.forgetGeneration()
		s.Turn.Batch.forgetArguments()
	}
	s.Last, s.Run = &end, nil
	s.dropOwn(run)
	s.requeueSteers(run)
	if len(s.Queue) > 0 {
		next := s.Queue[0]
		s.Queue = slices.Delete(s.Queue, 0, 1)
		s.startRun(next)
	}
}

// notifyFinished publishes how a run ended, with its output.
func (s *State) notifyFinished(run *Run, end *Ended, answer *GenerationSettled) {
	if s.quiet {
		s.NoticeN++
		return
	}
	d := RunFinished{
		Run: end.Number, Lifecycle: end.Lifecycle, Code: end.Code, Detail: end.Detail, FinishReason: end.FinishReason, OutputSeq: run.Answer,
		Usage: run.Usage, Cost: run.Cost, OverBudget: end.OverBudget,
	}
	var output *Content
	if answer != nil {
		output = answer.Text
	}
	if output != nil {
		d.Output, d.OutputSeq = output, 0
		if output.jsonBytesMax() > NoticeBytesMax-noticeFixedBytesMax {
			d.Output, d.OutputSeq = nil, s.Seq
		}
	}
	if end.Lifecycle == Cancelled {
		d.Untaken = seqsOf(run.Steers)
	}
	notify(s, NoticeRunFinished, d)
}
