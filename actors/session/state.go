package session

import (
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// State is all that a session remembers: a fold of its own events under the
// install record that it pinned, and of nothing else. It has no maps and no
// clock. Only Evolve changes it; the exported fields are for reading. A State
// is not safe for concurrent use.
type State struct {
	Record
	install  *Install          // pinned content, shared between sessions
	registry *planner.Registry // the session's own, else the install record's
	turnsOwn *planner.Registry // the registry of the latest turn
	*scratch                   // nil while the session is idle, unless it is quiet
}

// scratch is what a state holds only while the session is active and can
// rebuild. An idle session should take little memory.
type scratch struct {
	rules      runRules     // the active run's step rules, compiled
	notices    []Notice     // of the event being folded
	progress   []Notice     // of the event folded last, until somebody takes it
	withdrawn  []Withdrawal // withdrawn by the event folded last
	toolsMoved bool         // what decides over tools may have changed since the latest turn
	quiet      bool         // notices are numbered, and not made
	turnHashes lazyHashes   // hashes of the latest turn's settlements
	doneHashes lazyHashes   // those of results that Done holds, if another turn was the latest since
}

// Record is the part of a state that a snapshot holds. Fields stand in the
// byte order of their wire names, but for small ones, which stand together. Of a
// state that is at work, hashes of settlements and results may be missing until
// Bytes has made them.
type Record struct {
	Chain       codec.Hash     `msgpack:"chain"` // BLAKE2b-256 chain over all events
	Clock       int64          `msgpack:"clock"` // greatest stream timestamp seen, or a wake's due; Unix ms
	Config      *SessionConfig `msgpack:"config,omitempty"`
	Cost        int64          `msgpack:"cost,omitempty"`  // of all runs, micro-units
	Count       uint64         `msgpack:"count"`           // events folded, the install record not counted
	Done        *DoneBatch     `msgpack:"done,omitempty"`  // the batch that was completed last
	Facts       []planner.Fact `msgpack:"facts,omitempty"` // by name
	Host        *HostSession   `msgpack:"host,omitempty"`
	IDs         []string       `msgpack:"ids,omitempty"`       // ids of the latest events taken, oldest first
	Install     codec.Hash     `msgpack:"install"`             // of the pinned install record
	Items       []Item         `msgpack:"items,omitempty"`     // the transcript
	Last        *Ended         `msgpack:"last,omitempty"`      // the run that ended last
	LastPlan    codec.Hash     `msgpack:"last_plan_hash"`      // zero: none yet
	Leaf        codec.Hash     `msgpack:"leaf"`                // BLAKE2b-256 of the latest event alone
	Overrides   *Overrides     `msgpack:"overrides,omitempty"` // of the session
	Profile     string         `msgpack:"profile,omitempty"`   // selected for the session
	Queue       []Run          `msgpack:"queue,omitempty"`     // first in, first out
	Registry    *RegistryPin   `msgpack:"registry,omitempty"`  // absent: the install record's
	Run         *Run           `msgpack:"run,omitempty"`       // the active one
	ItemBytes   int32          `msgpack:"item_bytes"`          // encoded size of Items
	NoticeN     uint32         `msgpack:"notice_n"`            // notices so far
	Rules       uint8          `msgpack:"rules"`
	Runs        uint32         `msgpack:"runs"` // runs numbered so far
	Closed      bool           `msgpack:"closed,omitempty"`
	lastType    uint8          // place in lastTypes of the latest event's type; in no snapshot
	Seq         uint64         `msgpack:"seq"` // stream sequence of the latest event
	Session     string         `msgpack:"session"`
	Spaces      *Spaces        `msgpack:"spaces,omitempty"`      // absent: the session never had a grant or prompt refs
	Submissions []Submission   `msgpack:"submissions,omitempty"` // by name
	Turn        *Turn          `msgpack:"turn,omitempty"`        // the latest turn, of the active run or of the last one
	Usage       UsageTotal     `msgpack:"usage"`                 // of all runs
	Wakes       []OpenWake     `msgpack:"wakes,omitempty"`
	WakesAsked  uint32         `msgpack:"wakes_asked"`            // wakes numbered so far
	WindowBytes uint32         `msgpack:"window_bytes,omitempty"` // of the transcript and of the open batch's results, as a model is shown them; at most MaxUint32
}

// Lifecycle is where a run stands.
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

// RegistryPin names a registry that an event set: the content is in the log.
type RegistryPin struct {
	Hash codec.Hash `msgpack:"hash"`
	Seq  uint64     `msgpack:"seq"` // of its ToolRegistrySet
}

// Overrides are the lists that ToolOverridesSet set for the session, by
// tool_id or tool_name. Those of a run are in its config.
type Overrides struct {
	Disable []string `msgpack:"disable,omitempty"`
	Enable  []string `msgpack:"enable,omitempty"`
	Force   []string `msgpack:"force,omitempty"`
}

// Run is a queued or active run. Its config is the one that held when it was
// requested, resolved then and frozen; only ToolOverridesSet changes its lists.
type Run struct {
	Answer     uint64        `msgpack:"answer,omitempty"` // of the latest answer, while the run waits for input
	Asked      *Overrides    `msgpack:"asked,omitempty"`  // the config's lists as requested, if ToolOverridesSet changed them
	Before     Lifecycle     `msgpack:"before,omitempty"` // where a paused run goes back to
	Breach     bool          `msgpack:"breach,omitempty"` // paused by a budget
	Calls      []StepCall    `msgpack:"calls,omitempty"`  // of earlier turns, for a step hook alone
	Config     RunConfig     `msgpack:"config"`
	Context    codec.Raw     `msgpack:"context,omitempty"`     // carried on from step to step; an object
	Cost       int64         `msgpack:"cost,omitempty"`        // micro-units
	Deadline   int64         `msgpack:"deadline,omitempty"`    // Unix ms; 0: none. While paused it stands still
	Held       Held          `msgpack:"held,omitempty"`        // what a pause holds back
	InputBytes int64         `msgpack:"input_bytes,omitempty"` // of a queued run's input, as a model is shown it
	Joined     []string      `msgpack:"joined,omitempty"`      // packs that its own calls enabled
	Lifecycle  Lifecycle     `msgpack:"lifecycle,omitempty"`   // empty: queued
	Number     uint32        `msgpack:"number"`
	PausedAt   int64         `msgpack:"paused_at,omitempty"` // clock
	Roles      []string      `msgpack:"roles,omitempty"`
	Seq        uint64        `msgpack:"seq"`              // of the event with its input
	Skills     []ActiveSkill `msgpack:"skills,omitempty"` // that are active, in the order in which they became so
	Steers     []Steer       `msgpack:"steers,omitempty"` // input that no turn has taken yet
	Submission string        `msgpack:"submission,omitempty"`
	Turns      uint32        `msgpack:"turns"` // turns asked
	Usage      UsageTotal    `msgpack:"usage"`
	Used       []string      `msgpack:"used,omitempty"`      // tool_ids carried out in earlier turns, sorted; those of the turn's registry
	Workspace  *SpacePin     `msgpack:"workspace,omitempty"` // that its config names; absent: what is applied, or none
}

// Steer is input that waits for a turn.
type Steer struct {
	Bytes int64  `msgpack:"bytes"` // as a model is shown it
	Seq   uint64 `msgpack:"seq"`   // of its event
}

// Held is what a paused run asks when it is resumed.
type Held string

// What a pause holds back.
const (
	HeldGroup      Held = "group"      // the calls of the open group
	HeldTurn       Held = "turn"       // the next turn
	HeldGeneration Held = "generation" // the generation of a turn whose step is settled
)

// Ended is what is kept of the run that ended last.
type Ended struct {
	Code       string      `msgpack:"code,omitempty"`
	Detail     string      `msgpack:"detail,omitempty"`
	Lifecycle  Lifecycle   `msgpack:"lifecycle"`
	Number     uint32      `msgpack:"number"`
	OverBudget *OverBudget `msgpack:"over_budget,omitempty"`
}

// Submission is a remembered submission and the SHA-256 of its content.
type Submission struct {
	Content codec.Hash `msgpack:"content"`
	Name    string     `msgpack:"name"`
	Run     uint32     `msgpack:"run"` // that it became, or steered
}

// UsageTotal adds up usages, in tokens.
type UsageTotal struct {
	CacheWriteTokens int64 `json:"cache_write_tokens,omitempty" msgpack:"cache_write_tokens,omitempty"`
	CachedTokens     int64 `json:"cached_tokens" msgpack:"cached_tokens"`
	InputTokens      int64 `json:"input_tokens" msgpack:"input_tokens"`
	OutputTokens     int64 `json:"output_tokens" msgpack:"output_tokens"`
	ReasoningTokens  int64 `json:"reasoning_tokens" msgpack:"reasoning_tokens"`
}

// Turn is one generation and the batch of calls that it made. What the
// effect's bytes are made of is kept until it is settled. Until its generation
// is asked, only Number, Run, Registry and Step say something. Small fields
// stand together, so that idle sessions weigh less.
type Turn struct {
	At       int64            `msgpack:"at"` // clock when asked
	Batch    *Batch           `msgpack:"batch,omitempty"`
	Deadline int64            `msgpack:"deadline"`           // Unix ms
	Defined  *[]planner.Offer `msgpack:"defined,omitempty"`  // in masked mode: the definitions that the model is shown, in order; carried on from turn to turn
	Registry *RegistryPin     `msgpack:"registry,omitempty"` // absent: the install record's
	RetryAt  int64            `msgpack:"retry_at,omitempty"` // Unix ms; 0: no attempt waits
	Settled  codec.Hash       `msgpack:"settled"`            // of its settlement; zero: none, or the session settled it
	Step     *TurnStep        `msgpack:"step,omitempty"`     // absent: neither a rule nor a hook had a say
	Toolset  planner.Toolset  `msgpack:"toolset"`            // what was offered, and why not

	Items           int32  `msgpack:"items"` // length of the window
	Number          uint32 `msgpack:"number"`
	OutputTokensMax int32  `msgpack:"output_tokens_max,omitempty"` // what the budgets leave for the generation's output; 0: no limit
	Run             uint32 `msgpack:"run"`
	RunMS           int32  `msgpack:"run_ms"`
	Attempt         uint8  `msgpack:"attempt,omitempty"` // attempts that failed before this one
	Open            bool   `msgpack:"open"`              // its generation is not settled
}

// Batch is the calls of one turn.
type Batch struct {
	Calls    []Call       `msgpack:"calls"`  // at most CallsMax
	Excess   int          `msgpack:"excess"` // calls beyond CallsMax
	Group    int          `msgpack:"group"`  // the group that is open; len(Plan.Groups) when complete
	Plan     planner.Plan `msgpack:"plan"`
	PlanHash codec.Hash   `msgpack:"plan_hash"`
	Seq      uint64       `msgpack:"seq"` // of the ToolCallsObserved
}

// CallStatus is where a call stands.
type CallStatus string

const (
	CallWaiting   CallStatus = "waiting" // its group has not begun
	CallAwaiting  CallStatus = "awaiting_approval"
	CallOpen      CallStatus = "open"      // asked, not settled
	CallSucceeded CallStatus = "succeeded" // settled so
	CallFailed    CallStatus = "failed"    // settled so, or arguments refused
	CallCancelled CallStatus = "cancelled" // settled so
	CallUnknown   CallStatus = "outcome_unknown"
	CallIgnored   CallStatus = "ignored" // refused before it was asked
)

// Call is one call of a batch. Position is identity; the provider's id is data.
type Call struct {
	Approval       *Approval    `msgpack:"approval,omitempty"`  // while it waits for a person
	Arguments      string       `msgpack:"arguments,omitempty"` // until it has a result; then what the next step may ask for, until that begins
	At             int64        `msgpack:"at,omitempty"`        // clock when asked
	Code           string       `msgpack:"code,omitempty"`      // of a result that the session gave
	Cut            bool         `msgpack:"cut,omitempty"`       // Arguments are the beginning, or in a blob
	Deadline       int64        `msgpack:"deadline,omitempty"`  // Unix ms, from when it is asked
	Detail         string       `msgpack:"detail,omitempty"`
	Edit           uint64       `msgpack:"edit,omitempty"` // of the ApprovalDecided that changed the arguments
	Host           *HostSession `msgpack:"host,omitempty"` // as it was when asked
	ProviderCallID string       `msgpack:"provider_call_id,omitempty"`
	Result         codec.Hash   `msgpack:"result"` // of its status and output; zero: none, or the session gave it
	RunMS          int64        `msgpack:"run_ms,omitempty"`
	Seq            uint64       `msgpack:"seq,omitempty"` // of the event with its result
	Settled        codec.Hash   `msgpack:"settled"`       // of its settlement
	Status         CallStatus   `msgpack:"status"`
	Sync           uint32       `msgpack:"sync,omitempty"`    // that carries it out: extensions_enable
	ToolID         string       `msgpack:"tool_id,omitempty"` // empty: not in the registry
	ToolName       string       `msgpack:"tool_name"`
}

// Approval is what a call waits for.
type Approval struct {
	ArgsHash codec.Hash `msgpack:"args_hash"` // SHA-256 of the arguments' text
	Deadline int64      `msgpack:"deadline"`  // Unix ms
}

// DoneBatch is what is kept of a completed batch: enough to check a repeated
// ToolBatchSettled against it. Its plan is the latest, as long as no later
// batch makes it stale.
type DoneBatch struct {
	Results []codec.Hash `msgpack:"results"` // by call
	Run     uint32       `msgpack:"run"`
	Turn    uint32       `msgpack:"turn"`
}

// OpenWake is a wake that was asked and has not come.
type OpenWake struct {
	At     int64  `msgpack:"at"`
	Due    int64  `msgpack:"due"` // Unix ms
	Number uint32 `msgpack:"number"`
}

// isAsked reports whether the turn's generation was asked: not while its step
// hook is, and never if the run failed for want of an answer.
func (t *Turn) isAsked() bool { return t.RunMS > 0 }

// done reports whether the call has a result.
func (c *Call) done() bool {
	return c.Status != CallWaiting && c.Status != CallAwaiting && c.Status != CallOpen
}

// New returns the state of a session that has no event yet, under install.
func New(install *Install, sid string) *State {
	s := &State{
		Record:  Record{Session: sid, Install: install.Hash, Rules: uint8(install.Rules)},
		install: install, registry: install.Registry, turnsOwn: install.Registry,
	}
	if len(install.Record.Spaces) > 0 {
		s.enterSpaces()
		s.adopt(&install.stack)
	}
	return s
}

// Withdrawals returns the effects that the event folded last withdrew. They are
// outputs of that event, like its notices: their claims are stored as withdrawn
// before it counts as stored. The slice is valid until the next Evolve.
func (s *State) Withdrawals() []Withdrawal {
	if s.scratch == nil {
		return nil
	}
	return s.withdrawn
}

// InstallRecord returns the pinned install record.
func (s *State) InstallRecord() *Install { return s.install }
