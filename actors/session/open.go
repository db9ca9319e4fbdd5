package session

import (
	"strconv"
	"strings"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// Open returns the open effects: the step, generation or calls, oldest first, then
// the syncs of spaces, then the wakes. A call for a host loop is no effect: the
// view shows it. Publishing all of them again is always correct: a name takes one
// message, and an effect's bytes do not change while it is open.
func (s *State) Open() []Effect { return s.OpenExcept(func(Place) bool { return false }) }

// payloadRoom is the usual size of an effect or a settlement, at most.
const payloadRoom = 512

// openRoom is the first capacity, in effects, when a call is open.
const openRoom = 8

// OpenExcept is Open without the effects that skip accepts: effects that are stored
// already need not be encoded again.
func (s *State) OpenExcept(skip func(Place) bool) []Effect {
	var effects []Effect
	s.eachOpen(func(p Place) {
		if skip(p) {
			return
		}
		if effects == nil && p.kind == kindTool { // most batches open whole
			effects = make([]Effect, 0, min(len(s.Turn.Batch.Calls)-int(p.n), openRoom))
		}
		effects = append(effects, s.effect(p, nil))
	})
	return effects
}

// EachOpen is OpenExcept for a caller that handles one effect at a time. It calls
// fn with each effect that is not skipped, right after skip. The Payload is in
// room's memory if that is large enough, and valid until fn returns. EachOpen
// returns the room for the next call.
func (s *State) EachOpen(room []byte, skip func(Place) bool, fn func(Place, Effect)) []byte {
	s.eachOpen(func(p Place) {
		if skip(p) {
			return
		}
		e := s.effect(p, room)
		room = e.Payload[:0]
		fn(p, e)
	})
	return room
}

// eachOpen calls fn with the Places of all open effects, in order.
func (s *State) eachOpen(fn func(Place)) {
	if t := s.Turn; s.Run != nil && t != nil {
		if t.stepOpen() {
			fn(t.step())
		}
		if t.Open {
			fn(t.generation())
		}
		if t.Batch != nil {
			for i := range t.Batch.Calls {
				if c := &t.Batch.Calls[i]; c.Status == CallOpen && c.Sync == 0 && !s.isHostLoop(c) {
					fn(t.call(i))
				}
			}
		}
	}
	for _, of := range numberedClasses {
		for i := 0; ; i++ {
			n, ok := of.open(s, i)
			if !ok {
				break
			}
			fn(Place{kind: of.kind, n: n})
		}
	}
}

// effect encodes an open effect, in room if that is large enough.
func (s *State) effect(p Place, room []byte) Effect { return classes[p.kind].folds.effect(s, p, room) }

// effect encodes the effect of a model turn, from the run's config and the choices
// of the turn's step.
func (generations) effect(s *State, _ Place, room []byte) Effect {
	t, c := s.Turn, &s.Run.Config
	name := t.name()
	g := Generation{
		At: t.At, CacheTTL: c.CacheTTL, Class: ClassLLM, Defined: s.definitions(t), Effect: name, Items: ListItems(s.Items[:t.Items]...), Model: s.TurnModel(), Params: c.Params,
		OutputTokensMax: int64(t.OutputTokensMax), Provider: c.Provider, ResponseFormat: s.ResponseFormat(), RunMS: int64(t.RunMS), Session: s.Session, StartBy: t.startBy(), System: s.system(),
		ToolChoice: s.toolChoice(t), Tools: s.refs(t.Toolset.Offers), Toolset: t.Toolset.Fingerprint, V: Version,
	}
	s.showPrompt(&g)
	if choice := s.choice(); choice != nil && len(choice.Params) > 0 {
		g.Params = choice.Params
	}
	return Effect{
		Name: name, Class: ClassLLM, Target: c.Provider, Claimed: true, Deadline: t.Deadline, StartBy: t.startBy(),
		Payload: encodeIn(room, &g),
	}
}

// TurnModel returns the latest turn's model: its step's choice, else the run's.
func (s *State) TurnModel() string {
	if choice := s.choice(); choice != nil && choice.Model != "" {
		return choice.Model
	}
	return s.Run.Config.Model
}

func (s *State) system() string {
	if choice := s.choice(); choice != nil && choice.System != "" {
		return choice.System
	}
	return s.Run.Config.System
}

func (t *Turn) startBy() int64 { return t.Deadline - int64(t.RunMS) }

// toolChoice returns the turn's tool choice for a provider: a tool by its
// tool_name, and never one that this turn doesn't offer, which providers refuse. A
// choice that forces a call applies to one step only: a run that is forced in every
// turn never ends.
func (s *State) toolChoice(t *Turn) string {
	choice := s.Run.Config.ToolChoice
	if choice == "" && t.Toolset.Source == planner.FromCatalog {
		choice = s.catalogChoice()
	}
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
	tool, known := s.turnRegistry.Lookup(choice)
	if !known {
		return ""
	}
	return t.Toolset.ToolName(s.turnRegistry, tool)
}

// refs returns the descriptors of the latest turn's offers, in order.
func (s *State) refs(offers []planner.Offer) []codec.Hash {
	set := planner.Toolset{Offers: offers}
	hashes := make([]codec.Hash, len(offers))
	for i := range hashes {
		hashes[i] = set.Ref(s.turnRegistry, i).Hash
	}
	return hashes
}

// CallAsked returns when an open retry-safe call was opened, Unix ms; ok is false
// for any other effect.
func (s *State) CallAsked(effect string) (at int64, ok bool) {
	p, ok := parseName(effect)
	if _, status := s.statusOf(p); !ok || p.kind != kindTool || status != effectOpen {
		return 0, false
	}
	c := &s.Turn.Batch.Calls[p.n]
	return c.At, s.tool(c.ToolID).RetrySafe
}

// IsRetrySafe reports whether a call of the latest turn may run twice.
func (s *State) IsRetrySafe(c *Call) bool { return s.tool(c.ToolID).RetrySafe }

// CallTarget returns whose bridges would carry out a call of this tool, which the
// latest turn has made, if it was opened now.
func (s *State) CallTarget(toolID string) string { return callTarget(s.tool(toolID), s.Host) }

// tool returns the spec of the tool of a call of the latest turn.
func (s *State) tool(id string) *planner.ToolSpec {
	t, _ := s.turnRegistry.Lookup(id)
	return s.turnRegistry.Tool(t)
}

// layerOf returns the space that the tool of a call came with, or "".
func (s *State) layerOf(c *Call) string {
	t, _ := s.turnRegistry.Lookup(c.ToolID)
	return s.turnRegistry.LayerOf(t)
}

// isHostLoop reports whether the program that drives the session runs a call, not a
// bridge.
func (s *State) isHostLoop(c *Call) bool {
	return s.tool(c.ToolID).Executor.Kind == planner.ExecutorHostLoop
}

func (calls) effect(s *State, p Place, room []byte) Effect {
	t, i := s.Turn, int(p.n)
	c := &t.Batch.Calls[i]
	tool := s.tool(c.ToolID)
	key, name, batch := s.callNames(t, i)
	payload := ToolCall{
		Arguments: c.Arguments, At: c.At, Batch: batch, Call: i, Class: ClassTool,
		Context: s.Run.Context, Effect: name, HostSession: c.Host, IdempotencyKey: key, PlanHash: t.Batch.PlanHash,
		ProviderCallID: c.ProviderCallID, RetrySafe: tool.RetrySafe, RunMS: c.RunMS, Session: s.Session,
		StartBy: c.Deadline - c.RunMS, ToolID: c.ToolID, ToolName: c.ToolName, V: Version,
	}
	payload.Spaces = s.turnSpace().usedSpaces(s.layerOf(c))
	if strings.HasPrefix(c.ToolID, extensionsPrefix) {
		payload.Grants = s.turnSpace().Grants
	}
	return Effect{
		Name: name, Class: ClassTool, Target: callTarget(tool, c.Host), Claimed: !tool.RetrySafe, Deadline: c.Deadline, StartBy: c.Deadline - c.RunMS,
		Payload: encodeIn(room, &payload),
	}
}

// sessionRoom exceeds the size of a session's id and a dot.
const sessionRoom = 72

// callNames returns call i's idempotency key, which ends with its name, the name,
// which begins with its batch's, and the batch's: one text for the three.
func (s *State) callNames(t *Turn, i int) (key, name, batch string) {
	var room [nameRoom + sessionRoom]byte
	b := append(append(room[:0], s.Session...), '.')
	from := len(b)
	b = appendTurn(b, t.Run, t.Number)
	to := len(b)
	key = string(strconv.AppendInt(append(b, 'c'), int64(i), 10))
	return key, key[from:], key[from:to]
}

func (wakes) effect(s *State, p Place, room []byte) Effect {
	w, name := &s.Wakes[s.wakeAt(p.n)], p.String()
	payload := Wake{At: w.At, Class: ClassWake, Due: w.Due, Effect: name, Session: s.Session, StartBy: w.Due, V: Version}
	return Effect{Name: name, Class: ClassWake, Target: "-", Deadline: w.Due, StartBy: w.Due, Payload: encodeIn(room, &payload)}
}

// encode returns the canonical bytes of an effect. It can't fail: every part was
// validated when it arrived.
func encode(v any) []byte { return encodeIn(nil, v) }

// encodeIn is encode into room, if that is large enough.
func encodeIn(room []byte, v any) []byte {
	if room == nil {
		room = make([]byte, 0, payloadRoom)
	}
	b, err := codec.MarshalIn(room, v)
	if err != nil {
		panic("session: an effect does not encode: " + err.Error())
	}
	return b
}
