package session

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// startTurn begins the next turn of the active run, with the tools that the
// session's state offers now, or ends the run if it may not go on. Every call of
// the turn before must have its result in the transcript.
func (s *State) startTurn() {
	run := s.Run
	if run.Lifecycle == Interrupting {
		s.endInterrupted()
		return
	}
	if s.holds(HeldTurn) {
		return
	}
	if limit := run.Config.turnsMax(); int(run.Turns) >= limit {
		s.endRun(Ended{Lifecycle: Failed, Code: CodeTurnsMax, Detail: "the run asked its " + strconv.Itoa(limit) + " turns"}, nil)
		return
	}
	if s.transcriptFull() {
		s.endRun(Ended{Lifecycle: Failed, Code: CodeTranscriptFull,
			Detail: "the transcript holds " + strconv.Itoa(len(s.Items)) + " items: go on in a new session"}, nil)
		return
	}
	if s.budgetSpent(HeldTurn, s.nextInputBytes()) {
		return
	}
	s.applyPending(run.Turns == 0)
	if bad := s.doubtFault(run); bad != nil {
		s.endRun(Ended{Lifecycle: Failed, Code: string(bad.code), Detail: bad.detail}, nil)
		return
	}
	st := s.runStack()
	if run.Turns == 0 {
		s.startSkills(&st)
	}
	if s.turnRegistry != st.registry {
		run.forget(st.registry)
	}
	before, same, defined := s.Turn, s.sameToolset(), s.keptDefinitions(st.registry)
	s.toolsMoved = false // later changes, while a generation is held, count for the next turn
	run.Turns++
	s.Turn = &Turn{Defined: defined, Number: run.Turns, Registry: s.pinned(), Run: run.Number}
	s.turnRegistry = st.registry
	s.enterTurn(&st)
	if hook := run.Config.StepHook; hook != nil {
		var calls []planner.LastCall
		if s.rulesReadCalls() {
			calls = run.lastArguments(before)
		}
		s.openStep(hook, run.lastCalls(before), calls)
		return
	}
	if rules, from, profile := s.stepRules(); rules.Len() > 0 {
		var calls []planner.LastCall
		if rules.AsksCalls() {
			calls = run.lastArguments(before)
		}
		s.matchRules(rules, &TurnStep{From: from, Profile: profile}, run.lastCalls(before), calls)
	}
	s.startGeneration(same)
}

// sameToolset returns the toolset of the turn before, if a turn without a step
// would be offered the same now; else nil.
func (s *State) sameToolset() *planner.Toolset {
	if t := s.Turn; !s.toolsMoved && !s.install.approvals.DeniedMoves() && t != nil && t.Run == s.Run.Number && t.Step == nil {
		return &t.Toolset
	}
	return nil
}

// startGeneration opens the turn's generation, with the tools that its step offers
// now. same is the toolset of a turn without a step, nil if unknown.
func (s *State) startGeneration(same *planner.Toolset) {
	if s.Run.Lifecycle == Interrupting {
		s.endInterrupted()
		return
	}
	if s.holds(HeldGeneration) {
		return
	}
	t := s.Turn
	if same != nil && t.Step == nil {
		t.Toolset = *same
	} else {
		t.Toolset = planner.Select(s.turnRegistry, s.toolRequest(), s.offerFacts())
	}
	if x := s.turnSpace(); x != nil {
		x.Narrowed, _ = s.narrowing()
	}
	shown := s.shown(&t.Toolset)
	if s.isMasked() && len(shown) > 0 {
		t.Defined = &shown
	}
	if s.Run.Config.Budget != nil && s.budgetSpent(HeldGeneration, s.turnInputBytes(s.nextInputBytes(), shown)) {
		t.Toolset = planner.Toolset{}
		return
	}
	s.takeSteers()
	s.fixPrompt()
	t.Items = int32(len(s.Items))
	s.openGeneration()
	if choice := s.choice(); choice != nil && len(choice.Context) > 0 {
		s.Run.Context = choice.Context
	}
}

// openGeneration opens the next attempt at the turn's generation.
func (s *State) openGeneration() {
	t := s.Turn
	deadline, runMS := turnDeadline(&s.Run.Config)
	t.At, t.Deadline, t.RunMS, t.RetryAt, t.Open = s.Clock, s.Clock+deadline, int32(runMS), 0, true
	t.OutputTokensMax = s.outputTokensMax()
}

