package session

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// Effect is a request of the session to the outside, open until settled. The event
// that opens it fixes its bytes: State.Open returns the same bytes until it is
// settled.
type Effect struct {
	Name     string // r1t2, r1t2k1, r1t2c0, r1t2s, w1, y1
	Class    Class
	Target   string // provider, executor, hook, or "-": a subject token
	Payload  []byte // canonical msgpack of Generation, ToolCall, Step, Space or Wake
	Claimed  bool   // a bridge must store a claim before it starts this
	Deadline int64  // Unix ms; when a wake settles it
	StartBy  int64  // Unix ms; after it nobody starts it, and it is not stored any more unless it is a wake
}

// Generation is an effect of class llm: one turn of the model. The target is the
// provider.
type Generation struct {
	// The session's clock when the effect was opened, Unix milliseconds.
	At int64 `msgpack:"at"`
	// How long the provider is asked to cache the prompt, as in the run's config; absent
	// if that has none.
	CacheTTL string `msgpack:"cache_ttl,omitempty" lim:"enum=CacheTTL"`
	// The class of the effect.
	Class Class `msgpack:"class" lim:"=llm"`
	// The last message, a user's: it asks for a summary of the items, in place of an answer.
	// Do not publish its deltas.
	Compact string `msgpack:"compact,omitempty" lim:"..CompactBytesMax"`
	// Messages that left the window before the items; the model is told of them in a first
	// message.
	Cut uint32 `msgpack:"cut,omitempty" lim:"1.."`
	// In masked mode, if it differs from `tools`: descriptors of the tools to define, in
	// order, those of `tools` among them. Define these and restrict calls to `tools`, if
	// the provider can; else define `tools` alone.
	Defined []codec.Hash `msgpack:"defined,omitempty" lim:"1..planner.ToolsMax"`
	// The effect's name.
	Effect string `msgpack:"effect" lim:"@generation"`
	// What the model is shown, in order: the window of the transcript up to here.
	Items ItemList `msgpack:"items"`
	// The provider's name of the model.
	Model string `msgpack:"model" lim:"1..NameBytesMax"`
	// Tokens that the run's budgets leave for the answer, thoughts included. Request no
	// more from the provider, if it has such a limit. No limit if absent.
	OutputTokensMax int64 `msgpack:"output_tokens_max,omitempty" lim:"1..OutputTokensMax"`
	// Parameters of the step, else of the config, else of the prompt pack, unchanged.
	Params codec.Raw `msgpack:"params,omitempty" lim:"object"`
	// What the model is shown before the items, in order: system text, documents and
	// skills, images, messages.
	Prompt []spaces.PromptPart `msgpack:"prompt,omitempty" lim:"..space.PartsMax"`
	// Fingerprint (BLAKE2b-256) of system, prompt and vars. Absent: there is no prompt.
	PromptMark *codec.Hash `msgpack:"prompt_mark,omitempty"`
	// The run's provider, which is the target.
	Provider       string    `msgpack:"provider" lim:"@token"`
	ResponseFormat codec.Raw `msgpack:"response_format,omitempty" lim:"as=ResponseFormat"` // a ResponseFormat
	// How long one start may take: 5 minutes, at most half of the deadline.
	RunMS   int64  `msgpack:"run_ms" lim:"1.."`
	Session string `msgpack:"session" lim:"@session"`
	// Unix milliseconds; no bridge starts the effect after it.
	StartBy int64 `msgpack:"start_by"`
	// Sequence of the GenerationSettled whose text is the summary of messages that left the
	// window; the first message has it.
	Summary uint64 `msgpack:"summary,omitempty" lim:"1.."`
	// The system text.
	System string `msgpack:"system,omitempty" lim:"..SystemBytesMax"`
	// `auto` if absent; `none`, `required`, or the `tool_name` of a tool offered. Omitted:
	// a choice that this turn does not offer; any choice, if the turn offers no tool;
	// after the run's first turn, a config's choice that forces a call.
	ToolChoice string `msgpack:"tool_choice,omitempty" lim:"@tool_name"`
	// Descriptors of the offered tools, in display order. Each is a blob named
	// sha256-<hex>.
	Tools []codec.Hash `msgpack:"tools,omitempty" lim:"..planner.ToolsMax"`
	// Fingerprint (BLAKE2b-256) of the offered tools.
	Toolset codec.Hash `msgpack:"toolset"`
	// Version of the protocol: 2 if `compact`, `cut` or `summary` is set, or an item is not
	// shown whole.
	V int `msgpack:"v" lim:"1..2"`
	// The values of variables, by name, for the templates of prompt.
	Vars codec.Pairs `msgpack:"vars,omitempty" lim:"..space.VarsMax,key=..5+FactNameBytesMax,value=..space.FactValueBytesMax"`
}

