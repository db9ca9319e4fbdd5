package session

import (
	"strconv"
	"strings"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// State is all that a session remembers: the fold of its own events under the
// install record that it pinned, and nothing else. It has no maps and no clock.
// Only Evolve changes it; the exported fields are for reading. A State is not safe
// for concurrent use.
type State struct {
	Record
	install      *Install          // pinned content, shared between sessions
	registry     *planner.Registry // the session's own, else the install record's
	turnRegistry *planner.Registry // the registry of the latest turn
	*scratch                       // nil while the session is idle, unless it is quiet
}

// scratch is the part of a state that an idle session does not need and that can be
// rebuilt. An idle session should take little memory.
type scratch struct {
	rules      runRules     // the active run's step rules, compiled
	notices    []Notice     // of the event being folded
	progress   []Notice     // of the last folded event, until Progress is called
	withdrawn  []Withdrawal // by the last folded event
	toolsMoved bool         // inputs of the tool selection may have changed since the latest turn
	quiet      bool         // notices are numbered, and not built
}

// Record is the part of a state that a snapshot stores. Fields are in the byte
// order of their wire names, except small ones, which are adjacent. In an active
// state, hashes of settlements and results may be missing until Bytes computes
// them.
type Record struct {
	Chain       codec.Hash          `msgpack:"chain"` // BLAKE2b-256 chain over all events
	Clock       int64               `msgpack:"clock"` // greatest stream timestamp or wake's due so far; Unix ms
	Config      *SessionConfig      `msgpack:"config,omitempty"`
	Cost        int64               `msgpack:"cost,omitempty"`  // of all runs, micro-units
	Count       uint64              `msgpack:"count"`           // events folded, without the install record
	Done        *DoneBatch          `msgpack:"done,omitempty"`  // the last completed batch
	Facts       []planner.Fact      `msgpack:"facts,omitempty"` // by name
	Host        *HostSession        `msgpack:"host,omitempty"`
	IDs         []string            `msgpack:"ids,omitempty"`       // ids of the latest accepted events, oldest first
	Install     codec.Hash          `msgpack:"install"`             // of the pinned install record
	Items       []Item              `msgpack:"items,omitempty"`     // the transcript
	Last        *Ended              `msgpack:"last,omitempty"`      // the last ended run
	LastPlan    codec.Hash          `msgpack:"last_plan_hash"`      // zero: none yet
	Leaf        codec.Hash          `msgpack:"leaf"`                // BLAKE2b-256 of the latest event alone
	Overrides   *Overrides          `msgpack:"overrides,omitempty"` // of the session
	Profile     string              `msgpack:"profile,omitempty"`   // selected for the session
	Queue       []Run               `msgpack:"queue,omitempty"`     // first in, first out
	Registry    *spaces.RegistryPin `msgpack:"registry,omitempty"`  // absent: the install record's
	Run         *Run                `msgpack:"run,omitempty"`       // the active one
	ItemBytes   int32               `msgpack:"item_bytes"`          // encoded size of Items
	NoticeN     uint32              `msgpack:"notice_n"`            // notices so far
	Rules       uint8               `msgpack:"rules"`
	Runs        uint32              `msgpack:"runs"` // runs numbered so far
	Closed      bool                `msgpack:"closed,omitempty"`
	lastType    uint8               // index in eventTypes of the latest event's type, plus 1; not in snapshots
	Seq         uint64              `msgpack:"seq"` // stream sequence of the latest event
	Session     string              `msgpack:"session"`
	Spaces      *spaces.State       `msgpack:"spaces,omitempty"`      // absent: the session never had a grant or prompt refs
	Submissions []Submission        `msgpack:"submissions,omitempty"` // by name
	Turn        *Turn               `msgpack:"turn,omitempty"`        // the latest turn, of the active run or of the last one
	Usage       UsageTotal          `msgpack:"usage"`                 // of all runs
	Wakes       []OpenWake          `msgpack:"wakes,omitempty"`
	WakesAsked  uint32              `msgpack:"wakes_asked"`            // wakes numbered so far
	WindowBytes uint32              `msgpack:"window_bytes,omitempty"` // what a model is shown of the transcript and of the open batch's results; at most MaxUint32
}

// Lifecycle is the status of a run.
type Lifecycle string

const (
	Queued       Lifecycle = "queued"
	Running      Lifecycle = "running"
	WaitingInput Lifecycle = "waiting_input"
	Paused       Lifecycle = "paused"
	Interrupting Lifecycle = "interrupting"
	Completed    Lifecycle = "completed"
	Failed       Lifecycle = "failed"
	Cancelled    Lifecycle = "cancelled"
	Interrupted  Lifecycle = "interrupted"
)

// Overrides are the session's lists that ToolOverridesSet set, by tool_id or
// tool_name. A run's lists are in its config.
type Overrides struct {
	Disable []string `msgpack:"disable,omitempty"`
	Enable  []string `msgpack:"enable,omitempty"`
	Force   []string `msgpack:"force,omitempty"`
}

// Run is a queued or active run. Its config is resolved and frozen when it is
// requested; only ToolOverridesSet changes its lists.
type Run struct {
	Answer     uint64        `msgpack:"answer,omitempty"` // sequence of the latest answer, while the run waits for input
	Asked      *Overrides    `msgpack:"asked,omitempty"`  // the config's lists as requested, if ToolOverridesSet changed them
	Before     Lifecycle     `msgpack:"before,omitempty"` // lifecycle of a paused run after its resume
	Breach     bool          `msgpack:"breach,omitempty"` // paused by a budget
	Calls      []StepCall    `msgpack:"calls,omitempty"`  // of earlier turns, for step hooks alone
	Config     RunConfig     `msgpack:"config"`
	Context    codec.Raw     `msgpack:"context,omitempty"`     // for later steps; an object
	Cost       int64         `msgpack:"cost,omitempty"`        // micro-units
	Deadline   int64         `msgpack:"deadline,omitempty"`    // Unix ms; 0: none. A pause extends it
	Doubt      bool          `msgpack:"doubt,omitempty"`       // its config is checked before its next turn: see doubtFault
	Finish     string        `msgpack:"finish,omitempty"`      // why the latest answer ended, unless by FinishStop, while the run waits for input
	Held       Held          `msgpack:"held,omitempty"`        // what a pause holds back
	InputBytes int64         `msgpack:"input_bytes,omitempty"` // what a model is shown of a queued run's input
	Joined     []string      `msgpack:"joined,omitempty"`      // packs that its own calls enabled
	Lifecycle  Lifecycle     `msgpack:"lifecycle,omitempty"`   // empty: queued
	Number     uint32        `msgpack:"number"`
	Operators  bool          `msgpack:"operators,omitempty"` // requested through `ctl`. Any other run holds back no change through `ctl`
	Only       *[]string     `msgpack:"only,omitempty"`      // a client's list of tools, which narrows the operator's; descriptors as text
	PausedAt   int64         `msgpack:"paused_at,omitempty"` // clock
	Repairs    uint8         `msgpack:"repairs,omitempty"`   // turns begun because the answer before them was faulty, since the latest good answer
	Roles      []string      `msgpack:"roles,omitempty"`
	Seq        uint64        `msgpack:"seq"`              // of the event with its input
	Skills     []ActiveSkill `msgpack:"skills,omitempty"` // active ones, in the order of their activation
	Steers     []Steer       `msgpack:"steers,omitempty"` // input that no turn has taken yet
	Submission string        `msgpack:"submission,omitempty"`
	Turns      uint32        `msgpack:"turns"` // turns begun
	Usage      UsageTotal    `msgpack:"usage"`
	Used       []string      `msgpack:"used,omitempty"`      // tool_ids that ran in earlier turns, sorted; only those of the turn's registry
	Workspace  *spaces.Pin   `msgpack:"workspace,omitempty"` // named by its config; absent: the applied one, or none
}

// Steer is input that waits for a turn.
type Steer struct {
	Bytes int64  `msgpack:"bytes"` // what a model is shown of it
	Seq   uint64 `msgpack:"seq"`   // of its event
}

// Held is what a paused run opens when it is resumed.
type Held string

// What a pause holds back.
const (
	HeldGroup      Held = "group"      // the calls of the open group
	HeldTurn       Held = "turn"       // the next turn
	HeldGeneration Held = "generation" // the generation of a turn whose step is settled
)

// Ended is what is stored of the last ended run.
type Ended struct {
	Code         string        `msgpack:"code,omitempty"`
	Detail       sentence.Text `msgpack:"detail,omitempty"`
	FinishReason string        `msgpack:"finish_reason,omitempty"` // of the answer that ended it, or with which it waited for input, unless that is FinishStop
	Lifecycle    Lifecycle     `msgpack:"lifecycle"`
	Number       uint32        `msgpack:"number"`
	OverBudget   *OverBudget   `msgpack:"over_budget,omitempty"`
}

// Submission is a remembered submission and the SHA-256 of its content.
type Submission struct {
	Content codec.Hash `msgpack:"content"`
	Name    string     `msgpack:"name"`
	Run     uint32     `msgpack:"run"` // the run that it started, or steered
}

// UsageTotal is the sum of several usages, in tokens.
type UsageTotal struct {
	// Input tokens written to the provider's cache. Absent if there were none.
	CacheWriteTokens int64 `json:"cache_write_tokens,omitempty" msgpack:"cache_write_tokens,omitempty" lim:"0.."`
	// Input tokens read from the provider's cache.
	CachedTokens int64 `json:"cached_tokens" msgpack:"cached_tokens" lim:"0.."`
	// Tokens shown to the model.
	InputTokens int64 `json:"input_tokens" msgpack:"input_tokens" lim:"0.."`
	// Tokens that the model wrote.
	OutputTokens int64 `json:"output_tokens" msgpack:"output_tokens" lim:"0.."`
	// Output tokens of reasoning, which is not shown.
	ReasoningTokens int64 `json:"reasoning_tokens" msgpack:"reasoning_tokens" lim:"0.."`
}

// Turn is one generation and the batch of its calls. What the effect's bytes depend
// on is kept until it is settled. Until its generation is opened, only Number, Run,
// Registry and Step are set. Small fields are adjacent, so that idle sessions weigh
// less.
type Turn struct {
	At       int64               `msgpack:"at"` // the session's clock at the opening
	Batch    *Batch              `msgpack:"batch,omitempty"`
	Deadline int64               `msgpack:"deadline"`           // Unix ms
	Defined  *[]planner.Offer    `msgpack:"defined,omitempty"`  // in masked mode: the definitions that the model is shown, in order; for later turns, too
	Registry *spaces.RegistryPin `msgpack:"registry,omitempty"` // absent: the install record's
	RetryAt  int64               `msgpack:"retry_at,omitempty"` // Unix ms; 0: no attempt waits
	Settled  codec.Hash          `msgpack:"settled"`            // hash of its settlement; zero: none, or the session settled it
	Step     *TurnStep           `msgpack:"step,omitempty"`     // absent: neither a rule nor a hook applied
	Toolset  planner.Toolset     `msgpack:"toolset"`            // offered tools, and why others are not

	Items           int32  `msgpack:"items"` // length of the window
	Number          uint32 `msgpack:"number"`
	OutputTokensMax int32  `msgpack:"output_tokens_max,omitempty"` // limit from the budgets; 0: none
	Run             uint32 `msgpack:"run"`
	RunMS           int32  `msgpack:"run_ms"`
	Attempt         uint8  `msgpack:"attempt,omitempty"` // failed attempts before this one
	Open            bool   `msgpack:"open"`              // its generation is not settled
}

// Batch is the calls of one turn.
type Batch struct {
	Calls    []Call       `msgpack:"calls"`  // at most CallsMax
	Excess   int          `msgpack:"excess"` // calls beyond CallsMax
	Group    int          `msgpack:"group"`  // the current group; len(Plan.Groups) when complete
	Plan     planner.Plan `msgpack:"plan"`
	PlanHash codec.Hash   `msgpack:"plan_hash"`
	Seq      uint64       `msgpack:"seq"` // of the ToolCallsObserved
}

// CallStatus is the status of a call.
type CallStatus string

const (
	CallWaiting   CallStatus = "waiting" // its group has not begun
	CallAwaiting  CallStatus = "awaiting_approval"
	CallOpen      CallStatus = "open"      // opened, not settled
	CallSucceeded CallStatus = "succeeded" // by its settlement
	CallFailed    CallStatus = "failed"    // by its settlement, or refused arguments
	CallCancelled CallStatus = "cancelled" // by its settlement
	CallUnknown   CallStatus = "outcome_unknown"
	CallIgnored   CallStatus = "ignored" // refused before it was opened
)

// Call is one call of a batch. Its index identifies it; the provider's id is only
// data.
type Call struct {
	Approval       *Approval     `msgpack:"approval,omitempty"`  // while it waits for a person
	Arguments      string        `msgpack:"arguments,omitempty"` // until it has a result; then what the next step may read, until that begins
	At             int64         `msgpack:"at,omitempty"`        // the session's clock at the opening
	Code           string        `msgpack:"code,omitempty"`      // of a result that the session made
	Cut            bool          `msgpack:"cut,omitempty"`       // Arguments are cut, or in a blob
	Deadline       int64         `msgpack:"deadline,omitempty"`  // Unix ms, once it is open
	Detail         sentence.Text `msgpack:"detail,omitempty"`
	Edit           uint64        `msgpack:"edit,omitempty"` // of the ApprovalDecided that changed the arguments
	Host           *HostSession  `msgpack:"host,omitempty"` // at the opening
	Pack           *ReadPack     `msgpack:"pack,omitempty"` // of extensions_enable: what a person decides over, until it has a result
	ProviderCallID string        `msgpack:"provider_call_id,omitempty"`
	Result         codec.Hash    `msgpack:"result"` // hash of its status and output; zero: none, or the session made the result
	RunMS          int64         `msgpack:"run_ms,omitempty"`
	Seq            uint64        `msgpack:"seq,omitempty"` // of the event with its result
	Settled        codec.Hash    `msgpack:"settled"`       // hash of its settlement
	Status         CallStatus    `msgpack:"status"`
	Sync           uint32        `msgpack:"sync,omitempty"`    // the sync that reads for it, or runs it: extensions_enable
	ToolID         string        `msgpack:"tool_id,omitempty"` // empty: not in the registry
	ToolName       string        `msgpack:"tool_name"`
}

// Approval is what a waiting call needs.
type Approval struct {
	ArgsHash codec.Hash `msgpack:"args_hash"` // SHA-256 of the arguments' text
	Deadline int64      `msgpack:"deadline"`  // Unix ms
}

// DoneBatch is what is stored of a completed batch: enough to check a repeated
// ToolBatchSettled. Its plan is LastPlan until a later batch is planned.
type DoneBatch struct {
	Results []codec.Hash `msgpack:"results"` // by call
	Run     uint32       `msgpack:"run"`
	Turn    uint32       `msgpack:"turn"`
}

// OpenWake is a wake that is not settled.
type OpenWake struct {
	At     int64  `msgpack:"at"`
	Due    int64  `msgpack:"due"` // Unix ms
	Number uint32 `msgpack:"number"`
}

// wasOpened reports whether the turn's generation was opened: not while its step hook
// is open, and never if the run failed because the hook did not answer.
func (t *Turn) wasOpened() bool { return t.RunMS > 0 }

// done reports whether the call has a result.
func (c *Call) done() bool {
	return c.Status != CallWaiting && c.Status != CallAwaiting && c.Status != CallOpen
}

// New returns the state of a session without events, under install.
func New(install *Install, sid string) *State {
	s := &State{
		Record:  Record{Session: sid, Install: install.Hash, Rules: uint8(install.Rules)},
		install: install, registry: install.Registry, turnRegistry: install.Registry,
	}
	if s.Spaces = install.spaces.NewState(); s.Spaces != nil {
		s.registry = install.Composed()
	}
	return s
}

// Withdrawals returns the effects that the last folded event withdrew. They are
// outputs of that event, like its notices: the caller must store the withdrawals
// before the event counts as stored. The slice is valid until the next Evolve.
func (s *State) Withdrawals() []Withdrawal {
	if s.scratch == nil {
		return nil
	}
	return s.withdrawn
}

// InstallRecord returns the pinned install record.
func (s *State) InstallRecord() *Install { return s.install }

// Place is a parsed effect name, and equivalent to it. Comparing Places costs less
// than comparing names.
type Place struct {
	kind      kind
	run, turn uint32
	n         uint32 // of a wake or a sync: its number; of a generation: attempts before it; of a call: its index
}

// String returns the name.
func (p Place) String() string {
	var room [nameRoom]byte
	return string(p.Append(room[:0]))
}

// Append appends the name to b.
func (p Place) Append(b []byte) []byte {
	if prefix := classes[p.kind].prefix; prefix != 0 {
		return strconv.AppendUint(append(b, prefix), uint64(p.n), 10)
	}
	b = appendTurn(b, p.run, p.turn)
	switch {
	case p.kind == kindTool:
		b = strconv.AppendUint(append(b, 'c'), uint64(p.n), 10)
	case p.kind == kindStep:
		b = append(b, 's')
	case p.n > 0:
		b = strconv.AppendUint(append(b, 'a'), uint64(p.n)+1, 10)
	}
	return b
}

// IsWake reports whether the effect is a wake, which no bridge carries out.
func (p Place) IsWake() bool { return p.kind == kindWake }

// parseName parses an effect's name: r1t2, r1t2c0, r1t2s, w1, y1.
func parseName(name string) (Place, bool) {
	rest, ok := strings.CutPrefix(name, "r")
	if !ok {
		return parseNumbered(name)
	}
	runText, rest, ok := strings.Cut(rest, "t")
	if !ok {
		return Place{}, false
	}
	turnText, callText, hasCall := strings.Cut(rest, "c")
	var p Place
	if hasCall {
		p.kind = kindTool
	} else if cut, isStep := strings.CutSuffix(turnText, "s"); isStep {
		turnText, p.kind = cut, kindStep
	}
	if base, attemptText, again := strings.Cut(turnText, "a"); again && p.kind == kindLLM {
		n, ok := parseNumber(attemptText)
		if !ok || n < 2 || n > AttemptsMax {
			return Place{}, false
		}
		turnText, p.n = base, n-1
	}
	var okRun, okTurn bool
	p.run, okRun = parseNumber(runText)
	p.turn, okTurn = parseNumber(turnText)
	if !okRun || !okTurn || p.run == 0 || p.turn == 0 {
		return Place{}, false
	}
	if hasCall {
		if p.n, ok = parseNumber(callText); !ok || p.n >= CallsMax {
			return Place{}, false
		}
	}
	return p, true
}

// parseNumbered parses a name that is a prefix and a number.
func parseNumbered(name string) (Place, bool) {
	for k := range classes {
		if prefix := classes[k].prefix; prefix != 0 && name != "" && name[0] == prefix {
			n, ok := parseNumber(name[1:])
			return Place{kind: kind(k), n: n}, ok && n > 0
		}
	}
	return Place{}, false
}

// parseNumber parses a decimal number in its only valid form.
func parseNumber(text string) (uint32, bool) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || strconv.FormatUint(n, 10) != text {
		return 0, false
	}
	return uint32(n), true
}

