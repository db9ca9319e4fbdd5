package session

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/codec"
)

// foldRunRequested folds a RunRequested.
func (s *State) foldRunRequested(door Door, data codec.Raw) *refusal {
	if bad := configRulesFault(data); bad != nil {
		return bad
	}
	var b RunRequested
	if bad := decodeContent(data, "input", &b); bad != nil {
		return bad
	}
	if bad := inputFault(&b.Input); bad != nil {
		return bad
	}
	s.text = &b.Input
	return s.runRequested(door, &b, data)
}

// runRequested queues a run, and starts it if none is active. Its config is resolved
// and frozen here. The input was checked before.
func (s *State) runRequested(door Door, b *RunRequested, data codec.Raw) *refusal {
	if bad := s.requestFault(door, b); bad != nil {
		return bad
	}
	var content codec.Hash
	if b.Submission != "" { // without one, no request is a repeat
		content = b.Content(data, s.original)
	}
	before, taken := s.Submission(b.Submission)
	switch {
	case taken && before.Content == content:
		return nil // a repeat: a no-op whatever happened to the first request
	case taken:
		return refuse(RejectDuplicateSubmission, "submission "+sentence.Quoted(b.Submission)+" was already used with other content")
	case s.Closed:
		return sessionClosedRefusal()
	}
	if bad := s.agentFault(b.Agent); bad != nil {
		return bad
	}
	var number uint32
	var bad *refusal
	if b.WhenBusy == BusySteer && s.Run != nil && s.Run.Lifecycle != Interrupting {
		number = s.Run.Number
		if bad = s.steerConfigFault(b.Config); bad == nil {
			bad = s.steer(b.Input.shownBytes())
		}
	} else {
		number = s.Runs + 1
		bad = s.requestRun(door, b)
	}
	if bad == nil && b.Submission != "" {
		s.rememberSubmission(Submission{Name: b.Submission, Content: content, Run: number})
	}
	return bad
}

// requestRun starts or queues the run of a request.
func (s *State) requestRun(door Door, b *RunRequested) *refusal {
	run := s.operatorsRun(b.Config)
	var ignored []string
	if door == DoorIn && b.Config != nil {
		var bad *refusal
		if run, ignored, bad = s.clientsRun(b.Config); bad != nil {
			return bad
		}
	}
	run.Operators = door == DoorCtl
	run.InputBytes, run.Roles, run.Submission = b.Input.shownBytes(), b.Roles, b.Submission
	return s.newRun(run, b.WhenBusy, ignored...)
}

// newRun starts a run with the event's input, or queues it if another is active.
// ignored are names in the request that the registry does not have.
func (s *State) newRun(run Run, whenBusy string, ignored ...string) *refusal {
	if bad := s.fixWorkspace(&run); bad != nil {
		return bad
	}
	st, waits := s.stackAtStart()
	if bad := s.configFault(&st, &run.Config, run.Workspace, true); bad != nil {
		return bad
	}
	run.Doubt = run.Doubt || waits // if what waits is not applied after all
	if bad := s.busyFault(whenBusy, &run); bad != nil {
		return bad
	}
	s.Runs++
	run.Number = s.Runs
	if run.Scheduled == nil { // else its input is in the event that set the schedule
		run.Seq = s.Seq
	}
	if s.Run == nil {
		s.startRun(run, ignored...)
		return nil
	}
	notify(s, NoticeRunQueued, run.placed(ignored...))
	if whenBusy == BusyInterrupt {
		s.Queue = slices.Insert(s.Queue, 0, run)
		s.interrupt()
		return nil
	}
	s.Queue = append(s.Queue, run)
	return nil
}

// steerConfigFault checks the config of a request that steers the active run.
func (s *State) steerConfigFault(c *RunConfig) *refusal {
	own, bad := s.ownWorkspace(c)
	if bad == nil {
		st := s.stack()
		bad = s.configFault(&st, c, own, false)
	}
	return bad
}

// fixWorkspace pins the workspace that a run's config names. The session's own
// config has pinned its workspace already.
func (s *State) fixWorkspace(run *Run) (bad *refusal) {
	if run.Workspace != nil { // it reuses another run's config
		return nil
	}
	if s.Config != nil && s.Config.Workspace != nil && s.Config.Run.Workspace == run.Config.Workspace {
		pin := *s.Config.Workspace
		run.Workspace = &pin
		return nil
	}
	run.Workspace, bad = s.ownWorkspace(&run.Config)
	return bad
}

