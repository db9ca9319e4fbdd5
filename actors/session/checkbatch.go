package session

import (
	"fmt"
	"slices"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// checkToolset checks that a toolset is one of the pinned registry.
func (s *State) checkToolset(set *planner.Toolset) error {
	reg := s.turnRegistry
	if set.Registry != reg.Hash() || len(set.Verdicts) != 2*reg.Len() {
		return fmt.Errorf("the toolset is of registry %s, pinned is %s", set.Registry, reg.Hash())
	}
	switch planner.ProfileFrom(set.Source) {
	case "", planner.ProfileFromConfig, planner.ProfileFromSession, planner.ProfileFromProvider, planner.ProfileFromDefault:
	default:
		if set.IsFromProfile() {
			return fmt.Errorf("the toolset is from %s", quoted(string(set.Source)))
		}
	}
	return checkOffers(reg, set.Offers)
}

// checkOffers checks that a registry has the tools that are offered or defined.
func checkOffers(reg *planner.Registry, offers []planner.Offer) error {
	for _, o := range offers {
		if int(o.Tool()) >= reg.Len() || o.Variant() > len(reg.Tool(o.Tool()).Alternates) {
			return fmt.Errorf("tool %d, descriptor %d is offered of %d tools", o.Tool(), o.Variant(), reg.Len())
		}
	}
	return nil
}

func (s *State) checkBatch() error {
	b := s.Turn.Batch
	if b == nil {
		return nil
	}
	switch {
	case len(b.Calls) == 0 || len(b.Calls) > CallsMax || len(b.Plan.Calls) != len(b.Calls):
		return fmt.Errorf("a batch of %d calls, %d are planned", len(b.Calls), len(b.Plan.Calls))
	case b.Excess < 0 || b.Excess > CallsSeenMax-CallsMax:
		return fmt.Errorf("a batch with %d calls in excess", b.Excess)
	case b.Seq == 0 || b.Seq > s.Seq:
		return fmt.Errorf("a batch of event %d, the latest is %d", b.Seq, s.Seq)
	case b.Group < 0 || b.Group > len(b.Plan.Groups):
		return fmt.Errorf("a batch in group %d of %d", b.Group, len(b.Plan.Groups))
	case b.PlanHash != b.Plan.Hash() || s.LastPlan != b.PlanHash:
		return fmt.Errorf("plan_hash is %s, the plan's is %s, the latest %s", b.PlanHash, b.Plan.Hash(), s.LastPlan)
	}
	group := make([]int, len(b.Calls)) // from 1; 0: in none
	for g, calls := range b.Plan.Groups {
		for _, i := range calls {
			if i < 0 || i >= len(b.Calls) || group[i] > 0 {
				return fmt.Errorf("the plan names call %d of %d, or names it twice", i, len(b.Calls))
			}
			group[i] = g + 1
		}
	}
	for i := range b.Calls {
		if err := s.checkCall(&b.Calls[i], group[i]-1); err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
	}
	return nil
}

// checkDone checks the last completed batch. A later turn must not mistake its
// results for its own. If it is the latest turn's, it has as many calls as that.
func (s *State) checkDone() error {
	d, t := s.Done, s.Turn
	if d == nil {
		return nil
	}
	latest := t != nil && d.Run == t.Run && d.Turn == t.Number
	switch {
	case d.Run == 0 || d.Turn == 0 || d.Run > s.Runs || len(d.Results) > CallsMax,
		t == nil, d.Run == t.Run && d.Turn > t.Number,
		s.Run != nil && d.Run == s.Run.Number && d.Turn > s.Run.Turns,
		slices.ContainsFunc(s.Queue, func(r Run) bool { return r.Number == d.Run }):
		return fmt.Errorf("%d results of %s are kept", len(d.Results), turnName(d.Run, d.Turn))
	case latest && (t.Batch == nil || t.isOpen() || len(d.Results) != len(t.Batch.Calls)):
		return fmt.Errorf("%d results of %s are kept, whose batch is another", len(d.Results), turnName(d.Run, d.Turn))
	}
	return nil
}

// checkCall checks one call; group is its group, -1 for none.
func (s *State) checkCall(c *Call, group int) error {
	open := s.Turn.Batch.Group
	switch c.Status {
	case CallWaiting:
		if group < open || group == open && (s.Run == nil || s.Run.Lifecycle != Paused) {
			return fmt.Errorf("it waits in group %d, open is %d", group, open)
		}
	case CallAwaiting:
		if group < open || c.Approval == nil || s.Run == nil {
			return fmt.Errorf("it awaits approval in group %d, open is %d", group, open)
		}
	case CallOpen:
		if group != open || c.RunMS <= 0 || s.Run == nil {
			return fmt.Errorf("it is open in group %d, open is %d, for %d ms", group, open, c.RunMS)
		}
	case CallSucceeded, CallFailed, CallCancelled, CallUnknown, CallIgnored:
		if c.Arguments != "" && (len(c.Arguments) > planner.WhenArgumentsBytesMax || !s.mayKeepArguments()) || c.Host != nil || c.Approval != nil || c.Seq == 0 || c.Seq > s.Seq {
			return fmt.Errorf("its result is that of event %d, and it keeps arguments of %d bytes", c.Seq, len(c.Arguments))
		}
	default:
		return fmt.Errorf("its status is %q", c.Status)
	}
	if c.Cut && (!c.done() || !s.turnIsRuns() || s.Run.Config.StepHook == nil || len(c.Arguments) > StepArgumentBytesMax) {
		return fmt.Errorf("its arguments are cut to %d bytes", len(c.Arguments))
	}
	if c.Pack != nil && (c.done() || s.Spaces == nil) {
		return fmt.Errorf("it is %s, and a person is shown the pack %s", c.Status, c.Pack.Pin.Space)
	}
	if c.Edit > s.Seq || c.Approval != nil && c.Status != CallAwaiting {
		return fmt.Errorf("it is %s, edited by event %d of %d", c.Status, c.Edit, s.Seq)
	}
	if _, known := s.turnRegistry.Lookup(c.ToolID); !c.done() && (!known || c.Arguments == "") {
		return fmt.Errorf("it is of tool %q, with arguments of %d bytes", c.ToolID, len(c.Arguments))
	}
	if len(c.ToolName) > NameBytesMax || len(c.ProviderCallID) > ByBytesMax || len(c.Code) > CodeBytesMax || len(c.Detail) > DetailBytesMax {
		return fmt.Errorf("a text of it is too long")
	}
	return nil
}

// mayKeepArguments reports whether calls of the latest turn may keep arguments
// for the next step.
func (s *State) mayKeepArguments() bool {
	if !s.turnIsRuns() {
		return false
	}
	c := &s.Run.Config
	return c.StepHook != nil || len(c.Steps) > 0 || c.Steps == nil && s.turnRegistry.AsksCalls()
}

// checkSteps checks what the run keeps for its steps.
func (r *Run) checkSteps() error {
	if bad := rolesFault(r.Roles); bad != nil {
		return fmt.Errorf("%s", bad.detail)
	}
	if len(r.Calls) > StepCallsMax || len(r.Used) > planner.ToolsMax || !slices.IsSorted(r.Used) {
		return fmt.Errorf("%d calls are kept, of %d tools", len(r.Calls), len(r.Used))
	}
	arguments := 0
	for i := range r.Calls {
		if arguments += len(r.Calls[i].Arguments); arguments > StepArgumentsBytesMax || len(r.Calls[i].Arguments) > StepArgumentBytesMax {
			return fmt.Errorf("arguments of %d bytes are kept of earlier calls", arguments)
		}
	}
	if len(r.Context) > planner.StepContextBytesMax || len(r.Context) > 0 && !codec.IsMap(r.Context) {
		return fmt.Errorf("its context has %d bytes, or is no object", len(r.Context))
	}
	return nil
}

// checkStep checks the record of who decided about the latest turn.
func (s *State) checkStep() error {
	step := s.Turn.Step
	if step == nil {
		return nil
	}
	if len(step.Code) > CodeBytesMax || len(step.Detail) > DetailBytesMax || len(step.Failed) > planner.StepRulesMax ||
		len(step.Last) > CallsMax || len(step.Calls) > CallsMax || len(step.Facts) > FactsMax {
		return fmt.Errorf("its step keeps too much")
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