// toolRequest returns the inputs of the tool selection, except the facts.
func (s *State) toolRequest() planner.Request {
	if choice := s.choice(); choice != nil && (choice.ActiveTools != nil || choice.ToolRefs != nil) {
		req := s.overrides()
		req.Base, req.From = baseOf(choice.ActiveTools, choice.ToolRefs), planner.FromStep
		return req
	}
	return s.runsToolRequest()
}

// runsToolRequest is toolRequest without the turn's step.
func (s *State) runsToolRequest() planner.Request {
	c, req := &s.Run.Config, s.overrides()
	if c.ActiveTools != nil || c.ToolRefs != nil {
		req.Base, req.From, req.Join = baseOf(c.ActiveTools, c.ToolRefs), planner.FromRun, s.Run.Joined
		return req
	}
	if s.turnSpace() != nil {
		st := s.turnStack()
		if w, catalog := st.chosenCatalog(c); catalog != nil {
			req.Base, req.From = st.catalogBase(w, catalog), planner.FromCatalog
			return req
		}
	}
	req.Profile, req.ProfileFrom = s.runsProfile()
	return req
}

// overrides returns the part of a toolRequest with the lists of the session, the
// run and its skills.
func (s *State) overrides() planner.Request {
	c := &s.Run.Config
	_, lists := s.narrowing()
	req := planner.Request{Narrow: lists, Run: planner.Overrides{Enable: c.Enable, Disable: c.Disable, Force: c.Force}}
	if s.Run.Only != nil {
		req.Only, req.Join = s.Run.Only, s.Run.Joined
	}
	if o := s.Overrides; o != nil {
		req.Session = planner.Overrides{Enable: o.Enable, Disable: o.Disable, Force: o.Force}
	}
	return req
}

// baseOf returns a base in the planner's form: descriptors as text.
func baseOf(names *[]string, refs *[]codec.Ref) []string {
	if names != nil {
		return *names
	}
	base := make([]string, len(*refs))
	for i, ref := range *refs {
		base[i] = ref.String()
	}
	return base
}

// runsProfile returns the profile of the active run's next turn, and its origin.
func (s *State) runsProfile() (string, planner.ProfileFrom) {
	c := &s.Run.Config
	return planner.ResolveProfile(s.turnRegistry, c.Profile, s.Profile, c.Provider)
}

// plannerFacts returns the facts for availability rules and capabilities.
func (s *State) plannerFacts() planner.Facts {
	facts := planner.Facts{HostSession: s.hostStatus(), Facts: s.Facts, Capabilities: s.install.Record.Capabilities, Floor: s.install.floor}
	if s.Spaces != nil {
		st := s.runStack()
		facts.SpaceFiles, facts.Skills, facts.Lacks = st.hasFiles(), s.hasSkills(&st), st.lacks()
		facts.Grants = s.modelsMayEnable()
	}
	return facts
}

// offerFacts returns the facts for the tool selection of the active run's turn.
func (s *State) offerFacts() planner.Facts {
	facts := s.plannerFacts()
	facts.Denied = s.install.approvals.Denied(s.turnRegistry, s.stepFacts(nil))
	return facts
}

func (c *RunConfig) turnsMax() int {
	return cmp.Or(c.TurnsMax, TurnsDefault)
}

// turnDeadline returns how long a generation may be open, and how long one start of
// it may take: at most half of that, which leaves time to start it.
func turnDeadline(c *RunConfig) (deadline, runMS int64) {
	deadline = DeadlineDefaultMS
	if c.DeadlinesMS != nil && c.DeadlinesMS.Turn > 0 {
		deadline = c.DeadlinesMS.Turn
	}
	return deadline, min(RunDefaultMS, deadline/2)
}

// generations is the folder of the effects of class llm.
type generations struct{ ofTurn }

func (generations) decode(typ string, data codec.Raw) (any, string, *refusal) {
	if typ == TypeToolCallsObserved {
		b := &ToolCallsObserved{}
		bad := decodeContent(data, "text", b)
		return b, b.Effect, bad
	}
	b := &GenerationSettled{}
	bad := decodeContent(data, "text", b)
	return b, b.Effect, bad
}

