package session

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// View is a session for people: a projection of one state, as JSON. Adding a field
// to it changes no state.
type View struct {
	Session     string     `json:"session"`
	Status      string     `json:"status"`    // open, closed
	Lifecycle   Lifecycle  `json:"lifecycle"` // of the active run, else of the last one; empty: none yet
	WaitsFor    string     `json:"waits_for"` // model, tools, step, host_loop, approval, space, input, resume, retry, nobody
	Seq         uint64     `json:"seq"`       // of the latest event folded
	Events      uint64     `json:"events"`
	Hash        string     `json:"hash"`  // BLAKE2b-256 of the state's canonical bytes
	Chain       string     `json:"chain"` // BLAKE2b-256 over all events
	Clock       int64      `json:"clock"` // Unix ms
	Rules       int        `json:"rules"`
	Install     string     `json:"install"`
	Registry    string     `json:"registry"` // SHA-256 of the registry of the next turn
	Profile     string     `json:"profile,omitempty"`
	Overrides   *ViewLists `json:"overrides,omitempty"` // of the session
	HostSession *ViewHost  `json:"host_session,omitempty"`
	Facts       []ViewFact `json:"facts,omitempty"`
	ViewSpaces
	Run   *ViewRun     `json:"run,omitempty"`
	Last  *ViewEnded   `json:"last,omitempty"`
	Queue []ViewRun    `json:"queue,omitempty"`
	Turn  *ViewTurn    `json:"turn,omitempty"` // the latest
	Batch *ViewBatch   `json:"batch,omitempty"`
	Tools []ViewTool   `json:"tools,omitempty"` // of the latest turn: every tool of the registry, and why it is offered or not
	Open  []ViewEffect `json:"open,omitempty"`
	// Quarantined says that the session is stopped: the view is as of the event before
	// its first unprocessed one. The session-actor that answers adds it.
	Quarantined *ViewQuarantine `json:"quarantined,omitempty"`
	// Unserved are the targets of open effects, as llm/openai, that no live bridge
	// serves. The state does not know them: the session-actor that answers adds
	// them.
	Unserved []string `json:"unserved,omitempty"`
	// Troubles are what keeps open effects from being settled. The session-actor
	// adds them too.
	Troubles   []Trouble  `json:"troubles,omitempty"`
	Items      int        `json:"items"` // length of the transcript
	Transcript []ViewItem `json:"transcript,omitempty"`
	Usage      UsageTotal `json:"usage"`
	Cost       int64      `json:"cost,omitempty"` // of all runs, micro-units
}

// ViewQuarantine is a session's quarantine.
type ViewQuarantine struct {
	Seq    uint64 `json:"seq"` // of the first event that is not processed
	Reason string `json:"reason"`
}

// ViewHost is the host session.
type ViewHost struct {
	ID     string `json:"id,omitempty"`
	Status string `json:"status"`
	Root   string `json:"root,omitempty"`
	Route  string `json:"route,omitempty"`
}

// ViewLists are the lists of one scope.
type ViewLists struct {
	Enable  []string `json:"enable,omitempty"`
	Disable []string `json:"disable,omitempty"`
	Force   []string `json:"force,omitempty"`
}

// ViewFact is one fact.
type ViewFact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// ViewRun is a queued or active run.
type ViewRun struct {
	Number     uint32     `json:"number"`
	Seq        uint64     `json:"seq"`
	Submission string     `json:"submission,omitempty"`
	Provider   string     `json:"provider"`
	Model      string     `json:"model"`
	Roles      []string   `json:"roles,omitempty"`
	Overrides  *ViewLists `json:"overrides,omitempty"` // the run's own, from its config or set later
	Turns      uint32     `json:"turns"`
	TurnsMax   int        `json:"turns_max"`
	Usage      UsageTotal `json:"usage"`
	Cost       int64      `json:"cost,omitempty"` // micro-units
	// Context was set by step rules and hooks; an object.
	Context  json.RawMessage `json:"context,omitempty"`
	Used     []string        `json:"used,omitempty"`     // tool_ids that ran in earlier turns
	Steers   []uint64        `json:"steers,omitempty"`   // sequences of steers that no turn has taken yet
	Deadline int64           `json:"deadline,omitempty"` // Unix ms; a pause extends it
	Budget   *Budget         `json:"budget,omitempty"`
	Spent    bool            `json:"spent,omitempty"`    // paused by its budget
	RetryAt  int64           `json:"retry_at,omitempty"` // Unix ms: time of the next attempt
	Attempt  uint32          `json:"attempt,omitempty"`  // of the latest turn's generation, from 1
	Repairs  int             `json:"repairs,omitempty"`  // turns begun to repair an answer, since the latest good one
	// FinishReason is why the answer ended with which the run waits for input, unless
	// that is FinishStop.
	FinishReason string `json:"finish_reason,omitempty"`
	// Workspace is the manifest that the run has instead of the applied one: hex,
	// or none.
	Workspace string `json:"workspace,omitempty"`
}