// nameRoom exceeds the longest name: three numbers of ten digits.
const nameRoom = 40

func appendTurn(b []byte, run, turn uint32) []byte {
	b = strconv.AppendUint(append(b, 'r'), uint64(run), 10)
	return strconv.AppendUint(append(b, 't'), uint64(turn), 10)
}

// turnName, callName and wakeName return names, each with one allocation: every
// effect has one.
func turnName(run, turn uint32) string {
	var room [nameRoom]byte
	return string(appendTurn(room[:0], run, turn))
}

func callName(run, turn uint32, call int) string {
	return Place{kind: kindTool, run: run, turn: turn, n: uint32(call)}.String()
}

func wakeName(n uint32) string { return Place{kind: kindWake, n: n}.String() }

// generation, step and call return Places of the turn: of the latest attempt at its
// generation, of its step, and of a call.
func (t *Turn) generation() Place { return Place{run: t.Run, turn: t.Number, n: uint32(t.Attempt)} }

func (t *Turn) step() Place { return Place{kind: kindStep, run: t.Run, turn: t.Number} }

func (t *Turn) call(i int) Place {
	return Place{kind: kindTool, run: t.Run, turn: t.Number, n: uint32(i)}
}

// name returns the effect's name of the latest attempt at the turn.
func (t *Turn) name() string { return t.generation().String() }

