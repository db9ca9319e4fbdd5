package session

import (
	"slices"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// TurnStep is what had a say in a turn beside the config: a step rule, or an
// outside hook. Rules are recorded by index; their text is where From says.
type TurnStep struct {
	At       int64                 `msgpack:"at,omitempty"`       // clock when the hook was asked
	Code     string                `msgpack:"code,omitempty"`     // why the hook's answer does not count
	Deadline int64                 `msgpack:"deadline,omitempty"` // of the hook, Unix ms
	Detail   string                `msgpack:"detail,omitempty"`
	Facts    []planner.Fact        `msgpack:"facts,omitempty"`    // while the hook is asked: as it is shown them
	Failed   []planner.RuleFailure `msgpack:"failed,omitempty"`   // rules that could not be evaluated
	From     StepSource            `msgpack:"from,omitempty"`     // empty: nothing applies
	Last     []string              `msgpack:"last,omitempty"`     // while the hook is asked: tool_names of the last step
	Open     bool                  `msgpack:"open,omitempty"`     // the hook is asked
	Prepared *planner.StepRule     `msgpack:"prepared,omitempty"` // what the hook said
	Profile  string                `msgpack:"profile,omitempty"`  // whose rules, if from a profile
	Rule     int                   `msgpack:"rule"`               // index, from 0
	RunMS    int64                 `msgpack:"run_ms,omitempty"`
	Settled  codec.Hash            `msgpack:"settled"` // of the hook's settlement
}

// StepSource says where the choice of a turn's step comes from.
type StepSource string

// The sources of a step's choice. A run's rules are the session's if it gave
// none itself.
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

// choice returns what the latest turn's step chose, nil if nothing applies.
func (s *State) choice() *planner.StepRule {
	step := s.Turn.Step
	if step == nil {
		return nil
	}
	switch step.From {
	case StepFromRun:
		return &s.Run.Config.Steps[step.Rule]
	case StepFromProfile:
		return s.turnsOwn.ProfileSteps(step.Profile).Rule(step.Rule)
	case StepFromHook:
		return step.Prepared
	}
	return nil
}

// lastCalls returns the tool_names of the calls that a turn of the run carried
// out, in call order.
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

// stepFacts returns what rules see of the step of the latest turn; last are
// the calls of the one before it.
func (s *State) stepFacts(last []string) planner.StepFacts {
	run := s.Run
	return planner.StepFacts{
		Step: int(run.Turns) - 1, Used: run.Used, Last: last, Facts: s.Facts, Roles: run.Roles, Context: run.Context,
		Usage: planner.StepUsage{
			CachedTokens: run.Usage.CachedTokens, InputTokens: run.Usage.InputTokens,
			OutputTokens: run.Usage.OutputTokens, ReasoningTokens: run.Usage.ReasoningTokens,
		},
	}
}

// stepRules returns the rules of the latest turn and where they are from: the
// run's, or if it has none, those of its profile.
func (s *State) stepRules() (rules *planner.Steps, from StepSource, profile string) {
	run := s.Run
	if run.Config.Steps == nil {
		profile, _ = s.runsProfile()
		return s.turnsOwn.ProfileSteps(profile), StepFromProfile, profile
	}
	if s.rules.run != run.Number || s.rules.registry != s.turnsOwn {
		// They were compiled when they came, so they compile again.
		steps, _ := planner.CompileSteps(s.turnsOwn, run.Config.Steps)
		s.rules = runRules{run: run.Number, registry: s.turnsOwn, steps: steps}
	}
	return s.rules.steps, StepFromRun, ""
}

// matchRules records in step, the latest turn's, which of its rules applies.
func (s *State) matchRules(rules *planner.Steps, step *TurnStep, last []string) {
	match := rules.Match(s.stepFacts(last))
	step.Failed, step.Rule = match.Failed, max(0, match.Rule)
	if match.Rule < 0 {
		step.From, step.Profile = "", ""
	}
	s.Turn.Step = step
}

// askStep asks an outside hook what the latest turn offers.
func (s *State) askStep(hook *StepHook, last []string) {
	deadline := int64(StepDefaultMS)
	if hook.DeadlineMS > 0 {
		deadline = hook.DeadlineMS
	}
	s.Turn.Step = &TurnStep{
		At: s.Clock, Deadline: s.Clock + deadline, Facts: s.Facts, Last: last, Open: true, RunMS: deadline / 2,
	}
}

// settleStep folds a settlement of the open step.
func (s *State) settleStep(b *settlement) {
	step := s.Turn.Step
	step.Settled = settlementHash(b.typ, b.data)
	bad := b.bad
	if bad == nil {
		bad = s.preparedFault(b.prepared)
	}
	switch {
	case bad != nil:
		s.fallBack(CodeBadSettlement, bad.detail)
	case b.prepared.Status == "failed":
		s.fallBack(b.prepared.Error.Code, b.prepared.Error.Detail)
	default:
		step.close()
		step.From, step.Prepared = StepFromHook, b.prepared.rule()
		s.askGeneration(nil)
	}
}

// close takes the hook as answered.
func (step *TurnStep) close() { step.Open, step.Facts, step.Last = false, nil, nil }

// forgetGeneration drops what only the generation needed, when it is settled.
func (step *TurnStep) forgetGeneration() {
	if step != nil && step.Prepared != nil {
		step.Prepared = &planner.StepRule{ActiveTools: step.Prepared.ActiveTools, ToolRefs: step.Prepared.ToolRefs}
	}
}

// fallBack goes on without the hook, as its config says.
func (s *State) fallBack(code, detail string) {
	step := s.Turn.Step
	last := step.Last
	step.close()
	step.Code, step.Detail = code, clip(detail, DetailBytesMax)
	if s.Run.Config.StepHook.Fallback == FallbackFail && s.Run.Lifecycle != Interrupting {
		s.endRun(Ended{Lifecycle: Failed, Code: code, Detail: detail}, nil)
		return
	}
	rules, from, profile := s.stepRules()
	step.From, step.Profile = from, profile
	s.matchRules(rules, step, last)
	s.askGeneration(nil)
}

// preparedFault says what is wrong with a StepPrepared by itself.
func (s *State) preparedFault(b *StepPrepared) *refusal {
	if bad := statusFault(b.Status, b.Error); bad != nil {
		return bad
	}
	if bad := faultFault(b.Error); bad != nil {
		return bad
	}
	if err := planner.CheckStep(s.turnsOwn, "", b.rule()); err != nil {
		return ruleRefusal("", err)
	}
	return nil
}

// rule returns what the hook said in the form of a rule.
func (b *StepPrepared) rule() *planner.StepRule {
	return &planner.StepRule{
		ActiveTools: b.ActiveTools, Context: b.Context, Model: b.Model, Params: b.Params, System: b.System,
		ToolChoice: b.ToolChoice, ToolRefs: b.ToolRefs,
	}
}

// rememberCalls keeps of a completed batch what later steps may ask about.
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
			run.Calls = append(run.Calls, StepCall{
				Code: c.Code, Status: c.Status, Step: int(run.Turns) - 1, ToolID: c.ToolID, ToolName: c.ToolName,
			})
		}
	}
}