// Role is the author of an item of the transcript.
type Role string

const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Item is one entry of the transcript: a reference to the event that has the text.
// For a result that the session itself made (a rejected call, a deadline), and for
// what it tells the model of a faulty answer (role user), Seq is the event that
// caused it, and Code and Detail are the text.
type Item struct {
	Bytes uint32 `json:"-" msgpack:"bytes,omitempty"` // about what a model is shown of it, in a session with a window
	// Of role tool: the position of the call.
	Call int16 `json:"call,omitempty" msgpack:"call,omitempty" lim:"0.."`
	// What the model is shown: absent, all of it; 1, a line in the place of a result; 2, the
	// beginning and the end.
	Shown ItemShown `json:"shown,omitempty" msgpack:"shown,omitempty" lim:"1..2"`
	// Code of a result that the session gave. Of a call that awaits approval: why it would
	// not run if it was approved now.
	Code   string        `json:"code,omitempty" msgpack:"code,omitempty" lim:"any"`
	Detail sentence.Text `json:"-" msgpack:"detail,omitempty"`
	// Of role tool: sequence of the ApprovalDecided that changed the arguments.
	Edit uint64 `json:"edit,omitempty" msgpack:"edit,omitempty" lim:"1.."`
	// Who wrote the entry.
	Role Role `json:"role" msgpack:"role"`
	// Sequence of the event.
	Seq uint64 `json:"seq" msgpack:"seq" lim:"1.."`
}

// ItemShown is how much of an item a model is shown.
type ItemShown uint8

const (
	ShownWhole   ItemShown = iota
	ShownCleared           // one line, in the place of a result
	ShownCut               // the item's Bytes of its text: the beginning and the end
)

func (s *State) itemsInvariant() error {
	if len(s.Items) > itemsHeldMax {
		return fmt.Errorf("the transcript holds %d items", len(s.Items))
	}
	size, call := 0, 0
	for i := range s.Items {
		it := &s.Items[i]
		if err := it.invariant(s, call); err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
		size += it.encodedBytesMax()
		switch it.Role {
		case RoleAssistant:
			call = 0
		case RoleTool:
			call++
		case RoleUser:
		}
	}
	if size != int(s.ItemBytes) {
		return fmt.Errorf("item_bytes is %d, the items add up to %d", s.ItemBytes, size)
	}
	return nil
}

// invariant checks one item; call is the position of the next result.
func (it *Item) invariant(s *State, call int) error {
	switch {
	case it.Role != RoleUser && it.Role != RoleAssistant && it.Role != RoleTool:
		return fmt.Errorf("it is of role %q", it.Role)
	case it.Seq == 0 || it.Seq > s.Seq:
		return fmt.Errorf("it is of event %d, the latest is %d", it.Seq, s.Seq)
	case it.Role == RoleTool && int(it.Call) != call, it.Role != RoleTool && it.Call != 0:
		return fmt.Errorf("it is of call %d, and follows %d results", it.Call, call)
	case it.Shown > ShownCut || s.Window == nil && (it.Shown != 0 || it.Bytes != 0) || it.Shown != 0 && it.Role == RoleAssistant:
		return fmt.Errorf("%d bytes of it are shown, of %d", it.Shown, it.Bytes)
	case it.Edit > s.Seq || len(it.Code) > CodeBytesMax || it.Detail.Check() != nil:
		return fmt.Errorf("it is of edit %d, with a code of %d bytes and the detail %q: %w", it.Edit, len(it.Code), string(it.Detail), it.Detail.Check())
	}
	return nil
}