// ViewEnded is the last ended run.
type ViewEnded struct {
	Number       uint32      `json:"number"`
	Lifecycle    Lifecycle   `json:"lifecycle"`
	Code         string      `json:"code,omitempty"`
	Detail       string      `json:"detail,omitempty"`
	FinishReason string      `json:"finish_reason,omitempty"` // of the answer that ended it, or with which it waited for input, unless that is FinishStop
	OverBudget   *OverBudget `json:"over_budget,omitempty"`   // absent: it ended within its budget
}

// ViewEffect is an open effect.
type ViewEffect struct {
	Effect   string `json:"effect"`
	Class    Class  `json:"class"`
	Target   string `json:"target"`
	Deadline int64  `json:"deadline"` // Unix ms
}

// Trouble is what delays a session, or will: a provider that fails, a bridge that
// is gone. Bridges report those of their targets in heartbeats, and views those of
// open effects.
type Trouble struct {
	Target  string   `json:"target"`            // llm/openai
	Code    string   `json:"code"`              // of the latest failure, or one of those below
	Detail  string   `json:"detail,omitempty"`  // for people, at most TroubleDetailMax bytes
	Since   int64    `json:"since,omitempty"`   // Unix ms
	Next    int64    `json:"next,omitempty"`    // Unix ms: time of the next try, which may have begun
	Effects []string `json:"effects,omitempty"` // in a view: the effects that wait for it
}

// Codes of troubles that are not the failure of a try.
const (
	TroubleLacks    = "lacks"         // the target is served without something that it needs, such as a key
	TroubleExecutor = "executor"      // the executor reports a fault
	TroubleSilent   = "bridge_silent" // the bridge that holds the effect sends no heartbeats
	TroubleUnserved = "unserved"      // of a call that waits for approval: no running bridge serves its target
)

// ViewItem is one item of the transcript: a reference to its text in the log.
type ViewItem struct {
	Role Role   `json:"role"`
	Seq  uint64 `json:"seq"`
	Call int    `json:"call,omitempty"`
	Code string `json:"code,omitempty"`
	Edit uint64 `json:"edit,omitempty"` // of the approval that changed the arguments
}

// viewItemsMax is how many of the latest items a view lists.
const viewItemsMax = 100