// Submission returns the remembered submission of this name, which may be shortened in
// it. It is false for an empty name.
func (s *State) Submission(name string) (of Submission, taken bool) {
	if len(s.Submissions) > SubmissionsMax {
		name = shortened(name)
	}
	for _, list := range s.submissionLists() {
		if at, found := place(list, name); found {
			return list[at], true
		}
	}
	return Submission{}, false
}

// submissionLists returns both lists of submissions, the older ones first.
func (s *State) submissionLists() [2][]Submission {
	first := min(len(s.Submissions), SubmissionsMax)
	return [2][]Submission{s.Submissions[:first], s.Submissions[first:]}
}

// place returns the index of a submission in a list, or where it would be inserted.
func place(list []Submission, name string) (int, bool) {
	return slices.BinarySearchFunc(list, name, func(have Submission, name string) int {
		return strings.Compare(have.Name, name)
	})
}

// shortened returns a name that takes at most submissionNameBytes.
func shortened(name string) string {
	sum := codec.Sum([]byte(name)).String()
	return strings.Clone(sum[:submissionNameBytes])
}

// rememberSubmission adds a submission that the session does not remember.
//
// Up to SubmissionsMax are one list, sorted by name. With the next one the names are
// shortened, and newer submissions are a second list behind the first. When that is as
// long, the first is forgotten as a whole. So forgetting takes no pass over the list at
// each run, and the order in which submissions came need not be stored.
func (s *State) rememberSubmission(of Submission) {
	first := 0
	switch len(s.Submissions) {
	case SubmissionsMax:
		for i := range s.Submissions {
			s.Submissions[i].Name = shortened(s.Submissions[i].Name)
		}
		slices.SortFunc(s.Submissions, func(a, b Submission) int { return strings.Compare(a.Name, b.Name) })
	case submissionsHeldMax:
		s.Submissions = slices.Delete(s.Submissions, 0, SubmissionsMax)
	}
	if len(s.Submissions) >= SubmissionsMax {
		first, of.Name = SubmissionsMax, shortened(of.Name)
	}
	at, _ := place(s.Submissions[first:], of.Name)
	s.Submissions = slices.Insert(s.Submissions, first+at, of)
}

// requestFault checks the request by itself, except for its input.
func (s *State) requestFault(door Door, b *RunRequested) *refusal {
	if _, err := codec.ParseHash(b.Agent); err != nil && b.Agent != "" {
		return refuse(RejectInvalidData, "agent: must be 64 lower-case hex digits")
	}
	if door != DoorIn {
		return nil
	}
	if len(b.Roles) > 0 && !s.install.allows(ingressRoles) {
		return refuse(RejectNotPermitted, "roles: the install policy allows them only through the door ctl")
	}
	if b.Config != nil {
		return s.install.ingressFault(b.Config)
	}
	return nil
}

// configFor returns the config of a run whose request brings none: the session's,
// else the install record's.
func (s *State) configFor() RunConfig {
	if c := s.ownConfig(); c != nil {
		return *c
	}
	return RunConfig{}
}

// ownConfig returns the session's config, else the install record's; nil if there is none.
func (s *State) ownConfig() *RunConfig {
	if s.Config != nil {
		return &s.Config.Run
	}
	return s.install.Record.Config
}

// operatorsRun returns the run of a request through `ctl`. Its config is whole, but
// for one exception: without step rules it has the session's.
func (s *State) operatorsRun(own *RunConfig) Run {
	if own == nil {
		return Run{Config: s.configFor()}
	}
	config := *own
	if config.Steps == nil && s.Config != nil {
		config.Steps = s.Config.Run.Steps
	}
	return Run{Config: config}
}

// busyFault checks that there is room for a run.
func (s *State) busyFault(whenBusy string, run *Run) *refusal {
	if s.Run == nil {
		return nil
	}
	if whenBusy == BusyReject {
		return refuse(RejectRunActive, "run "+strconv.FormatUint(uint64(s.Run.Number), 10)+" is active, and when_busy is reject")
	}
	if limit := s.queueMax(); len(s.Queue) >= limit {
		return refuse(RejectQueueFull, "the queue is full, with "+strconv.Itoa(limit)+" runs")
	}
	size := run.configBytes()
	for i := range s.Queue {
		size += s.Queue[i].configBytes()
	}
	if size > QueueBytesMax {
		return refuse(RejectLimitExceeded, "config: the configs of all queued runs are at most "+strconv.Itoa(QueueBytesMax)+" bytes")
	}
	return nil
}

