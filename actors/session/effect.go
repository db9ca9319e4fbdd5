package session

import (
	"github.com/refold/refold/codec"
)

// Effect is a request of the session to the outside, open until settled. The event
// that opens it fixes its bytes: State.Open returns the same bytes until it is
// settled.
type Effect struct {
	Name     string // r1t2, r1t2c0, r1t2s, w1, y1
	Class    Class
	Target   string // provider, executor, hook, or "-": a subject token
	Payload  []byte // canonical msgpack of Generation, ToolCall, Step, Space or Wake
	Claimed  bool   // a bridge must store a claim before it starts this
	Deadline int64  // Unix ms; when a wake settles it
	StartBy  int64  // Unix ms; after it nobody starts it, and it is not stored any more unless it is a wake
}

// Generation is the payload of an effect of class llm.
type Generation struct {
	At              int64        `msgpack:"at"`
	CacheTTL        string       `msgpack:"cache_ttl,omitempty"` // 5m if absent; 1h, off
	Class           Class        `msgpack:"class"`
	Defined         []codec.Hash `msgpack:"defined,omitempty"` // in masked mode: descriptors to define, of which only Tools may be called; absent: Tools
	Effect          string       `msgpack:"effect"`
	Items           ItemList     `msgpack:"items"` // what to read from the log, in order
	Model           string       `msgpack:"model"`
	OutputTokensMax int64        `msgpack:"output_tokens_max,omitempty"` // limit from the budgets; 0: none
	Params          codec.Raw    `msgpack:"params,omitempty"`
	Prompt          []PromptPart `msgpack:"prompt,omitempty"`      // shown before the items, in order
	PromptMark      *codec.Hash  `msgpack:"prompt_mark,omitempty"` // fingerprint of System, Prompt and Vars, if there is a prompt
	Provider        string       `msgpack:"provider"`
	ResponseFormat  codec.Raw    `msgpack:"response_format,omitempty"` // a ResponseFormat
	RunMS           int64        `msgpack:"run_ms"`
	Session         string       `msgpack:"session"`
	StartBy         int64        `msgpack:"start_by"` // Unix ms; after it nothing is started
	System          string       `msgpack:"system,omitempty"`
	ToolChoice      string       `msgpack:"tool_choice,omitempty"` // auto if absent; none, required, or the tool_name of a tool offered
	Tools           []codec.Hash `msgpack:"tools,omitempty"`       // descriptors, in the order in which to show them
	Toolset         codec.Hash   `msgpack:"toolset"`               // fingerprint of the toolset
	V               int          `msgpack:"v"`
	Vars            codec.Pairs  `msgpack:"vars,omitempty"` // name to text, for the templates of Prompt
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
	Call   int    `msgpack:"call,omitempty"` // role tool: the call's position in its batch
	Code   string `msgpack:"code,omitempty"`
	Detail string `msgpack:"detail,omitempty"`
	Edit   uint64 `msgpack:"edit,omitempty"` // role tool: the ApprovalDecided that changed the arguments
	Role   Role   `msgpack:"role"`
	Seq    uint64 `msgpack:"seq"`
}

// encodedBytesMax is an upper bound of an item's encoded size, without encoding it.
func (it Item) encodedBytesMax() int {
	n := itemFixedBytesMax + len(it.Code) + len(it.Detail)
	if it.Edit != 0 {
		n += itemEditBytesMax
	}
	return n
}

