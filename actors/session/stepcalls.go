package session

import (
	"slices"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

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
		c.Arguments, c.Cut = clip(c.Arguments, StepArgumentBytesMax), true
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
			shown := clip(c.Arguments, StepArgumentBytesMax)
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
			InputSeq: run.Seq, Items: ListItems(items...), ItemsCut: len(items) < len(s.Items), Model: run.Config.Model, Provider: run.Config.Provider, Roles: run.Roles, RunMS: t.Step.RunMS, Session: s.Session,
			StartBy: startBy, Step: int(t.Number) - 1, Tools: tools, Usage: run.Usage, Used: used, V: Version,
		}),
	}
}