func (s *State) queueMax() int {
	if s.Config != nil && s.Config.QueueMax > 0 {
		return s.Config.QueueMax
	}
	return QueueDefault
}

// configBytes is an upper bound of the encoded size of a run's config and list.
func (r *Run) configBytes() int { return configBytes(&r.Config) + namesBytes(listOf(r.Only)) }

// configBytes is an upper bound of a config's encoded size.
func configBytes(c *RunConfig) int {
	size := configFixedBytesMax + len(c.System) + len(c.Params) + len(c.ResponseFormat)
	for _, l := range append(c.lists(), list{"skills", c.Skills}) {
		size += namesBytes(l.names)
	}
	size += refBytesMax * (len(listOf(c.ToolRefs)) + len(listOf(c.PromptRefs)))
	for _, name := range [...]string{c.PromptPack, c.ToolCatalog, c.Workspace} {
		if name != "" {
			size += len("\xaetool_catalog\xd9\x40") + len(name)
		}
	}
	if c.Prices != nil {
		for i := range c.Prices.Models {
			size += modelPriceBytesMax + len(c.Prices.Models[i].Model)
		}
	}
	if c.Retry != nil {
		for _, code := range c.Retry.Codes {
			size += 2 + len(code)
		}
	}
	size += c.fallbackBytes()
	if len(c.Steps) > 0 {
		size += len(encode(c.Steps))
	}
	return size
}

// namesBytes is an upper bound of the encoded size of a list's entries.
func namesBytes(names []string) (size int) {
	for _, name := range names {
		size += 3 + len(name)
	}
	return size
}

// itemsFirst is the first capacity of a transcript: enough for a short run.
const itemsFirst = 12

// appendItem adds an item to the transcript. shownBytes is what its event shows a
// model, without what was counted before.
func (s *State) appendItem(it Item, shownBytes int64) {
	if s.Items == nil {
		s.Items = make([]Item, 0, itemsFirst)
	}
	shownBytes += int64(len(it.Code) + len(it.Detail.String()))
	if s.Window != nil {
		it.Bytes = uint32(min(int64(it.Bytes)+shownBytes, maxWindowBytes))
	}
	s.Items = append(s.Items, it)
	s.ItemBytes += int32(it.encodedBytesMax())
	s.addToWindow(shownBytes)
}

// clipMax is the number of items up to which an idle session's transcript is
// clipped: more are too many to copy at the end of each run.
const clipMax = 256

// clipItems frees unused capacity of the transcript.
func (s *State) clipItems() {
	if n := len(s.Items); n <= clipMax && cap(s.Items) >= n+itemsFirst {
		s.Items = slices.Clip(slices.Clone(s.Items))
	}
}

// steerRequested gives the active run input before its next turn. Without an active
// run it starts one.
func (s *State) steerRequested(b *SteerRequested) *refusal {
	if bad := inputFault(&b.Input); bad != nil {
		return bad
	}
	s.text = &b.Input
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
		run.Lifecycle, run.Answer, run.FinishReason = Running, 0, ""
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
	if s.context() != nil {
		return false // its window is cut
	}
	return len(s.Items) > ItemsMax || int(s.ItemBytes) > s.itemBytesMax(&s.Run.Config)
}