// encodedBytesMax is an upper bound of an item's encoded size, without encoding it.
func (it Item) encodedBytesMax() int {
	n := itemFixedBytesMax + len(it.Code) + max(len(it.Detail), len(it.Detail.String()))
	if it.Edit != 0 {
		n += itemEditBytesMax
	}
	if it.Bytes != 0 || it.Shown != 0 {
		n += itemWindowBytesMax
	}
	return n
}

// listedBytesMax is an upper bound of what an item takes in the list of a generation.
func (it Item) listedBytesMax() int {
	n := 1 + 9
	if it.Code != "" || it.Detail != "" || it.Edit != 0 || it.Shown == ShownCut {
		n += itemExtraBytesMax + len(it.Code) + len(it.Detail.String())
	}
	return n
}

// ToolCall is an effect of class tool: one tool call. The target is that of the tool's
// executor.
type ToolCall struct {
	// A JSON object, as the model wrote it or as a person changed it. The session has
	// checked it against the tool's schema.
	Arguments string `msgpack:"arguments" lim:"2..planner.ArgumentsBytesMax"`
	// The session's clock when the effect was opened, Unix milliseconds.
	At int64 `msgpack:"at"`
	// The turn that made the call.
	Batch string `msgpack:"batch" lim:"@turn"`
	// The call's position in the batch.
	Call int `msgpack:"call" lim:"0..CallsMax-1"`
	// The class of the effect.
	Class Class `msgpack:"class" lim:"=tool"`
	// The run's context, set by step rules or a hook.
	Context codec.Raw `msgpack:"context,omitempty" lim:"object"`
	// The effect's name.
	Effect string `msgpack:"effect" lim:"@call"`
	// For the extension tools: packs that the session may adopt.
	Grants []spaces.UsedGrant `msgpack:"grants,omitempty" lim:"..spaces.GrantsMax"`
	// The host session when the call was opened.
	HostSession *HostSession `msgpack:"host_session,omitempty"`
	// <session>.<effect>: the same at every start of the call, by any bridge.
	IdempotencyKey string `msgpack:"idempotency_key" pattern:"^[A-Za-z0-9_-]{1,64}[.]r[1-9][0-9]{0,9}t[1-9][0-9]{0,9}c([0-9]|[1-5][0-9]|6[0-3])$"`
	// Hash (BLAKE2b-256) of the batch's plan. Repeat it in the settlement.
	PlanHash codec.Hash `msgpack:"plan_hash"`
	// The model's own id of the call.
	ProviderCallID string `msgpack:"provider_call_id,omitempty" lim:"..ByBytesMax"`
	// The call may run twice, and needs no claim; false if absent.
	RetrySafe bool `msgpack:"retry_safe,omitempty"`
	// How long one start may take: the tool's `deadline_ms`, else 5 minutes.
	RunMS   int64  `msgpack:"run_ms" lim:"1.."`
	Session string `msgpack:"session" lim:"@session"`
	// For session tools: the spaces that were applied when the turn began.
	Spaces []spaces.UsedSpace `msgpack:"spaces,omitempty" lim:"..spaces.PacksMax+1"`
	// Unix milliseconds; no bridge starts the effect after it.
	StartBy int64 `msgpack:"start_by"`
	// The tool.
	ToolID string `msgpack:"tool_id" lim:"@tool_id"`
	// The name under which it was offered.
	ToolName string `msgpack:"tool_name" lim:"@tool_name"`
	// Version of the protocol.
	V int `msgpack:"v" lim:"=1"`
}