// The memory of a state's parts without what they point to, in bytes on a
// 64-bit machine, rounded up to the heap's size classes.
const (
	stateWeight      = 512
	turnWeight       = 256
	stepWeight       = 272
	batchWeight      = 128
	callWeight       = 240
	planCallWeight   = 96
	itemWeight       = 72
	offerWeight      = 4
	definedWeight    = 24
	configWeight     = 320
	runWeight        = 288 + configWeight
	modelPriceWeight = 48 + 16
	ruleWeight       = 128
	liveWeight       = 192
	submissionWeight = 56
	wakeWeight       = 24
	steerWeight      = 16
	factWeight       = 32
	hostWeight       = 64
	endedWeight      = 64
	overWeight       = 32
	doneWeight       = 32
	stepCallWeight   = 144
	lastCallWeight   = 64
	stringWeight     = 16
)

// Weight returns about how many bytes of memory the state takes, without what
// sessions share: the install record, its manifests, and all registries. Its cost
// does not grow with a session's length nor with a manifest's, so it may be called
// after every event. It is accurate within a half; text that a config or a pin
// shares with another counts in each, and patterns of a pack count up to twice.
func (s *State) Weight() int {
	n := stateWeight + space.TextWeight(s.Session) + space.TextWeight(s.Profile)
	n += cap(s.Items)*itemWeight + max(0, int(s.ItemBytes)-len(s.Items)*itemFixedBytesMax)
	n += space.ListWeight(s.IDs) + cap(s.Wakes)*wakeWeight + cap(s.Facts)*factWeight
	for i := range s.Facts {
		n += space.TextWeight(s.Facts[i].Name) + space.TextWeight(s.Facts[i].Value)
	}
	if n += cap(s.Submissions) * submissionWeight; len(s.Submissions) > 0 {
		n += len(s.Submissions) * space.TextWeight(s.Submissions[0].Name) // they are mostly alike
	}
	n += s.Host.weight() + s.Overrides.weight() + s.Turn.weight()
	if x := s.spaces(); x.State != nil {
		n += x.Weight()
	}
	if s.Config != nil {
		n += s.Config.Run.weight(s.install)
	}
	if s.Done != nil {
		n += doneWeight + cap(s.Done.Results)*len(codec.Hash{})
	}
	if s.Last != nil {
		n += endedWeight + space.TextWeight(s.Last.Detail) + space.TextWeight(s.Last.FinishReason)
		if s.Last.OverBudget != nil {
			n += overWeight
		}
	}
	if s.Run != nil {
		n += runWeight + s.Run.weight(s.install)
	}
	n += cap(s.Queue) * runWeight
	for i := range s.Queue {
		n += s.Queue[i].weight(s.install)
	}
	if s.scratch != nil {
		n += liveWeight + s.rules.steps.Weight()
	}
	return n
}