// endRun ends the active run with all that is open of it, and starts the next
// queued run. The output is the answer in the event being folded, if there is one,
// else the answer with which the run waited for input.
func (s *State) endRun(end Ended, answer *GenerationSettled) {
	run := s.Run
	end.Number = run.Number
	end.OverBudget = s.overBudget()
	end.FinishReason = run.FinishReason
	if answer != nil {
		end.FinishReason = answer.oddFinish()
	}
	s.notifyFinished(run, &end, answer)
	s.countScheduled(run.Scheduled, end.Lifecycle)
	s.forgetTurnSettled()
	if end.Lifecycle == Cancelled {
		run.Steers = nil
	}
	if s.turnIsRuns() {
		s.endCompaction()
		s.forgetGeneration()
		s.Turn.Batch.forgetArguments()
	}
	s.Last, s.Run, s.ended = &end, nil, run
	s.answerParent(run, &end, answer)
	x := s.spaces()
	x.DropRun(run.Number)
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
		Run: end.Number, Lifecycle: end.Lifecycle, Code: end.Code, Detail: end.Detail.String(), FinishReason: end.FinishReason, OutputSeq: run.Answer,
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

// runCancelRequested ends the active run at once, or removes a queued one.
func (s *State) runCancelRequested(b *RunControl) *refusal {
	at, bad := s.addressed(b.Run)
	if bad != nil {
		return bad
	}
	end := Ended{Lifecycle: Cancelled, Code: CodeCancelled, Detail: sentence.Own(b.Reason)}
	if at == active {
		s.stopRun(end)
		return nil
	}
	run := s.Queue[at]
	s.Queue = slices.Delete(s.Queue, at, at+1)
	notify(s, NoticeRunFinished, RunFinished{
		Run: run.Number, Lifecycle: Cancelled, Code: end.Code, Detail: end.Detail.String(), Untaken: seqsOf(run.Steers),
	})
	return nil
}

// runInterruptRequested lets open effects settle, opens no new ones, and then ends
// the run.
func (s *State) runInterruptRequested(b *RunControl) *refusal {
	if bad := s.activeOnly(b.Run, "interrupt"); bad != nil {
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
	run.Lifecycle, run.Before, run.Held, run.Spent = Interrupting, "", "", false
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
			s.stopChild(i, HaltInterrupt)
			if c := &t.Batch.Calls[i]; c.Status == CallWaiting || c.Status == CallAwaiting {
				s.endCall(i, CallCancelled, CodeCancelled, sentence.Say(sentence.NotOpened))
			} else if c.Status == CallOpen && s.needsNobody(c) {
				s.endCall(i, CallCancelled, CodeCancelled, sentence.Say(sentence.StillWaiting))
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
			s.withdraw(s.generation())
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
			s.endCall(i, CallCancelled, CodeCancelled, sentence.Say(sentence.NotOpened))
		case CallAwaiting:
			s.endCall(i, CallCancelled, CodeCancelled, sentence.Say(sentence.Undecided))
		case CallOpen:
			detail := sentence.Say(sentence.InProgress)
			switch {
			case c.Sync > 0:
				s.endSyncOf(c, CodeCancelled, sentence.Say(sentence.CallersRunStopped))
			case s.needsNobody(c):
				detail = sentence.Say(sentence.StillWaiting)
			case !s.isUnbridged(c):
				s.withdraw(t.call(i))
			}
			s.endCall(i, CallCancelled, CodeCancelled, detail)
		}
	}
	t.Batch.Group = len(t.Batch.Plan.Groups)
}

// runPauseRequested opens no new effects until the run is resumed. Open effects may
// settle.
func (s *State) runPauseRequested(b *RunControl) *refusal {
	if bad := s.activeOnly(b.Run, "pause"); bad != nil {
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
	if bad := s.activeOnly(b.Run, "resume"); bad != nil {
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
	run.Lifecycle, run.Before, run.Held, run.Spent = run.Before, "", "", false
	switch {
	case run.Deadline > 0 && run.Deadline <= s.Clock: // it had passed before the pause: nothing is opened any more
	case run.Lifecycle == WaitingInput && len(run.Steers) > 0:
		run.Lifecycle, run.Answer, run.FinishReason = Running, 0, ""
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
		return refuse(RejectInvalidData, "run: is missing: give the number of a queued run")
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
	if bad := s.activeOnly(b.Run, typ); bad != nil {
		return bad
	}
	run := s.Run
	if run.Lifecycle != WaitingInput {
		return illegal(typ, run.Lifecycle)
	}
	end := Ended{Lifecycle: Completed, Code: b.Code, Detail: sentence.Own(b.Detail)}
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
	s.close(sentence.Say(sentence.SessionClosed))
	return nil
}

// close ends every run, with a detail, and closes the session.
func (s *State) close(detail sentence.Text) {
	s.Closed = true
	s.closeKept()
	queue := s.Queue
	s.Queue = nil
	x := s.spaces()
	x.Close()
	if s.Run != nil {
		s.stopRun(Ended{Lifecycle: Cancelled, Code: CodeCancelled, Detail: detail})
	}
	for i := range queue {
		notify(s, NoticeRunFinished, RunFinished{
			Run: queue[i].Number, Lifecycle: Cancelled, Code: CodeCancelled, Detail: detail.String(), Untaken: seqsOf(queue[i].Steers),
		})
	}
	s.dropSchedules()
}