// Step is an effect of class step: it calls an outside hook, which decides what a turn
// offers. The target is the hook.
//
// Its settlement is a StepPrepared.
type Step struct {
	// The session's clock when the effect was opened, Unix milliseconds.
	At int64 `msgpack:"at"`
	// The latest 256 calls of the run's earlier steps, oldest first.
	Calls []StepCall `msgpack:"calls,omitempty" lim:"..StepCallsMax"`
	// The class of the effect.
	Class Class `msgpack:"class" lim:"=step"`
	// The run's context, as earlier steps set it.
	Context codec.Raw `msgpack:"context,omitempty" lim:"object"`
	// The effect's name.
	Effect string `msgpack:"effect" lim:"@step"`
	// The session's facts when the effect was opened.
	Facts codec.Pairs `msgpack:"facts" lim:"value=any"`
	// The hook, which is the target.
	Hook string `msgpack:"hook" lim:"@token"`
	// Sequence of the event with the run's input.
	InputSeq uint64 `msgpack:"input_seq" lim:"1.."`
	// The transcript up to here, in order: the latest 512 items, from an input or an
	// answer on.
	Items ItemList `msgpack:"items"`
	// The transcript has earlier items.
	ItemsCut bool `msgpack:"items_cut,omitempty" lim:"=true"`
	// Sequence of the GenerationSettled whose text is the summary of earlier items.
	Summary uint64 `msgpack:"summary,omitempty" lim:"1.."`
	// The model of the turn if the hook names none.
	Model string `msgpack:"model" lim:"1..NameBytesMax"`
	// The provider of the turn.
	Provider string `msgpack:"provider" lim:"@token"`
	// Roles of the run.
	Roles []string `msgpack:"roles,omitempty" lim:"..RolesMax,item=1..RoleBytesMax"`
	// How long one start may take, in milliseconds.
	RunMS   int64  `msgpack:"run_ms" lim:"1.."`
	Session string `msgpack:"session" lim:"@session"`
	// Unix milliseconds; no bridge starts the effect after it.
	StartBy int64 `msgpack:"start_by"`
	// The number of the step in its run, from 0.
	Step int `msgpack:"step" lim:"0.."`
	// Tools that could be offered when the effect was opened: not disabled, available and
	// permitted, whether a list has them or not. By tool_id.
	Tools []StepTool `msgpack:"tools" lim:"..planner.ToolsMax"`
	// Usage of the run so far.
	Usage UsageTotal `msgpack:"usage"`
	// Tools that were carried out in earlier steps of the run, by tool_id.
	Used []string `msgpack:"used" lim:"item=@tool_id"`
	// Version of the protocol.
	V int `msgpack:"v" lim:"=1"`
}

// StepCall is one call of an earlier step.
type StepCall struct {
	// JSON text: as it was carried out, or as the model wrote it if the call was refused.
	// At most 1 KiB of each call and 64 KiB in all, where the latest calls come first.
	// Absent: there are none, or they were cut to nothing.
	Arguments string `msgpack:"arguments,omitempty" lim:"..StepArgumentBytesMax"`
	// The arguments were cut. The event at edit, else at calls_seq, has them whole.
	ArgumentsCut bool `msgpack:"arguments_cut,omitempty" lim:"=true"`
	// Sequence of the ToolCallsObserved in which the model made the call.
	CallsSeq uint64 `msgpack:"calls_seq" lim:"1.."`
	// Code of a result that the session gave.
	Code string `msgpack:"code,omitempty" lim:"..CodeBytesMax"`
	// Sequence of the ApprovalDecided that changed the arguments.
	Edit uint64 `msgpack:"edit,omitempty" lim:"1.."`
	// The call's name.
	Effect string `msgpack:"effect" lim:"@call"`
	// Sequence of the event with the result, or of the event that made the session give
	// it.
	Seq uint64 `msgpack:"seq" lim:"1.."`
	// How the call ended.
	Status CallStatus `msgpack:"status" lim:"enum=succeeded|failed|cancelled|outcome_unknown|ignored"`
	// The step that made it, from 0.
	Step int `msgpack:"step" lim:"0.."`
	// Absent: the registry had no such tool.
	ToolID string `msgpack:"tool_id,omitempty" lim:"@tool_id"`
	// The tool's name as the model wrote it, cut at 128 bytes.
	ToolName string `msgpack:"tool_name" lim:"..NameBytesMax"`
}

// invariant checks one call of an earlier turn.
func (c *StepCall) invariant(s *State, r *Run) error {
	switch {
	case c.Step < 0 || int64(c.Step) > int64(r.Turns) || c.Seq > s.Seq || c.CallsSeq > s.Seq || c.Edit > s.Seq:
		return fmt.Errorf("it is of step %d of %d, of events %d, %d and %d", c.Step, r.Turns, c.CallsSeq, c.Seq, c.Edit)
	case len(c.Code) > CodeBytesMax || len(c.ToolID) > planner.ToolIDBytesMax || len(c.ToolName) > NameBytesMax || len(c.Effect) > NameBytesMax || len(c.Status) > CodeBytesMax:
		return errors.New("a text of it is too long")
	}
	return nil
}

