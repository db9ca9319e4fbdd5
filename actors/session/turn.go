package session

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/refold/refold/actors/sentence"
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
		s.endRun(Ended{Lifecycle: Failed, Code: CodeTurnsMax, Detail: sentence.Say(sentence.TurnsMax, strconv.Itoa(limit))}, nil)
		return
	}
	if s.transcriptFull() {
		s.endRun(transcriptFullEnd(len(s.Items)), nil)
		return
	}
	if s.budgetSpent(HeldTurn, s.nextInputBytes()) {
		return
	}
	s.leaveFallback()
	x := s.spaces()
	x.Boundary(run.Turns == 0)
	if bad := s.doubtFault(run); bad != nil {
		s.endRun(Ended{Lifecycle: Failed, Code: string(bad.code), Detail: sentence.Say(sentence.ConfigUnfit, cmp.Or(bad.place(), "config"))}, nil)
		return
	}
	st := s.runStack()
	if run.Turns == 0 {
		s.startSkills(&st)
	}
	if s.turnRegistry != st.Registry {
		run.forget(st.Registry)
	}
	before, same, defined := s.Turn, s.sameToolset(), s.keptDefinitions(st.Registry)
	s.toolsMoved = false // later changes, while a generation is held, count for the next turn
	run.Turns++
	run.Fell = 0
	s.Turn = &Turn{Defined: defined, Number: run.Turns, Registry: s.pinned(), Results: st.HasResults(), Run: run.Number}
	s.turnRegistry = st.Registry
	if s.Window != nil {
		s.Window.Compaction = nil
	}
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

func transcriptFullEnd(items int) Ended {
	return Ended{Lifecycle: Failed, Code: CodeTranscriptFull, Detail: sentence.Say(sentence.TranscriptFull, strconv.Itoa(items))}
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
	compact := s.fitWindow(s.turnInputBytes(0, shown))
	if s.Run.Config.Budget != nil && s.budgetSpent(HeldGeneration, s.turnInputBytes(s.nextInputBytes(), shown)) {
		if !s.wasOpened() {
			t.Toolset = planner.Toolset{}
		}
		return
	}
	if compact != nil {
		s.openCompaction(compact)
		return
	}
	if s.context() != nil && len(s.Items) > ItemsMax { // all of them the run's own input
		s.endRun(transcriptFullEnd(len(s.Items)), nil)
		return
	}
	s.takeSteers()
	s.fixPrompt()
	t.Items = int32(len(s.Items))
	if s.wasOpened() {
		s.nextAttempt()
	}
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
	if s.isCompacting() {
		t.OutputTokensMax = int32(min(s.summaryTokens()*summaryThoughts, int64(cmp.Or(t.OutputTokensMax, OutputTokensMax))))
		return
	}
	s.windowOpened()
}