// forget drops, of the tools that were used, those that a registry doesn't
// have: no rule for it can ask for them, and a run may go through any number of
// registries.
func (r *Run) forget(registry *planner.Registry) {
	r.Used = slices.DeleteFunc(r.Used, func(id string) bool {
		t, ok := registry.Lookup(id)
		return !ok || registry.Tool(t).ToolID != id
	})
}

// carriedOut reports whether the call was asked and may have done something: a
// call that was refused or cancelled unlocks nothing.
func (c *Call) carriedOut() bool {
	switch c.Status {
	case CallSucceeded, CallFailed, CallUnknown:
		return c.RunMS > 0
	}
	return false
}

// step builds the effect that asks the hook of the latest turn.
func (s *State) step(t *Turn) Effect {
	run, name := s.Run, stepName(t.Run, t.Number)
	hook := run.Config.StepHook.Hook
	facts := make(codec.Pairs, len(t.Step.Facts))
	for i, f := range t.Step.Facts {
		facts[i] = codec.Pair{Key: f.Name, Value: encode(f.Value)}
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
			Model: run.Config.Model, Provider: run.Config.Provider, Roles: run.Roles, RunMS: t.Step.RunMS, Session: s.Session,
			StartBy: startBy, Step: int(t.Number) - 1, Usage: run.Usage, Used: used, V: Version,
		}),
	}
}