// ToolCall is the payload of an effect of class tool.
type ToolCall struct {
	Arguments      string       `msgpack:"arguments"`
	At             int64        `msgpack:"at"`
	Batch          string       `msgpack:"batch"` // r1t2
	Call           int          `msgpack:"call"`  // position in the batch
	Class          Class        `msgpack:"class"`
	Context        codec.Raw    `msgpack:"context,omitempty"` // set by step rules or a hook; an object
	Effect         string       `msgpack:"effect"`
	Grants         []UsedGrant  `msgpack:"grants,omitempty"` // of packs, for the extension tools
	HostSession    *HostSession `msgpack:"host_session,omitempty"`
	IdempotencyKey string       `msgpack:"idempotency_key"`
	PlanHash       codec.Hash   `msgpack:"plan_hash"`
	ProviderCallID string       `msgpack:"provider_call_id,omitempty"`
	RetrySafe      bool         `msgpack:"retry_safe,omitempty"`
	RunMS          int64        `msgpack:"run_ms"`
	Session        string       `msgpack:"session"`
	Spaces         []UsedSpace  `msgpack:"spaces,omitempty"` // the turn's, for a session tool; only the pack, for a pack's tool
	StartBy        int64        `msgpack:"start_by"`
	ToolID         string       `msgpack:"tool_id"`
	ToolName       string       `msgpack:"tool_name"`
	V              int          `msgpack:"v"`
}

// Step is the payload of an effect of class step: the input of a step hook's
// decision. Its settlement is a StepPrepared.
type Step struct {
	At       int64       `msgpack:"at"`
	Calls    []StepCall  `msgpack:"calls,omitempty"` // of the run's earlier turns, oldest first; the latest StepCallsMax
	Class    Class       `msgpack:"class"`
	Context  codec.Raw   `msgpack:"context,omitempty"` // set by earlier steps; an object
	Effect   string      `msgpack:"effect"`
	Facts    codec.Pairs `msgpack:"facts"` // name to text
	Hook     string      `msgpack:"hook"`
	InputSeq uint64      `msgpack:"input_seq"` // of the event with the run's input
	Items    ItemList    `msgpack:"items"`     // of the transcript, the latest StepItemsMax that a model would be shown
	ItemsCut bool        `msgpack:"items_cut,omitempty"`
	Model    string      `msgpack:"model"` // the turn's model if the hook names none
	Provider string      `msgpack:"provider"`
	Roles    []string    `msgpack:"roles,omitempty"`
	RunMS    int64       `msgpack:"run_ms"`
	Session  string      `msgpack:"session"`
	StartBy  int64       `msgpack:"start_by"`
	Step     int         `msgpack:"step"`  // 0-based, the same in every attempt
	Tools    []StepTool  `msgpack:"tools"` // that could be offered when the step was opened, in the order of the registry
	Usage    UsageTotal  `msgpack:"usage"` // of the run so far
	Used     []string    `msgpack:"used"`  // tool_ids that ran in earlier steps of the run, sorted
	V        int         `msgpack:"v"`
}

// StepCall is one call of an earlier step.
type StepCall struct {
	Arguments    string     `msgpack:"arguments,omitempty"`     // JSON text as it ran, or as the model wrote it; only the beginning if ArgumentsCut
	ArgumentsCut bool       `msgpack:"arguments_cut,omitempty"` // the rest is in Edit's event, else in CallsSeq's
	CallsSeq     uint64     `msgpack:"calls_seq"`               // sequence of the ToolCallsObserved
	Code         string     `msgpack:"code,omitempty"`          // of a result that the session made
	Edit         uint64     `msgpack:"edit,omitempty"`          // sequence of the ApprovalDecided that changed the arguments
	Effect       string     `msgpack:"effect"`                  // r1t1c0
	Seq          uint64     `msgpack:"seq"`                     // sequence of the event with the result, or that made the session give one
	Status       CallStatus `msgpack:"status"`
	Step         int        `msgpack:"step"` // 0-based
	ToolID       string     `msgpack:"tool_id,omitempty"`
	ToolName     string     `msgpack:"tool_name"`
}

// StepTool is a tool that a step may offer.
type StepTool struct {
	ToolID   string `msgpack:"tool_id"`
	ToolName string `msgpack:"tool_name"`
}

// Wake is the payload of an effect of class wake.
type Wake struct {
	At      int64  `msgpack:"at"`
	Class   Class  `msgpack:"class"`
	Due     int64  `msgpack:"due"` // Unix ms
	Effect  string `msgpack:"effect"`
	Session string `msgpack:"session"`
	StartBy int64  `msgpack:"start_by"` // its due; limits nobody
	V       int    `msgpack:"v"`
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
