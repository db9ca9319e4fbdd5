package session

import (
	"cmp"
	"slices"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// TurnStep is what changed a turn besides the config: a step rule or a step hook.
// Rules are recorded by index; their text is where From says.
type TurnStep struct {
	At       int64                 `msgpack:"at,omitempty"`       // the session's clock at the opening of the hook's effect
	Calls    []planner.LastCall    `msgpack:"calls,omitempty"`    // while Open: as Last, if rules may ask for them
	Code     string                `msgpack:"code,omitempty"`     // why the hook's answer is not used
	Deadline int64                 `msgpack:"deadline,omitempty"` // of the hook, Unix ms
	Detail   string                `msgpack:"detail,omitempty"`
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
		s.fallBack(CodeBadSettlement, bad.detail)
	case prepared.Status == "failed":
		s.fallBack(prepared.Error.Code, prepared.Error.Detail)
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
	s.turnSpace().forgetPrompt()
}

// fallBack continues without the hook, as its config says.
func (s *State) fallBack(code, detail string) {
	step := s.Turn.Step
	last, calls := step.Last, step.Calls
	step.close()
	step.Code, step.Detail = code, clip(detail, DetailBytesMax)
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
	if bad := cmp.Or(statusFault(b.Status, b.Error), faultFault(b.Error)); bad != nil {
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