// View returns a projection of the state.
func (s *State) View() View {
	v := View{
		Session: s.Session, Status: "open", WaitsFor: s.waitsFor(), Seq: s.Seq, Events: s.Count,
		Hash: s.Hash().String(), Chain: s.Chain.String(), Clock: s.Clock, Rules: int(s.Rules), Install: s.Install.String(),
		Registry: s.NextRegistry().Hash().String(), Profile: s.Profile, Items: len(s.Items), Usage: s.Usage, Cost: s.Cost,
		ViewSpaces: s.viewSpaces(), Turn: s.viewTurn(), Batch: s.viewBatch(), Tools: s.viewTools(),
	}
	if s.Closed {
		v.Status = "closed"
	}
	if o := s.Overrides; o != nil {
		v.Overrides = viewLists(o.Enable, o.Disable, o.Force)
	}
	if s.Host != nil {
		v.HostSession = &ViewHost{ID: s.Host.ID, Status: s.Host.Status, Root: s.Host.Root, Route: s.Host.Route}
	}
	for _, f := range s.Facts {
		v.Facts = append(v.Facts, ViewFact{Name: f.Name, Value: f.Value})
	}
	if s.Last != nil {
		v.Lifecycle = s.Last.Lifecycle
		v.Last = &ViewEnded{Number: s.Last.Number, Lifecycle: s.Last.Lifecycle, Code: s.Last.Code, Detail: s.Last.Detail, FinishReason: s.Last.FinishReason, OverBudget: s.Last.OverBudget}
	}
	if s.Run != nil {
		run := viewRun(s.Run)
		if t := s.Turn; s.turnIsRuns() {
			run.RetryAt, run.Attempt = t.RetryAt, uint32(t.Attempt)+1
		}
		v.Lifecycle, v.Run = s.Run.Lifecycle, &run
	}
	for i := range s.Queue {
		v.Queue = append(v.Queue, viewRun(&s.Queue[i]))
	}
	for _, e := range s.Open() {
		v.Open = append(v.Open, ViewEffect{Effect: e.Name, Class: e.Class, Target: e.Target, Deadline: e.Deadline})
	}
	for _, it := range s.Items[max(0, len(s.Items)-viewItemsMax):] {
		v.Transcript = append(v.Transcript, ViewItem{Role: it.Role, Seq: it.Seq, Call: it.Call, Code: it.Code, Edit: it.Edit})
	}
	return v
}

// waitsFor returns what the session waits for: an open effect, or if only wakes are
// open, a person or the time.
func (s *State) waitsFor() string {
	run, t := s.Run, s.Turn
	switch {
	case run == nil:
		return "nobody"
	case !s.turnIsRuns():
		return s.waitsIdle()
	case t.stepOpen():
		return "step"
	case t.Open:
		return "model"
	}
	waits := s.waitsIdle()
	if t.Batch == nil {
		return waits
	}
	for i := range t.Batch.Calls {
		switch c := &t.Batch.Calls[i]; {
		case c.Status == CallOpen && c.Sync > 0, s.isBeingRead(c):
			waits = "space"
		case c.Status == CallOpen && !s.isHostLoop(c):
			return "tools"
		case c.Status == CallOpen:
			waits = "host_loop"
		case c.Status == CallAwaiting && waits != "host_loop":
			waits = "approval"
		}
	}
	return waits
}

// waitsIdle is waitsFor for a run without open effects.
func (s *State) waitsIdle() string {
	switch {
	case s.Run.Lifecycle == Paused:
		return "resume"
	case s.Run.Lifecycle == WaitingInput:
		return "input"
	case s.turnIsRuns() && s.Turn.RetryAt > 0:
		return "retry"
	}
	return "nobody"
}

func viewRun(r *Run) ViewRun {
	var context json.RawMessage
	if len(r.Context) > 0 {
		context, _ = codec.ToJSON(r.Context) // it was canonical when it was set
	}
	return ViewRun{
		Context: context, Used: slices.Clone(r.Used),
		Number: r.Number, Seq: r.Seq, Submission: r.Submission, Provider: r.Config.Provider, Model: r.Config.Model,
		Roles: r.Roles, Overrides: viewLists(r.Config.Enable, r.Config.Disable, r.Config.Force),
		Turns: r.Turns, TurnsMax: r.Config.turnsMax(), Usage: r.Usage, Cost: r.Cost,
		Steers: seqsOf(r.Steers), Deadline: r.Deadline, Budget: r.Config.Budget, Spent: r.Breach, Repairs: int(r.Repairs), FinishReason: r.Finish, Workspace: r.Config.Workspace,
	}
}

// viewLists returns the lists of a view, nil if all are empty.
func viewLists(enable, disable, force []string) *ViewLists {
	if len(enable)+len(disable)+len(force) == 0 {
		return nil
	}
	return &ViewLists{Enable: enable, Disable: disable, Force: force}
}

// ViewTurn is the latest turn, and what decided about it.
type ViewTurn struct {
	Effect     string    `json:"effect"`                // r1t2
	Registry   string    `json:"registry"`              // SHA-256
	Toolset    string    `json:"toolset,omitempty"`     // fingerprint; empty until its generation is opened
	Base       string    `json:"base,omitempty"`        // origin of its tools: profile, step, run, catalog
	Profile    string    `json:"profile,omitempty"`     // if that is the base
	ProfileWhy string    `json:"profile_why,omitempty"` // why this profile, or why none
	Step       *ViewStep `json:"step,omitempty"`

	Workspace *ViewSpace `json:"workspace,omitempty"` // the one applied when the turn began, with the active run's choices

	Prompt *ViewPrompt `json:"prompt,omitempty"` // absent: there is none
}