// nextAttempt begins to count the next attempt at the turn's generation, or at the
// compaction before it.
func (s *State) nextAttempt() {
	if t := s.Turn; s.isCompacting() {
		s.Window.Compaction.Number++
		s.Window.Compaction.Settled = codec.Hash{}
	} else {
		t.Attempt++
		t.Settled = codec.Hash{}
	}
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
		if catalog := st.Catalog(c.choice()); catalog != nil {
			req.Base, req.From = st.CatalogBase(catalog), planner.FromCatalog
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
	return planner.ResolveProfile(s.turnRegistry, c.Profile, s.profile(), c.Provider)
}

// plannerFacts returns the facts for availability rules and capabilities.
func (s *State) plannerFacts() planner.Facts {
	facts := planner.Facts{HostSession: s.hostStatus(), Facts: s.Facts, Capabilities: s.install.Record.Capabilities, Floor: s.install.floor}
	if s.Spaces != nil {
		st := s.runStack()
		facts.SpaceFiles, facts.Skills, facts.Lacks = st.HasFiles(), s.hasSkills(&st), st.Lacks()
		x := s.spaces()
		facts.Grants = x.ModelsMayEnable()
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
	if s.isCompacting() {
		s.compactionSettled(b)
		return nil
	}
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
		s.turnFailed(&Fault{Code: CodeBadSettlement, Detail: sentence.Clip(bad.detail, DetailBytesMax)})
		s.generationFailed(Fault{Code: CodeBadSettlement}, bad.unusable())
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
	s.measure(b.Usage)
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
		d.Code, d.Detail = b.Error.Code, sentence.Clip(b.Error.Detail, DetailBytesMax)
	}
	s.turnSettled(b.Text, b.Usage, d)
	s.addUsage(b.Usage)
	s.measure(b.Usage)
	if b.Status == "failed" {
		s.generationFailed(*b.Error, sentence.Own(b.Error.Detail))
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
		run.Repairs, run.FinishReason = 0, b.oddFinish()
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
func (s *State) generationFailed(f Fault, detail sentence.Text) {
	run, t := s.Run, s.Turn
	if run.Lifecycle == Interrupting {
		s.endInterrupted()
		return
	}
	if s.isCompacting() {
		s.compactionFailed(f)
		return
	}
	if s.shrink(f.Code) {
		return
	}
	more := int(t.Attempt)+1 < AttemptsMax
	if more && s.fallsBack(f) {
		run.Fell++
		s.startGeneration(nil)
		return
	}
	// Those whose window was too large, or whose model was replaced, don't count.
	failed := t.Attempt - min(t.Attempt, t.Shrunk+run.Fell)
	if more && s.retries(f, failed) {
		run.Fallback = 0 // from the first model on
		return
	}
	s.endRun(Ended{Lifecycle: Failed, Code: f.Code, Detail: detail}, nil)
}

// retries schedules another attempt after `failed` earlier failures and f, and reports
// whether the run's config allows it.
func (s *State) retries(f Fault, failed uint8) bool {
	r := s.Run.Config.Retry
	if r == nil || !r.covers(f) || int(failed)+1 >= r.Attempts {
		return false
	}
	s.Turn.RetryAt = s.Clock + r.backoff(failed)
	s.turnRetries(s.Turn.RetryAt)
	return true
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

// TurnStep is what changed a turn besides the config: a step rule or a step hook.
// Rules are recorded by index; their text is where From says.
type TurnStep struct {
	At       int64                 `msgpack:"at,omitempty"`       // the session's clock at the opening of the hook's effect
	Calls    []planner.LastCall    `msgpack:"calls,omitempty"`    // while Open: as Last, if rules may ask for them
	Code     string                `msgpack:"code,omitempty"`     // why the hook's answer is not used
	Deadline int64                 `msgpack:"deadline,omitempty"` // of the hook, Unix ms
	Detail   sentence.Text         `msgpack:"detail,omitempty"`
	Facts    []planner.Fact        `msgpack:"facts,omitempty"`    // while Open: as the hook is shown them
	Failed   []planner.RuleFailure `msgpack:"failed,omitempty"`   // rules that could not be evaluated
	From     StepSource            `msgpack:"from,omitempty"`     // empty: no rule or answer applies
	Last     []string              `msgpack:"last,omitempty"`     // while Open: tool_names of the last step
	Open     bool                  `msgpack:"open,omitempty"`     // the hook's effect is open
	Prepared *planner.StepRule     `msgpack:"prepared,omitempty"` // the hook's answer
	Profile  string                `msgpack:"profile,omitempty"`  // owner of the rules, if From is a profile
	Rule     int                   `msgpack:"rule"`               // index, from 0
	RunMS    int64                 `msgpack:"run_ms,omitempty"`
	Settled  codec.Hash            `msgpack:"settled"`         // of the hook's settlement
	Tools    []planner.ToolIndex   `msgpack:"tools,omitempty"` // while Open: those that could be offered at the opening, ascending
}

// invariant checks the record of who decided about the latest turn.
func (step *TurnStep) invariant(s *State) error {
	if len(step.Code) > CodeBytesMax || step.Detail.Check() != nil || len(step.Failed) > planner.StepRulesMax ||
		len(step.Last) > CallsMax || len(step.Calls) > CallsMax || len(step.Facts) > FactsMax {
		return fmt.Errorf("its step keeps too much")
	}
	if step.At > s.Clock || step.Deadline < 0 {
		return fmt.Errorf("its step began at %d, it is %d", step.At, s.Clock)
	}
	for i := range step.Calls {
		if len(step.Calls[i].Arguments) > planner.WhenArgumentsBytesMax {
			return fmt.Errorf("its step keeps arguments of %d bytes", len(step.Calls[i].Arguments))
		}
	}
	for i, tool := range step.Tools {
		if tool < 0 || int(tool) >= s.turnRegistry.Len() || i > 0 && tool <= step.Tools[i-1] {
			return fmt.Errorf("its hook is shown tool %d of %d", tool, s.turnRegistry.Len())
		}
	}
	if step.Open && (s.Run == nil || s.Run.Config.StepHook == nil || s.Turn.Open || s.Turn.Batch != nil || step.RunMS <= 0) {
		return fmt.Errorf("its step is open, and no hook is asked")
	}
	rules := 0
	switch step.From {
	case "":
		return nil
	case StepFromRun:
		if s.Run == nil {
			return nil // the rules went with the run
		}
		rules = len(s.Run.Config.Steps)
	case StepFromProfile:
		rules = s.turnRegistry.ProfileSteps(step.Profile).Len()
	case StepFromHook:
		if step.Prepared == nil {
			return fmt.Errorf("its hook said nothing")
		}
		if err := planner.CheckStep(s.turnRegistry, "", step.Prepared); err != nil {
			return fmt.Errorf("its hook said %s", err)
		}
		return nil
	}
	if step.Rule < 0 || step.Rule >= rules {
		return fmt.Errorf("rule %d of %d from %q applies", step.Rule, rules, step.From)
	}
	return nil
}

// StepSource is the origin of a step's choice.
type StepSource string

// The origins of a step's choice. A run without own rules has the session's.
const (
	StepFromRun     StepSource = "run"
	StepFromProfile StepSource = "profile"
	StepFromHook    StepSource = "hook"
)

// runRules is the active run's step rules, compiled for one registry.
type runRules struct {
	run      uint32 // 0: not compiled
	registry *planner.Registry
	steps    *planner.Steps
}

// choice returns the choice of the latest turn's step, nil if none applies.
func (s *State) choice() *planner.StepRule {
	step := s.Turn.Step
	if step == nil {
		return nil
	}
	switch step.From {
	case StepFromRun:
		return &s.Run.Config.Steps[step.Rule]
	case StepFromProfile:
		return s.turnRegistry.ProfileSteps(step.Profile).Rule(step.Rule)
	case StepFromHook:
		return step.Prepared
	}
	return nil
}

// stepFacts returns what rules read about the latest turn's step; last are the
// calls of the turn before.
func (s *State) stepFacts(last []string) planner.StepFacts {
	run := s.Run
	return planner.StepFacts{
		Step: int(run.Turns) - 1, Used: run.Used, Last: last, Facts: s.Facts, Roles: run.Roles, Context: run.Context,
		Skills: s.activeNames(), Spaces: s.appliedNames(),
		Usage: planner.StepUsage{
			CachedTokens: run.Usage.CachedTokens, InputTokens: run.Usage.InputTokens,
			OutputTokens: run.Usage.OutputTokens, ReasoningTokens: run.Usage.ReasoningTokens,
		},
	}
}

// stepRules returns the rules of the latest turn and their origin: the run's, or if
// it has none, those of its profile.
func (s *State) stepRules() (rules *planner.Steps, from StepSource, profile string) {
	if s.Run.Config.Steps == nil {
		profile, _ = s.runsProfile()
		return s.turnRegistry.ProfileSteps(profile), StepFromProfile, profile
	}
	return s.runsRules(), StepFromRun, ""
}

// runsRules returns the active run's own rules, compiled.
func (s *State) runsRules() *planner.Steps {
	run := s.Run
	if s.rules.run != run.Number || s.rules.registry != s.turnRegistry {
		// They were compiled when they arrived, so they compile again.
		steps, _ := planner.CompileSteps(s.turnRegistry, run.Config.Steps)
		s.rules = runRules{run: run.Number, registry: s.turnRegistry, steps: steps}
	}
	return s.rules.steps
}

// matchRules records in step which of its rules applies, and makes it the latest
// turn's.
func (s *State) matchRules(rules *planner.Steps, step *TurnStep, last []string, calls []planner.LastCall) {
	facts := s.stepFacts(last)
	facts.Calls = calls
	match := rules.Match(facts)
	step.Failed, step.Rule = match.Failed, max(0, match.Rule)
	if match.Rule < 0 {
		step.From, step.Profile = "", ""
	}
	s.Turn.Step = step
}

// openStep opens the effect of a step hook for the latest turn.
func (s *State) openStep(hook *StepHook, last []string, calls []planner.LastCall) {
	deadline := cmp.Or(hook.DeadlineMS, StepDefaultMS)
	s.Turn.Step = &TurnStep{
		At: s.Clock, Calls: calls, Deadline: s.Clock + deadline, Facts: s.Facts, Last: last, Open: true, RunMS: deadline / 2,
		Tools: planner.Offerable(s.turnRegistry, s.toolRequest(), s.offerFacts()),
	}
}

// steps is the folder of the effects of class step.
type steps struct{ ofTurn }

func (steps) decode(_ string, data codec.Raw) (any, string, *refusal) {
	b := &StepPrepared{}
	bad := decodeBody(data, b)
	return b, b.Effect, bad
}

func (steps) settle(s *State, _ Place, b *settlement) *refusal {
	step := s.Turn.Step
	step.Settled = settlementHash(b.typ, b.data)
	bad, prepared := b.bad, b.body.(*StepPrepared)
	if bad == nil {
		bad = s.preparedFault(prepared)
	}
	switch {
	case bad != nil:
		s.fallBack(CodeBadSettlement, bad.unusable())
	case prepared.Status == "failed":
		s.fallBack(prepared.Error.Code, sentence.Own(prepared.Error.Detail))
	default:
		step.close()
		step.From, step.Prepared = StepFromHook, prepared.rule()
		s.startGeneration(nil)
	}
	return nil
}

// close records that the hook's effect is settled.
func (step *TurnStep) close() {
	step.Open, step.Facts, step.Last, step.Calls, step.Tools = false, nil, nil, nil, nil
}

// forgetGeneration drops what only the generation needs, once that is settled.
func (step *TurnStep) forgetGeneration() {
	if step != nil && step.Prepared != nil {
		step.Prepared = &planner.StepRule{ActiveTools: step.Prepared.ActiveTools, ToolRefs: step.Prepared.ToolRefs}
	}
}

// forgetGeneration drops what only the latest turn's generation needs, once no
// further attempt can follow.
func (s *State) forgetGeneration() {
	s.Turn.Step.forgetGeneration()
	s.turnSpace().ForgetPrompt()
}

// fallBack continues without the hook, as its config says.
func (s *State) fallBack(code string, detail sentence.Text) {
	step := s.Turn.Step
	last, calls := step.Last, step.Calls
	step.close()
	step.Code, step.Detail = code, detail
	if s.Run.Config.StepHook.Fallback == FallbackFail && s.Run.Lifecycle != Interrupting {
		s.endRun(Ended{Lifecycle: Failed, Code: code, Detail: detail}, nil)
		return
	}
	rules, from, profile := s.stepRules()
	step.From, step.Profile = from, profile
	s.matchRules(rules, step, last, calls)
	s.startGeneration(nil)
}

func (s *State) preparedFault(b *StepPrepared) *refusal {
	if bad := statusFault(b.Status, b.Error); bad != nil {
		return bad
	}
	if err := planner.CheckStep(s.turnRegistry, "", b.rule()); err != nil {
		return ruleRefusal("", err)
	}
	return nil
}

// rule returns the hook's answer as a rule.
func (b *StepPrepared) rule() *planner.StepRule {
	return &planner.StepRule{
		ActiveTools: b.ActiveTools, Context: b.Context, Model: b.Model, Params: b.Params, System: b.System,
		ToolChoice: b.ToolChoice, ToolRefs: b.ToolRefs,
	}
}

// forget drops the used tools that a registry lacks. Its rules can't ask for them,
// and a run may go through any number of registries.
func (r *Run) forget(registry *planner.Registry) {
	r.Used = slices.DeleteFunc(r.Used, func(id string) bool {
		t, ok := registry.Lookup(id)
		return !ok || registry.Tool(t).ToolID != id
	})
}

// carriedOut reports whether the call was opened and may have done something. A
// refused or cancelled call unlocks nothing.
func (c *Call) carriedOut() bool {
	return c.RunMS > 0 && (c.Status == CallSucceeded || c.Status == CallFailed || c.Status == CallUnknown)
}

// lastCalls returns the tool_names of the calls that ran in a turn of the run, in
// call order.
func (r *Run) lastCalls(t *Turn) []string {
	if t == nil || t.Run != r.Number || t.Batch == nil {
		return nil
	}
	var last []string
	for i := range t.Batch.Calls {
		if c := &t.Batch.Calls[i]; c.carriedOut() {
			last = append(last, c.ToolName)
		}
	}
	return last
}

// lastArguments returns the calls of lastCalls with their arguments.
func (r *Run) lastArguments(t *Turn) []planner.LastCall {
	if t == nil || t.Run != r.Number || t.Batch == nil {
		return nil
	}
	var calls []planner.LastCall
	for i := range t.Batch.Calls {
		c := &t.Batch.Calls[i]
		if !c.carriedOut() {
			continue
		}
		call := planner.LastCall{Status: string(c.Status), ToolID: c.ToolID, ToolName: c.ToolName}
		if !c.Cut {
			call.Arguments = c.Arguments
		}
		calls = append(calls, call)
	}
	return calls
}

// rulesReadCalls reports whether rules may read the calls of the turn before: the
// run's own rules, or those of any profile of the turn's registry, since another
// profile may be selected before the next turn.
func (s *State) rulesReadCalls() bool {
	if s.Run.Config.Steps != nil {
		return s.runsRules().AsksCalls()
	}
	return s.turnRegistry.AsksCalls()
}

// keepArguments cuts the arguments of a call with a result to what the next step is
// shown: rules see short ones whole, a hook their beginning.
func (s *State) keepArguments(c *Call) {
	kept, hook := 0, s.Run != nil && s.Run.Config.StepHook != nil
	if hook {
		kept = StepArgumentBytesMax
	}
	if s.Run != nil && c.carriedOut() && s.rulesReadCalls() {
		kept = planner.WhenArgumentsBytesMax
	}
	switch {
	case len(c.Arguments) <= kept:
	case hook:
		c.Arguments, c.Cut = sentence.Clip(c.Arguments, StepArgumentBytesMax), true
	default:
		c.Arguments = ""
	}
	c.Cut = c.Cut && hook
}

// forgetArguments drops arguments that were kept for a step that will not begin.
func (b *Batch) forgetArguments() {
	if b == nil {
		return
	}
	for i := range b.Calls {
		b.Calls[i].Arguments, b.Calls[i].Cut = "", false
	}
}

// rememberCalls stores what later steps may read of a completed batch.
func (s *State) rememberCalls(b *Batch) {
	run := s.Run
	for i := range b.Calls {
		c := &b.Calls[i]
		if c.carriedOut() {
			if at, found := slices.BinarySearch(run.Used, c.ToolID); !found {
				run.Used = slices.Insert(run.Used, at, c.ToolID)
			}
		}
		if run.Config.StepHook != nil {
			if len(run.Calls) == StepCallsMax {
				run.Calls = slices.Delete(run.Calls, 0, 1)
			}
			shown := sentence.Clip(c.Arguments, StepArgumentBytesMax)
			run.Calls = append(run.Calls, StepCall{
				Arguments: shown, ArgumentsCut: c.Cut || len(shown) < len(c.Arguments), CallsSeq: b.Seq, Code: c.Code, Edit: c.Edit,
				Effect: callName(run.Number, run.Turns, i), Seq: c.Seq, Status: c.Status, Step: int(run.Turns) - 1,
				ToolID: c.ToolID, ToolName: c.ToolName,
			})
		}
	}
	run.cutArguments()
}

// cutArguments drops arguments of earlier calls, oldest first, beyond the total
// that a hook is shown.
func (r *Run) cutArguments() {
	left := StepArgumentsBytesMax
	for i := len(r.Calls) - 1; i >= 0; i-- {
		c := &r.Calls[i]
		if left -= len(c.Arguments); left < 0 && c.Arguments != "" {
			c.Arguments, c.ArgumentsCut = "", true
		}
	}
}

// latestItems returns the end of the transcript that a hook is shown. It has no
// result without its call.
func (s *State) latestItems() []Item {
	items := s.Items[max(0, len(s.Items)-StepItemsMax):]
	for len(items) < len(s.Items) && len(items) > 0 && items[0].Role == RoleTool {
		items = items[1:]
	}
	if s.Window != nil { // a hook reads the log, which has all of each
		items = slices.Clone(items)
		for i := range items {
			items[i].Shown = 0
		}
	}
	return items
}

// effect encodes the effect of the latest turn's step hook.
func (steps) effect(s *State, _ Place, _ []byte) Effect {
	t := s.Turn
	run, name, items := s.Run, t.step().String(), s.latestItems()
	hook := run.Config.StepHook.Hook
	facts := make(codec.Pairs, len(t.Step.Facts))
	for i, f := range t.Step.Facts {
		facts[i] = codec.Pair{Key: f.Name, Value: encode(f.Value)}
	}
	tools := make([]StepTool, len(t.Step.Tools))
	for i, tool := range t.Step.Tools {
		spec := s.turnRegistry.Tool(tool)
		tools[i] = StepTool{ToolID: spec.ToolID, ToolName: spec.ToolName}
	}
	used := run.Used
	if used == nil {
		used = []string{}
	}
	startBy := t.Step.Deadline - t.Step.RunMS
	return Effect{
		Name: name, Class: ClassStep, Target: hook, Deadline: t.Step.Deadline, StartBy: startBy,
		Payload: encode(Step{
			At: t.Step.At, Calls: run.Calls, Class: ClassStep, Context: run.Context, Effect: name, Facts: facts, Hook: hook,
			InputSeq: run.Seq, Items: ListItems(items...), ItemsCut: len(items) < s.ItemCount(), Summary: s.windowSummary(), Model: run.model(), Provider: s.TurnProvider(), Roles: run.Roles, RunMS: t.Step.RunMS, Session: s.Session,
			StartBy: startBy, Step: int(t.Number) - 1, Tools: tools, Usage: run.Usage, Used: used, V: Version,
		}),
	}
}

func observedFault(b *ToolCallsObserved) *refusal {
	for i := range b.Calls {
		if fault := b.Calls[i].fault(); fault != "" {
			return refuse(RejectInvalidData, "calls["+strconv.Itoa(i)+"]."+fault)
		}
	}
	return cmp.Or(opaqueFault(b.Opaque), contentFault("text", b.Text, true))
}

// fault checks a call as the model made it.
func (c *ObservedCall) fault() string {
	switch {
	case c.ArgumentsBlob != nil && c.Arguments != "":
		return "arguments: stand beside arguments_blob: give one of the two"
	case c.ArgumentsBlob == nil && c.Size != 0:
		return "size: belongs to an arguments_blob"
	}
	return ""
}

func opaqueFault(opaque codec.Raw) *refusal {
	if codec.HasBinary(opaque) {
		return refuse(RejectInvalidData, "opaque: "+noBinary)
	}
	return nil
}

// noBinary is the detail for binary in a value. JSON has no binary, so a reader
// that prints the value would show another one.
const noBinary = "holds binary, which JSON does not have: send it as text"

func generationFault(b *GenerationSettled) *refusal {
	if bad := statusFault(b.Status, b.Error); bad != nil {
		return bad
	}
	return cmp.Or(opaqueFault(b.Opaque), contentFault("text", b.Text, true))
}

// statusFault checks the status of a settlement that is ok or failed: exactly the
// failed one has an error.
func statusFault(status string, f *Fault) *refusal {
	switch {
	case status == "ok" && f != nil:
		return refuse(RejectInvalidData, "error: is only allowed with status failed")
	case status == "failed" && f == nil:
		return refuse(RejectInvalidData, "error: is required with status failed")
	}
	return nil
}

func (c *Content) isEmpty() bool { return c.Text == "" && c.Blob == nil && len(c.Parts) == 0 }