func (h *HostSession) weight() int {
	if h == nil {
		return 0
	}
	return hostWeight + space.TextWeight(h.ID) + space.TextWeight(h.Root) + space.TextWeight(h.Route)
}

func (o *Overrides) weight() int {
	if o == nil {
		return 0
	}
	return 3*stringWeight + space.ListWeight(o.Disable) + space.ListWeight(o.Enable) + space.ListWeight(o.Force)
}

// weight returns the memory of a run without the Run itself.
func (r *Run) weight(install *Install) int {
	n := r.Config.weight(install) - configWeight + space.ListWeight(listOf(r.Only))
	n += r.Asked.weight() + space.TextWeight(r.Context) + space.ListWeight(r.Joined) + space.ListWeight(r.Roles) + space.TextWeight(r.Submission) + space.TextWeight(r.Finish) + space.ListWeight(r.Used)
	for _, active := range r.Skills {
		n += 2*stringWeight + space.TextWeight(active.Name) + space.TextWeight(active.Space)
	}
	n += cap(r.Steers)*steerWeight + cap(r.Calls)*stepCallWeight
	for i := range r.Calls {
		n += space.TextWeight(r.Calls[i].ToolName) + space.TextWeight(r.Calls[i].Effect) + space.TextWeight(r.Calls[i].Arguments)
	}
	return n
}