// ViewStep is the decision of a step rule or a step hook about the turn.
type ViewStep struct {
	Step    int              `json:"step"`              // 0-based
	From    StepSource       `json:"from,omitempty"`    // run, profile, hook; empty: none applies
	Profile string           `json:"profile,omitempty"` // owner of the rules
	Rule    *int             `json:"rule,omitempty"`    // index of the rule that applies
	Open    bool             `json:"open,omitempty"`    // the hook's effect is open
	Code    string           `json:"code,omitempty"`    // why the hook's answer is not used
	Detail  string           `json:"detail,omitempty"`
	Failed  []ViewRuleFailed `json:"failed,omitempty"` // rules that could not be evaluated, and did not apply
}

// ViewRuleFailed is a rule that could not be evaluated.
type ViewRuleFailed struct {
	Rule int    `json:"rule"`
	Code string `json:"code"` // when_too_costly, when_failed
}

// ViewBatch is the batch of the latest turn, as a host loop needs it.
type ViewBatch struct {
	Batch    string     `json:"batch"`
	Seq      uint64     `json:"seq"` // of the ToolCallsObserved, which has all arguments
	PlanHash string     `json:"plan_hash"`
	Groups   [][]int    `json:"groups"`
	Group    int        `json:"group"` // the current one; the number of groups when complete
	Calls    []ViewCall `json:"calls"`
	Excess   int        `json:"excess,omitempty"`
}

// ViewCall is one call of the batch. Code and Detail are of its result; while a
// person must decide over the call, they say why it would not run if it was approved
// now. The fields after Detail are set while a person must decide, or a host loop
// must run the call.
type ViewCall struct {
	Effect   string     `json:"effect"`
	ToolID   string     `json:"tool_id,omitempty"`
	ToolName string     `json:"tool_name"`
	Status   CallStatus `json:"status"`
	Code     string     `json:"code,omitempty"`
	Detail   string     `json:"detail,omitempty"`

	HostLoop       string `json:"host_loop,omitempty"`       // the executor's target
	Arguments      string `json:"arguments,omitempty"`       // JSON text, also of a bridge's call that is not open yet; absent when all of them together are too large: see Seq
	ArgsHash       string `json:"args_hash,omitempty"`       // of a call that awaits approval: the decision names it; absent while its pack is being read
	Deadline       int64  `json:"deadline,omitempty"`        // Unix ms, of the approval or the call; absent until its group has begun
	IdempotencyKey string `json:"idempotency_key,omitempty"` // the same for every start of the call
	RetrySafe      bool   `json:"retry_safe,omitempty"`

	Pack *ApprovalPack `json:"pack,omitempty"` // that the call enables, while a person must decide
}

// viewArgumentsBytesMax limits the arguments in a view: an answer must fit a
// message.
const viewArgumentsBytesMax = 128 << 10

// ViewTool is whether and why the latest turn offered a tool.
type ViewTool struct {
	ToolID   string `json:"tool_id"`
	ToolName string `json:"tool_name"` // the name that it is offered under, else its own
	Offered  bool   `json:"offered"`
	Why      string `json:"why"`
	Place    int    `json:"place,omitempty"` // among the offered ones, from 1
}