func (generations) settle(s *State, _ Place, b *settlement) *refusal {
	s.Turn.Open = false
	s.Turn.Settled = settlementHash(b.typ, b.data)
	bad := b.bad
	if bad == nil {
		switch body := b.body.(type) {
		case *ToolCallsObserved:
			bad = s.toolCallsObserved(body)
		case *GenerationSettled:
			bad = s.generationSettled(body)
		}
	}
	if bad != nil {
		s.turnFailed(&Fault{Code: CodeBadSettlement, Detail: clip(bad.detail, DetailBytesMax)})
		s.generationFailed(Fault{Code: CodeBadSettlement, Detail: bad.detail})
	}
	return nil
}

// toolCallsObserved folds the calls that the model made.
func (s *State) toolCallsObserved(b *ToolCallsObserved) *refusal {
	if bad := observedFault(b); bad != nil {
		return bad
	}
	s.turnSettled(b.Text, b.Usage, TurnSettled{Effect: b.Effect, Calls: len(b.Calls), FinishReason: b.FinishReason})
	s.addUsage(b.Usage)
	s.appendItem(Item{Role: RoleAssistant, Seq: s.Seq}, b.shownBytes())
	s.forgetGeneration()
	s.startBatch(b.Calls, b.FinishReason == FinishLength)
	return nil
}

// generationSettled folds the model's answer, or its error.
func (s *State) generationSettled(b *GenerationSettled) *refusal {
	if bad := generationFault(b); bad != nil {
		return bad
	}
	d := TurnSettled{Effect: b.Effect, FinishReason: b.FinishReason}
	if b.Error != nil {
		d.Code, d.Detail = b.Error.Code, clip(b.Error.Detail, DetailBytesMax)
	}
	s.turnSettled(b.Text, b.Usage, d)
	s.addUsage(b.Usage)
	if b.Status == "failed" {
		s.generationFailed(*b.Error)
		return nil
	}
	if !b.isSilent() {
		s.appendItem(Item{Role: RoleAssistant, Seq: s.Seq}, b.Text.shownBytes())
	}
	s.answered(b)
	return nil
}

// isSilent reports whether the model's answer has no content.
func (b *GenerationSettled) isSilent() bool { return b.Text == nil || b.Text.isEmpty() }

// oddFinish returns why the model's answer ended, "" if the answer is complete or
// that is not known.
func (b *GenerationSettled) oddFinish() string {
	if b.FinishReason == FinishStop {
		return ""
	}
	return b.FinishReason
}

// answered continues after a turn without calls. If steers have arrived, another
// turn begins; else the answer is checked, and the run completes, waits for input,
// or lets the model repair the answer.
func (s *State) answered(b *GenerationSettled) {
	run := s.Run
	s.forgetGeneration()
	switch {
	case run.Lifecycle == Interrupting:
		s.endRun(Ended{Lifecycle: Interrupted}, b)
	case len(run.Steers) > 0 && (run.Config.Completion == CompletionExplicit || int(run.Turns) < run.Config.turnsMax()):
		s.startTurn()
	case s.isFaulty(b):
	case run.Config.Completion != CompletionExplicit:
		s.endRun(Ended{Lifecycle: Completed}, b)
	default:
		run.Repairs, run.Finish = 0, b.oddFinish()
		if !b.isSilent() {
			run.Answer = s.Seq
		}
		if run.Lifecycle == Paused {
			run.Before = WaitingInput
			return
		}
		run.Lifecycle = WaitingInput
	}
}

// generationFailed schedules another attempt if the run's config allows it, and
// else ends the run.
func (s *State) generationFailed(f Fault) {
	run, t := s.Run, s.Turn
	if run.Lifecycle == Interrupting {
		s.endInterrupted()
		return
	}
	if r := run.Config.Retry; r != nil && r.covers(f) && int(t.Attempt)+1 < r.Attempts {
		t.RetryAt = s.Clock + r.backoff(t.Attempt)
		s.turnRetries(t.RetryAt)
		return
	}
	s.endRun(Ended{Lifecycle: Failed, Code: f.Code, Detail: f.Detail}, nil)
}

// covers reports whether a failure may be retried.
func (r *Retry) covers(f Fault) bool {
	if r.Codes == nil {
		return f.Retryable
	}
	return slices.Contains(r.Codes, f.Code)
}

// backoff returns the wait before the next attempt, in milliseconds, after `failed`
// earlier failures.
func (r *Retry) backoff(failed uint8) int64 {
	wait, most := cmp.Or(r.BackoffMS, BackoffDefaultMS), cmp.Or(r.BackoffMaxMS, BackoffCapMS)
	for range failed {
		wait = min(2*wait, most)
	}
	return min(wait, most)
}