// StepTool is a tool that a step may offer.
type StepTool struct {
	// The tool.
	ToolID string `msgpack:"tool_id" lim:"@tool_id"`
	// The tool's own name.
	ToolName string `msgpack:"tool_name" lim:"@token"`
}

// Wake is an effect of class wake: it is settled when a given time has come. The
// target is -.
type Wake struct {
	// The session's clock when the effect was opened, Unix milliseconds.
	At int64 `msgpack:"at"`
	// The class of the effect.
	Class Class `msgpack:"class" lim:"=wake"`
	// Unix milliseconds: when to settle it.
	Due int64 `msgpack:"due"`
	// The effect's name.
	Effect string `msgpack:"effect" lim:"@wake"`
	// Set if the wake is a schedule's: settle it by ScheduleFired in place of WakeSettled.
	Schedule *WakeSchedule `msgpack:"schedule,omitempty"`
	Session  string        `msgpack:"session" lim:"@session"`
	// Equal to due; it has no effect.
	StartBy int64 `msgpack:"start_by"`
	// Version of the protocol.
	V int `msgpack:"v" lim:"=1"`
}

// Withdrawal is an effect that the last event withdrew. If it has claims, the
// withdrawal must be stored before the event counts as stored.
type Withdrawal struct {
	Name    string
	Class   Class
	Target  string     // of the effect
	Claimed bool       // bridges claim it, so the withdrawal is exact; else it is best effort
	Hash    codec.Hash // of the payload of a claimed effect: a claim of another hash is of another effect
}

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
			fn(s.generation())
		}
		if t.Batch != nil {
			for i := range t.Batch.Calls {
				if c := &t.Batch.Calls[i]; c.Status == CallOpen && c.Sync == 0 && !s.isUnbridged(c) {
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
	name := s.generationName()
	g := Generation{
		At: t.At, CacheTTL: c.CacheTTL, Class: ClassLLM, Defined: s.definitions(t), Effect: name, Items: ListItems(s.Items[:s.listed()]...), Model: s.TurnModel(), Params: s.params(),
		OutputTokensMax: int64(t.OutputTokensMax), Provider: s.TurnProvider(), ResponseFormat: s.ResponseFormat(), RunMS: int64(t.RunMS), Session: s.Session, StartBy: s.startBy(), System: s.system(),
		ToolChoice: s.toolChoice(t), Tools: s.refs(t.Toolset.Offers), Toolset: t.Toolset.Fingerprint, V: Version,
	}
	s.showPrompt(&g)
	if s.isCompacting() {
		s.showCompaction(&g)
	}
	s.showWindow(&g)
	return Effect{
		Name: name, Class: ClassLLM, Target: g.Provider, Claimed: true, Deadline: t.Deadline, StartBy: s.startBy(),
		Payload: encodeIn(room, &g),
	}
}

// TurnModel returns the latest turn's model: the one that the run has fallen back to, else
// its step's choice, else the run's.
func (s *State) TurnModel() string {
	if f := s.Run.fallback(); f != nil {
		return f.Model
	}
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
	if planner.IsChoiceMode(choice) {
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
	payload.Spaces = s.turnSpace().UsedSpaces(s.layerOf(c))
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
	payload := Wake{At: w.At, Class: ClassWake, Due: w.Due, Effect: name, Schedule: s.wakeSchedule(p.n), Session: s.Session, StartBy: w.Due, V: Version}
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

// ItemList lists entries of a transcript, in order. Each is the place of its text in
// the log or, with a code, the text itself.
//
// A list of whole items takes 40 to 60 bytes each, and every turn has one: the effects
// of a session of 10,000 turns took 865 MB.
type ItemList struct {
	// What some entries also have, in the order of the entries.
	Extra []ItemExtra `msgpack:"extra,omitempty" lim:"..ItemsMax+SteersMax"`
	// Who wrote each entry, a letter for each: u user, a assistant, t tool, c tool as well:
	// a cleared result, of which the model is shown one line. The first t or c after an a
	// is the result of its first call, the next one of its second, and so on.
	Roles string `msgpack:"roles" lim:"1..ItemsMax+SteersMax" pattern:"^[acut]+$"`
	// Of each entry, the difference between the sequence in REFOLD_LOG of its event and
	// that of the entry before (0 before the first). May be negative.
	Seqs []int64 `msgpack:"seqs" lim:"..ItemsMax+SteersMax"`
}

// ItemExtra is what an item has beside its role and sequence.
type ItemExtra struct {
	// Set if the session itself gave this result, or asks the model to repair its answer
	// (a user's entry, invalid_answer): code and detail are the text, and the event only
	// caused it.
	Code string `msgpack:"code,omitempty" lim:"..CodeBytesMax"`
	// Detail of the code.
	Detail string `msgpack:"detail,omitempty" lim:"..DetailBytesMax"`
	// Of a result, if a person changed the arguments: sequence of the ApprovalDecided that
	// has the new ones.
	Edit uint64 `msgpack:"edit,omitempty" lim:"1.."`
	// Index of the entry.
	Item int `msgpack:"item" lim:"0..ItemsMax+SteersMax-1"`
	// The model is shown this many bytes of the text: of its beginning and its end.
	Shown uint32 `msgpack:"shown,omitempty" lim:"1.."`
}

// roleChars has the character of each role in a list.
var roleChars = [...]struct {
	char    byte
	role    Role
	cleared bool
}{{'a', RoleAssistant, false}, {'c', RoleTool, true}, {'t', RoleTool, false}, {'u', RoleUser, false}}

// ListItems lists items. Of the items with role tool after an answer, the first is
// the result of the answer's first call, and so on.
func ListItems(items ...Item) ItemList {
	list := ItemList{Seqs: make([]int64, len(items))}
	var roles strings.Builder
	roles.Grow(len(items))
	var before uint64
	for i := range items {
		it := &items[i]
		for _, r := range roleChars {
			if r.role == it.Role && r.cleared == (it.Shown == ShownCleared) {
				roles.WriteByte(r.char)
			}
		}
		list.Seqs[i] = int64(it.Seq - before)
		before = it.Seq
		if it.Code != "" || it.Detail != "" || it.Edit != 0 || it.Shown == ShownCut {
			extra := ItemExtra{Code: it.Code, Detail: it.Detail.String(), Edit: it.Edit, Item: i}
			if it.Shown == ShownCut {
				extra.Shown = it.Bytes
			}
			list.Extra = append(list.Extra, extra)
		}
	}
	list.Roles = roles.String()
	return list
}

// Items returns the items of a list. It fails if the list comes from a later
// version, which has other roles, or is damaged.
func (l ItemList) Items() ([]Item, error) {
	if len(l.Roles) != len(l.Seqs) {
		return nil, fmt.Errorf("the list has %d roles and %d sequences", len(l.Roles), len(l.Seqs))
	}
	items, extra, seq, call := make([]Item, len(l.Seqs)), l.Extra, uint64(0), 0
	for i := range items {
		it := &items[i]
		for _, r := range roleChars {
			if r.char == l.Roles[i] {
				it.Role = r.role
				if r.cleared {
					it.Shown = ShownCleared
				}
			}
		}
		seq += uint64(l.Seqs[i])
		it.Seq = seq
		switch it.Role {
		case "":
			return nil, fmt.Errorf("the item of sequence %d has the role %q: this program is too old", seq, l.Roles[i])
		case RoleTool:
			it.Call = int16(call)
			call++
		case RoleAssistant:
			call = 0
		case RoleUser:
		}
		if len(extra) > 0 && extra[0].Item == i {
			it.Code, it.Detail, it.Edit = extra[0].Code, sentence.Own(extra[0].Detail), extra[0].Edit
			if extra[0].Shown > 0 {
				it.Shown, it.Bytes = ShownCut, extra[0].Shown
			}
			extra = extra[1:]
		}
	}
	if len(extra) > 0 {
		return nil, errors.New("the list has something of an item that it has not, or not in order")
	}
	return items, nil
}