func (s *State) viewTurn() *ViewTurn {
	t := s.Turn
	if t == nil {
		return nil
	}
	v := &ViewTurn{Effect: turnName(t.Run, t.Number), Registry: s.turnRegistry.Hash().String()}
	if step := t.Step; step != nil {
		v.Step = &ViewStep{
			Step: int(t.Number) - 1, From: step.From, Profile: step.Profile, Open: step.Open, Code: step.Code, Detail: step.Detail,
		}
		if step.From == StepFromRun || step.From == StepFromProfile {
			rule := step.Rule
			v.Step.Rule = &rule
		}
		for _, f := range step.Failed {
			v.Step.Failed = append(v.Step.Failed, ViewRuleFailed{Rule: f.Rule, Code: f.Code})
		}
	}
	v.Workspace = s.viewTurnSpace()
	if !t.wasOpened() {
		return v
	}
	v.Prompt = s.viewPrompt()
	v.Toolset, v.Profile, v.Base = t.Toolset.Fingerprint.String(), t.Toolset.Profile, string(t.Toolset.Source)
	if t.Toolset.IsFromProfile() {
		v.Base = "profile"
		provider := ""
		if s.turnIsRuns() {
			provider = s.Run.Config.Provider
		}
		v.ProfileWhy = planner.WhyProfile(&t.Toolset, provider)
	}
	return v
}

func (s *State) viewBatch() *ViewBatch {
	t := s.Turn
	if t == nil || t.Batch == nil {
		return nil
	}
	b := t.Batch
	v := &ViewBatch{
		Batch: turnName(t.Run, t.Number), Seq: b.Seq, PlanHash: b.PlanHash.String(), Groups: b.Plan.Groups, Group: b.Group, Excess: b.Excess,
	}
	size := 0
	for i := range b.Calls {
		c := &b.Calls[i]
		vc := ViewCall{
			Effect: callName(t.Run, t.Number, i), ToolID: c.ToolID, ToolName: c.ToolName, Status: c.Status, Code: c.Code, Detail: c.Detail,
		}
		if !c.done() && s.isHostLoop(c) {
			tool := s.tool(c.ToolID)
			vc.HostLoop, vc.Deadline, vc.RetrySafe = tool.Executor.Target, c.Deadline, tool.RetrySafe
			vc.IdempotencyKey = s.Session + "." + vc.Effect
		}
		if a := c.Approval; a != nil && !s.isBeingRead(c) {
			vc.ArgsHash, vc.Deadline = a.ArgsHash.String(), a.Deadline
			vc.Code, vc.Detail = s.whyNotNow(c)
		}
		// A settlement of the batch names every call that was not opened.
		if c.Status == CallWaiting || vc.HostLoop != "" || vc.ArgsHash != "" {
			if size += len(c.Arguments); size <= viewArgumentsBytesMax {
				vc.Arguments = c.Arguments
			}
			if vc.Pack = s.approvalPack(c); vc.Pack != nil {
				if size += vc.Pack.bytes(); size > viewArgumentsBytesMax {
					vc.Pack.cut()
				}
			}
		}
		v.Calls = append(v.Calls, vc)
	}
	return v
}

func (s *State) viewTools() []ViewTool {
	t := s.Turn
	if t == nil || !t.wasOpened() {
		return nil
	}
	var tools []ViewTool
	for i, tool := range s.turnRegistry.Tools() {
		v := ViewTool{ToolID: tool.ToolID, ToolName: tool.ToolName, Why: s.why(planner.ToolIndex(i))}
		for place, o := range t.Toolset.Offers {
			if int(o.Tool()) == i {
				v.Offered, v.Place, v.ToolName = true, place+1, t.Toolset.ToolName(s.turnRegistry, o.Tool())
			}
		}
		tools = append(tools, v)
	}
	return tools
}

// why returns what happened to a tool in the latest turn, with the responsible
// rule.
func (s *State) why(tool planner.ToolIndex) string {
	t := s.Turn
	text := planner.Why(s.turnRegistry, s.install.floor, &t.Toolset, tool)
	if t.Toolset.Verdict(tool).Reason == planner.NotOfSkill && s.turnSpace() != nil {
		text = planner.WhyNotOfSkill(s.turnSpace().Narrowed)
	}
	if t.masks(tool) {
		text = "masked: " + text
	}
	step := t.Step
	if step == nil || t.Toolset.Source != planner.FromStep || t.Toolset.Verdict(tool).Reason != planner.NotListed {
		return text
	}
	switch step.From {
	case StepFromHook:
		return text + " (the step hook)"
	case StepFromProfile:
		return text + " (rule " + strconv.Itoa(step.Rule) + " of profile " + quoted(step.Profile) + ")"
	}
	return text + " (rule " + strconv.Itoa(step.Rule) + " of the run)"
}