func (c *RunConfig) weight(install *Install) int {
	n := configWeight + space.TextWeight(c.Model) + space.TextWeight(c.Params) + space.TextWeight(c.Provider) + space.TextWeight(c.ResponseFormat)
	if shared := install.Record.Config; shared == nil || c.System != shared.System {
		n += space.TextWeight(c.System)
	}
	n += space.ListWeight(c.Disable) + space.ListWeight(c.Enable) + space.ListWeight(c.Force) + space.ListWeight(c.Skills)
	n += space.ListWeight(listOf(c.ActiveTools)) + (cap(listOf(c.PromptRefs))+cap(listOf(c.ToolRefs)))*len(codec.Hash{})
	for i := range c.Steps {
		n += weightOfRule(&c.Steps[i])
	}
	if c.Prices != nil {
		n += cap(c.Prices.Models) * modelPriceWeight
	}
	return n
}

func weightOfRule(r *planner.StepRule) int {
	return ruleWeight + space.TextWeight(r.Context) + space.TextWeight(r.Params) + space.TextWeight(r.System) + space.TextWeight(r.When) + space.ListWeight(listOf(r.ActiveTools))
}

func (t *Turn) weight() int {
	if t == nil {
		return 0
	}
	n := turnWeight + cap(t.Toolset.Offers)*offerWeight + cap(t.Toolset.Verdicts)
	if t.Defined != nil {
		n += definedWeight + cap(*t.Defined)*offerWeight
	}
	if t.Step != nil {
		n += stepWeight + cap(t.Step.Tools)*8 + cap(t.Step.Calls)*lastCallWeight
		for i := range t.Step.Calls {
			n += space.TextWeight(t.Step.Calls[i].Arguments)
		}
		if t.Step.Prepared != nil {
			n += weightOfRule(t.Step.Prepared)
		}
	}
	if b := t.Batch; b != nil {
		n += batchWeight + cap(b.Calls)*callWeight + cap(b.Plan.Calls)*planCallWeight
		for i := range b.Calls {
			c := &b.Calls[i]
			n += space.TextWeight(c.Arguments) + space.TextWeight(c.Detail) + space.TextWeight(c.ProviderCallID) + c.Host.weight()
		}
		n += len(b.Plan.Groups)*stringWeight + len(b.Calls)*8
	}
	return n
}
