package session

import (
	"strconv"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// startTurn asks the next generation of the active run, with the tools that
// the session's state offers at this moment, or ends the run if it may not go
// on. Every call of the turn before has its result in the transcript.
func (s *State) startTurn() {
	run := s.Run
	if limit := run.Config.turnsMax(); int(run.Turns) >= limit {
		s.endRun(Ended{Lifecycle: Failed, Code: CodeTurnsMax, Detail: "the run asked its " + strconv.Itoa(limit) + " turns"}, nil)
		return
	}
	if s.transcriptFull() {
		s.endRun(Ended{Lifecycle: Failed, Code: CodeTranscriptFull,
			Detail: "the transcript holds " + strconv.Itoa(len(s.Items)) + " items: go on in a new session"}, nil)
		return
	}
	if s.turnsOwn != s.registry {
		run.forget(s.registry)
	}
	before, same := s.Turn, s.sameToolset()
	run.Turns++
	s.Turn = &Turn{Number: run.Turns, Registry: s.pinned(), Run: run.Number}
	s.turnsOwn = s.registry
	if hook := run.Config.StepHook; hook != nil {
		s.askStep(hook, run.lastCalls(before))
		return
	}
	if rules, from, profile := s.stepRules(); rules.Len() > 0 {
		s.matchRules(rules, &TurnStep{From: from, Profile: profile}, run.lastCalls(before))
	}
	s.askGeneration(same)
}

// sameToolset returns the toolset of the turn before, if a turn that no step
// has a say in would be offered the same now; else nil.
func (s *State) sameToolset() *planner.Toolset {
	if t := s.Turn; !s.toolsMoved && t != nil && t.Run == s.Run.Number && t.Step == nil {
		return &t.Toolset
	}
	return nil
}

// askGeneration asks the generation of the turn, with what its step offers at
// this moment. same is what a turn without a step is offered, nil if that is
// not known.
func (s *State) askGeneration(same *planner.Toolset) {
	t := s.Turn
	deadline, runMS := turnDeadline(&s.Run.Config)
	t.At, t.Deadline, t.RunMS = s.Clock, s.Clock+deadline, runMS
	t.Items, t.Open = len(s.Items), true
	if same != nil && t.Step == nil {
		t.Toolset = *same
		return
	}
	t.Toolset = planner.Select(s.turnsOwn, s.toolRequest(), s.plannerFacts())
	s.toolsMoved = t.Step != nil
	if choice := s.choice(); choice != nil && len(choice.Context) > 0 {
		s.Run.Context = choice.Context
	}
}

// toolRequest returns what decides which tools are offered, but for the facts.
func (s *State) toolRequest() planner.Request {
	c := &s.Run.Config
	req := planner.Request{Run: planner.Overrides{Enable: c.Enable, Disable: c.Disable, Force: c.Force}}
	if o := s.Overrides; o != nil {
		req.Session = planner.Overrides{Enable: o.Enable, Disable: o.Disable, Force: o.Force}
	}
	if choice := s.choice(); choice != nil && (choice.ActiveTools != nil || choice.ToolRefs != nil) {
		req.Base, req.From = baseOf(choice.ActiveTools, choice.ToolRefs), planner.FromStep
		return req
	}
	if c.ActiveTools != nil || c.ToolRefs != nil {
		req.Base, req.From = baseOf(c.ActiveTools, c.ToolRefs), planner.FromRun
		return req
	}
	req.Profile, _ = s.runsProfile()
	return req
}

// baseOf returns a base as the planner takes it: descriptors by their text.
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

// runsProfile returns the profile of the active run's next turn.
func (s *State) runsProfile() (string, bool) {
	c := &s.Run.Config
	return planner.ResolveProfile(s.turnsOwn, c.Profile, s.Profile, c.Provider)
}

// plannerFacts returns what availability rules and capabilities are checked
// against.
func (s *State) plannerFacts() planner.Facts {
	return planner.Facts{HostSession: s.hostStatus(), Facts: s.Facts, Capabilities: s.install.Record.Capabilities}
}

// turnsMax returns how many turns the run may ask.
func (c *RunConfig) turnsMax() int {
	if c.TurnsMax > 0 {
		return c.TurnsMax
	}
	return TurnsDefault
}

// turnDeadline returns how long a generation may be open, and what one start
// of it may take. A start takes at most half of the whole, so that there is a
// time to start it in.
func turnDeadline(c *RunConfig) (deadline, runMS int64) {
	deadline = DeadlineDefaultMS
	if c.DeadlinesMS != nil && c.DeadlinesMS.Turn > 0 {
		deadline = c.DeadlinesMS.Turn
	}
	return deadline, min(RunDefaultMS, deadline/2)
}

// settleGeneration folds a settlement of the open generation.
func (s *State) settleGeneration(b *settlement) {
	s.Turn.Open = false
	s.Turn.Settled = b.hash
	s.Turn.Step.forgetGeneration()
	bad := b.bad
	switch {
	case bad != nil:
	case b.observed != nil:
		bad = s.toolCallsObserved(b.observed)
	default:
		bad = s.generationSettled(b.answer)
	}
	if bad != nil {
		s.endRun(Ended{Lifecycle: Failed, Code: CodeBadSettlement, Detail: bad.detail}, nil)
	}
}

// toolCallsObserved takes in the calls that the model made.
func (s *State) toolCallsObserved(b *ToolCallsObserved) *refusal {
	if bad := observedFault(b); bad != nil {
		return bad
	}
	s.addUsage(b.Usage)
	s.appendItem(Item{Role: RoleAssistant, Seq: s.Seq})
	s.startBatch(b.Calls)
	return nil
}

// generationSettled ends the run: with the model's answer, or with its error.
func (s *State) generationSettled(b *GenerationSettled) *refusal {
	if bad := generationFault(b); bad != nil {
		return bad
	}
	s.addUsage(b.Usage)
	if b.Status == "failed" {
		s.endRun(Ended{Lifecycle: Failed, Code: b.Error.Code, Detail: b.Error.Detail}, nil)
		return nil
	}
	if b.Text != nil && !b.Text.isEmpty() {
		s.appendItem(Item{Role: RoleAssistant, Seq: s.Seq})
	}
	s.endRun(Ended{Lifecycle: Completed}, b.Text)
	return nil
}

// observedFault says what is wrong with a ToolCallsObserved by itself.
func observedFault(b *ToolCallsObserved) *refusal {
	switch {
	case len(b.Calls) == 0:
		return refuse(RejectInvalidData, "calls: is empty; a turn without calls is a GenerationSettled")
	case len(b.Calls) > CallsSeenMax:
		return refuse(RejectLimitExceeded, "calls: at most "+strconv.Itoa(CallsSeenMax))
	case len(b.Model) > NameBytesMax:
		return refuse(RejectInvalidData, "model: at most "+strconv.Itoa(NameBytesMax)+" bytes")
	}
	for i := range b.Calls {
		if len(b.Calls[i].ProviderCallID) > ByBytesMax {
			return refuse(RejectInvalidData, "calls["+strconv.Itoa(i)+"].provider_call_id: at most "+strconv.Itoa(ByBytesMax)+" bytes")
		}
	}
	if b.Text != nil {
		if bad := contentFault("text", b.Text, true); bad != nil {
			return bad
		}
	}
	return usageFault(b.Usage)
}

// generationFault says what is wrong with a GenerationSettled by itself.
func generationFault(b *GenerationSettled) *refusal {
	switch {
	case b.Status != "ok" && b.Status != "failed":
		return refuse(RejectInvalidData, "status: ok or failed, not "+quoted(b.Status))
	case b.Status == "ok" && b.Error != nil:
		return refuse(RejectInvalidData, "error: belongs to status failed")
	case b.Status == "failed" && b.Error == nil:
		return refuse(RejectInvalidData, "error: is missing, the status is failed")
	case len(b.Model) > NameBytesMax || len(b.FinishReason) > NameBytesMax:
		return refuse(RejectInvalidData, "model and finish_reason: at most "+strconv.Itoa(NameBytesMax)+" bytes")
	}
	if bad := faultFault(b.Error); bad != nil {
		return bad
	}
	if b.Text != nil {
		if bad := contentFault("text", b.Text, true); bad != nil {
			return bad
		}
	}
	return usageFault(b.Usage)
}

// faultFault says what is wrong with the error of a settlement.
func faultFault(f *Fault) *refusal {
	switch {
	case f == nil:
		return nil
	case f.Code == "" || len(f.Code) > CodeBytesMax:
		return refuse(RejectInvalidData, "error.code: 1 to "+strconv.Itoa(CodeBytesMax)+" bytes")
	}
	return nil
}

// usageFault says what is wrong with a usage.
func usageFault(u *Usage) *refusal {
	if u == nil {
		return nil
	}
	for _, n := range []int64{u.CachedTokens, u.InputTokens, u.OutputTokens, u.ReasoningTokens} {
		if n < 0 || n > TokensMax {
			return refuse(RejectInvalidData, "usage: a count is 0 to "+strconv.FormatInt(TokensMax, 10))
		}
	}
	return nil
}

// addUsage adds u to the run's and the session's usage.
func (s *State) addUsage(u *Usage) {
	if u == nil {
		return
	}
	for _, t := range []*UsageTotal{&s.Run.Usage, &s.Usage} {
		t.CachedTokens += u.CachedTokens
		t.InputTokens += u.InputTokens
		t.OutputTokens += u.OutputTokens
		t.ReasoningTokens += u.ReasoningTokens
	}
}

// isEmpty reports whether c holds nothing.
func (c *Content) isEmpty() bool { return c.Text == "" && c.Blob == nil && len(c.Parts) == 0 }
