package session

import (
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// Open returns what the world still owes this session, oldest first: the open
// step, generation or calls, then the wakes. A call that a host loop carries
// out is no effect: the view shows it. Asking for all of it again is
// always right, because a name that was asked before stays asked. The bytes
// of an effect are the same as long as it is open.
func (s *State) Open() []Effect { return s.OpenExcept(func(string) bool { return false }) }

// OpenExcept is Open without the effects whose names skip knows: what was
// asked already need not be built again.
func (s *State) OpenExcept(skip func(name string) bool) []Effect {
	return s.OpenBeside(func(p Place) bool { return skip(p.String()) })
}

// openRoom is for how many effects there is room as soon as one call is open.
const openRoom = 8

// OpenBeside is OpenExcept by places: the name of what is skipped is not
// spelled.
func (s *State) OpenBeside(skip func(Place) bool) []Effect {
	var effects []Effect
	if t := s.Turn; s.Run != nil && t != nil {
		p := Place{run: t.Run, turn: t.Number, call: -1}
		if step := p; t.stepOpen() {
			if step.step = true; !skip(step) {
				effects = append(effects, s.step(t))
			}
		}
		if asked := p; t.Open {
			if asked.attempt = t.Attempt; !skip(asked) {
				effects = append(effects, s.generation(t))
			}
		}
		if t.Batch != nil {
			for i := range t.Batch.Calls {
				p.call = int32(i)
				if c := &t.Batch.Calls[i]; c.Status == CallOpen && !s.isHostLoop(c) && !skip(p) {
					if effects == nil { // most batches are asked whole
						effects = make([]Effect, 0, min(len(t.Batch.Calls)-i, openRoom))
					}
					effects = append(effects, s.toolCall(t, i))
				}
			}
		}
	}
	for i := range s.Wakes {
		if !skip(Place{wake: s.Wakes[i].Number, call: -1}) {
			effects = append(effects, s.wake(&s.Wakes[i]))
		}
	}
	return effects
}

// generation builds the effect that asks for a turn of the model: as the run's
// config says, but for what the turn's step says.
func (s *State) generation(t *Turn) Effect {
	c := &s.Run.Config
	name := t.name()
	g := Generation{
		At: t.At, Class: ClassLLM, Effect: name, Items: s.Items[:t.Items], Model: c.Model, Params: c.Params,
		Provider: c.Provider, ResponseFormat: c.ResponseFormat, RunMS: int64(t.RunMS), Session: s.Session, StartBy: t.startBy(), System: c.System,
		ToolChoice: s.toolChoice(t), Tools: s.refs(&t.Toolset), Toolset: t.Toolset.Fingerprint, V: Version,
	}
	if choice := s.choice(); choice != nil {
		if choice.Model != "" {
			g.Model = choice.Model
		}
		if len(choice.Params) > 0 {
			g.Params = choice.Params
		}
		if choice.System != "" {
			g.System = choice.System
		}
	}
	return Effect{
		Name: name, Class: ClassLLM, Target: c.Provider, Claimed: true, Deadline: t.Deadline, StartBy: t.startBy(),
		Payload: g.payload(),
	}
}

// startBy returns when the generation is started at the latest, Unix ms.
func (t *Turn) startBy() int64 { return t.Deadline - int64(t.RunMS) }

// toolChoice returns the turn's choice as a provider takes it: a tool by its
// tool_name, and none that this turn doesn't offer, which providers refuse. A
// choice that forces a call holds for one step: a run that is forced at every
// turn never ends.
func (s *State) toolChoice(t *Turn) string {
	choice := s.Run.Config.ToolChoice
	if t.Number > 1 && choice != "none" {
		choice = ""
	}
	if step := s.choice(); step != nil && step.ToolChoice != "" {
		choice = step.ToolChoice
	}
	if len(t.Toolset.Offers) == 0 {
		return ""
	}
	if isModeOfChoice(choice) {
		return choice
	}
	tool, known := s.turnsOwn.Lookup(choice)
	if !known {
		return ""
	}
	return t.Toolset.ToolName(s.turnsOwn, tool)
}

// refs returns the descriptors of the tools offered, in order.
func (s *State) refs(set *planner.Toolset) []codec.Hash {
	refs := set.Refs(s.turnsOwn)
	hashes := make([]codec.Hash, len(refs))
	for i := range refs {
		hashes[i] = refs[i].Hash
	}
	return hashes
}

// tool returns the spec of a tool that a call of the latest turn names.
func (s *State) tool(id string) *planner.ToolSpec {
	t, _ := s.turnsOwn.Lookup(id)
	return s.turnsOwn.Tool(t)
}

// isHostLoop reports whether the program that drives the session carries a
// call out, and no bridge.
func (s *State) isHostLoop(c *Call) bool {
	return s.tool(c.ToolID).Executor.Kind == planner.ExecutorHostLoop
}

// toolCall builds the effect that asks for call i.
func (s *State) toolCall(t *Turn, i int) Effect {
	c := &t.Batch.Calls[i]
	tool := s.tool(c.ToolID)
	name := callName(t.Run, t.Number, i)
	asked := ToolCall{
		Arguments: c.Arguments, At: c.At, Batch: turnName(t.Run, t.Number), Call: i, Class: ClassTool,
		Context: s.Run.Context, Effect: name, HostSession: c.Host, IdempotencyKey: s.Session + "." + name, PlanHash: t.Batch.PlanHash,
		ProviderCallID: c.ProviderCallID, RetrySafe: tool.RetrySafe, RunMS: c.RunMS, Session: s.Session,
		StartBy: c.Deadline - c.RunMS, ToolID: c.ToolID, ToolName: c.ToolName, V: Version,
	}
	return Effect{
		Name: name, Class: ClassTool, Target: callTarget(tool, c.Host), Claimed: !tool.RetrySafe, Deadline: c.Deadline, StartBy: c.Deadline - c.RunMS,
		Payload: asked.payload(),
	}
}

// wake builds the effect that asks to be woken.
func (s *State) wake(w *OpenWake) Effect {
	name := wakeName(w.Number)
	asked := Wake{At: w.At, Class: ClassWake, Due: w.Due, Effect: name, Session: s.Session, StartBy: w.Due, V: Version}
	return Effect{Name: name, Class: ClassWake, Target: "-", Deadline: w.Due, StartBy: w.Due, Payload: asked.payload()}
}

// encode returns the canonical bytes of an effect. It can't fail: every part
// was checked when it came in.
func encode(v any) []byte {
	b, err := codec.Marshal(v)
	if err != nil {
		panic("session: an effect does not encode: " + err.Error())
	}
	return b
}
