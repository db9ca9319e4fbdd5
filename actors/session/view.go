package session

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// View is a session's state, for people and programs: the answer to a request on
// refold.view.<session>.
//
// Adding a field to it changes no state.
//
//wire:rule {"required": ["session"], "anyOf": [{"required": ["*", "session"]}, {"required": ["quarantined"], "maxProperties": 2}]}
type View struct {
	Shown
	// The session can't be erased until it is released; false if absent.
	Held bool `json:"held,omitempty"`
	// A closed session accepts no more runs. Of an erased one nothing is left.
	Status string `json:"status" lim:"enum=open|closed|erased"`
	// State of the active run, else of the run that ended last; empty if there was none.
	Lifecycle Lifecycle `json:"lifecycle" lim:"enum=|running|waiting_input|paused|interrupting|completed|failed|cancelled|interrupted"`
	// Open effects come first. `tools`: a call is open at a bridge, and perhaps one at a
	// host loop too; `host_loop`: a call is open there, and perhaps one waits for a person
	// too; `space`: a call of `extensions_enable` waits for its sync; `approval`; `reply`:
	// somebody must answer a call, and perhaps a child is open or a call sleeps too;
	// `session`: a child is open; `clock`: a call sleeps. Then: `input` and `resume` of the
	// run, or `retry`: the run waits until a generation is retried.
	WaitsFor string `json:"waits_for" lim:"enum=nobody|model|tools|step|host_loop|approval|reply|session|clock|input|resume|retry|space"`
	// BLAKE2b-256 of the state's canonical bytes.
	Hash string `json:"hash" lim:"@hash"`
	// Hash chain (BLAKE2b-256) over all events.
	Chain string `json:"chain" lim:"@hash"`
	// Version of the rules that the session follows.
	Rules int `json:"rules" lim:"1.."`
	// Hash of the pinned install record.
	Install string `json:"install" lim:"@hash"`
	// Hash of the registry that the next turn is offered from: the session's own, else the
	// install record's.
	Registry string `json:"registry" lim:"@hash"`
	// The profile selected for the session.
	Profile string `json:"profile,omitempty" lim:"any"`
	// The session's lists.
	Overrides *Overrides `json:"overrides,omitempty"`
	// The session's schedules, by name.
	Schedules []Schedule `json:"schedules,omitempty" lim:"..SchedulesMax"`
	ViewSpaces
	// Whose call the session carries out. Absent: it is no child.
	Parent *ViewParent `json:"parent,omitempty"`
	// The children that the session waits for or may continue. Earlier ones are closed.
	Children []ViewChild `json:"children,omitempty"`
	// The active run.
	Run *ViewRun `json:"run,omitempty"`
	// The run that ended last.
	Last *Ended `json:"last,omitempty"`
	// Queued runs, the next one first.
	Queue []ViewRun `json:"queue,omitempty" lim:"..QueueMax"`
	// What decided the latest turn's offer.
	Turn *ViewTurn `json:"turn,omitempty"`
	// The calls of the latest turn.
	Batch *ViewBatch `json:"batch,omitempty"`
	// Every tool of the latest turn's registry, by tool_id. Absent until its generation is
	// opened.
	Tools []ViewTool `json:"tools,omitempty" lim:"..planner.ToolsMax"`
	// Open effects: the turn's, then syncs, then wakes.
	Open []ViewEffect `json:"open,omitempty"`
	// The session is stopped; the rest of the view is as of the event before. Without a
	// state to show, the view has only this and the session.
	Quarantined *ViewQuarantine `json:"quarantined,omitempty"`
	// Targets of open effects, as `llm/openai`, from whose bridges the session-actor that
	// answers has received no heartbeat for 1.5 seconds; absent while it can't tell.
	Unserved []string `json:"unserved,omitempty" lim:"item=any"`
	// What keeps open effects, or the next attempt at a turn, waiting; each with the
	// `effects` that wait. Session-actors add to what bridges report: `stalled`, if they
	// can store nothing for the session, or a consumer is paused; `bridge_silent`, for a
	// bridge that began an effect and sends no heartbeats any more, and the failure of an
	// attempt that the run's `retry` repeats.
	Troubles []Trouble `json:"troubles,omitempty" lim:"..TroublesMax"`
	// Limits of which nine tenths are used, and at which every later run fails.
	Warnings []Warning `json:"warnings,omitempty"`
	// Length of the transcript.
	Items int `json:"items" lim:"0.."`
	// The latest 100 items.
	Transcript []Item `json:"transcript,omitempty" lim:"..viewItemsMax"`
}

// ViewQuarantine is a session's quarantine.
type ViewQuarantine struct {
	// Sequence of its first event that is not processed.
	Seq uint64 `json:"seq" lim:"1.."`
	// Why it is stopped.
	Reason string `json:"reason" lim:"any"`
}

// ViewParent says whose call a session carries out.
type ViewParent struct {
	// The session whose call it is.
	Session string `json:"session" lim:"@session"`
	// The call.
	Call string `json:"call" lim:"@call"`
	// The session at the top of the tree.
	Root string `json:"root" lim:"@session"`
	// 1: the parent is no child.
	Depth int `json:"depth" lim:"1..ChildDepthMax"`
}

// ViewChild is a session that carries out a call of this one.
type ViewChild struct {
	// The child.
	Session string `json:"session" lim:"@session"`
	// The call. Of a child that is kept: the latest one.
	Call string `json:"call" lim:"@call"`
	// open: the call waits for it. stopping: the call has ended, and what the child used is
	// not known yet. kept: a later call may continue it.
	State string `json:"state" lim:"enum=open|stopping|kept"`
}

// ViewRun is a queued or active run.
type ViewRun struct {
	ShownRun
	// Provider of its config.
	Provider string `json:"provider" lim:"any"`
	// Model of its config.
	Model string `json:"model" lim:"any"`
	// The run's own lists: of its config, or set since.
	Overrides *Overrides `json:"overrides,omitempty"`
	// The entry of its config's fallback that is asked in their place, from 1. Absent: none.
	Fallback int `json:"fallback,omitempty" lim:"1..FallbackMax"`
	// Number of turns that it may open.
	TurnsMax int `json:"turns_max" lim:"1.."`
	// What step rules and hooks have set.
	Context json.RawMessage `json:"context,omitempty" lim:"object"`
	// Sequences of the steers that no turn has taken yet.
	Steers []uint64 `json:"steers,omitempty" lim:"..SteersMax,item=1.."`
	// Budget of its config, or as raised since.
	Budget *Budget `json:"budget,omitempty"`
	// Unix milliseconds: when the failed generation is opened again.
	RetryAt int64 `json:"retry_at,omitempty"`
	// Number of the attempt of the latest turn's generation, from 1.
	Attempt uint32 `json:"attempt,omitempty" lim:"1.."`
	// Of its config: the manifest that it uses in place of the applied one, or none.
	Workspace string `json:"workspace,omitempty" lim:"any"`
}

// ViewEffect is an open effect.
type ViewEffect struct {
	// Its name.
	Effect string `json:"effect" lim:"any"`
	// The class of the effect.
	Class Class `json:"class"`
	// The target.
	Target string `json:"target" lim:"@token"`
	// Unix milliseconds: when a wake settles the effect.
	Deadline int64 `json:"deadline"`
}

// Trouble says why effects of a target are not settled.
//
// Bridges report those of their targets in heartbeats, and views those of open
// effects.
type Trouble struct {
	// class/target
	Target string `json:"target" lim:"@target"`
	// The code of the latest failure, such as `network`, `overloaded`, `rate_limited`,
	// `auth` or `deadline_exceeded`; `lacks`, if the target is served without something
	// that it needs, such as a key; `executor`, if the executor reports the trouble;
	// `newer_effect`, if the bridge is too old for an effect and gave it back; or, in a
	// view alone, `bridge_silent` or `stalled`.
	Code string `json:"code" lim:"1..CodeBytesMax"`
	// For people. Bridges remove the secrets that they were given, and send at most 200
	// bytes.
	Detail string `json:"detail,omitempty" lim:"..DetailBytesMax"`
	// Unix milliseconds: the first failure since the last answer.
	Since int64 `json:"since,omitempty"`
	// Unix milliseconds: the next attempt, which may be under way. Absent: there is none.
	Next int64 `json:"next,omitempty"`
	// Of a view: the effects that wait for it.
	Effects []string `json:"effects,omitempty" lim:"item=any"`
}

// Codes of troubles that are not the failure of a try.
const (
	TroubleLacks    = "lacks"         // the target is served without something that it needs, such as a key
	TroubleExecutor = "executor"      // the executor reports a fault
	TroubleNewer    = "newer_effect"  // only a bridge of a newer release can read the effect
	TroubleSilent   = "bridge_silent" // the bridge that holds the effect sends no heartbeats
	TroubleStalled  = "stalled"       // the session-actor stores nothing of the session's lane, or a consumer is paused
	TroubleUnserved = "unserved"      // of a call that waits for approval: no running bridge serves its target
)

// viewItemsMax is how many of the latest items a view lists.
const viewItemsMax = 100

// View returns a projection of the state.
func (s *State) View() View {
	v := View{
		Shown: s.Shown, Status: "open", Lifecycle: s.lifecycle(), WaitsFor: s.waitsFor(), Hash: s.Hash().String(), Chain: s.Chain.String(), Rules: int(s.Rules),
		Install: s.Install.String(), Registry: s.NextRegistry().Hash().String(), Items: s.ItemCount(), Warnings: s.warnings(),
		ViewSpaces: s.viewSpaces(), Turn: s.viewTurn(), Batch: s.viewBatch(), Tools: s.viewTools(),
	}
	if s.Window != nil {
		window := *s.Window
		v.Window = &window
	}
	if s.Closed {
		v.Status = "closed"
	}
	if p := s.parent(); p != nil {
		v.Parent = &ViewParent{Session: p.Parent, Call: p.Call, Root: p.Root, Depth: p.Depth}
	}
	v.Children, v.Profile = s.viewChildren(), s.profile()
	v.Held = s.Erasure == erasureHeld
	if s.IsErased() {
		v.Status = "erased"
	}
	if o := s.Overrides; o != nil {
		v.Overrides = viewLists(o.Enable, o.Disable, o.Force)
	}
	v.Schedules = slices.Clone(s.schedules())
	if s.Host != nil {
		host := *s.Host
		v.Host = &host
	}
	if s.Last != nil {
		last := *s.Last
		v.Last = &last
	}
	if s.Run != nil {
		run := viewRun(s.Run)
		if t := s.Turn; s.turnIsRuns() {
			run.RetryAt, run.Attempt = t.RetryAt, uint32(t.Attempt)+1
		}
		v.Run = &run
	}
	for i := range s.Queue {
		v.Queue = append(v.Queue, viewRun(&s.Queue[i]))
	}
	for _, e := range s.Open() {
		v.Open = append(v.Open, ViewEffect{Effect: e.Name, Class: e.Class, Target: e.Target, Deadline: e.Deadline})
	}
	v.Transcript = slices.Clone(s.Items[max(0, len(s.Items)-viewItemsMax):])
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
	idle := s.waitsIdle()
	waits := idle
	if t.Batch == nil {
		return idle
	}
	for i := range t.Batch.Calls {
		switch c := &t.Batch.Calls[i]; {
		case c.Status == CallOpen && c.Sync > 0, s.isBeingRead(c):
			waits = "space"
		case c.Status == CallOpen && !s.isUnbridged(c):
			return "tools"
		case c.Status == CallOpen && s.isHostLoop(c):
			waits = "host_loop"
		case c.Status == CallAwaiting && waits != "host_loop":
			waits = "approval"
		case c.Status != CallOpen:
		case s.kindOf(c) == planner.ExecutorReply && (waits == idle || waits == "clock" || waits == "session"):
			waits = "reply"
		case s.isChild(c) && (waits == idle || waits == "clock"):
			waits = "session"
		case s.kindOf(c) == planner.ExecutorSleep && waits == idle:
			waits = "clock"
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
	run := ViewRun{
		ShownRun: r.ShownRun, Context: context, Provider: r.Config.Provider, Model: r.Config.Model, Fallback: int(r.Fallback),
		Overrides: viewLists(r.Config.Enable, r.Config.Disable, r.Config.Force), TurnsMax: r.Config.turnsMax(),
		Steers: seqsOf(r.Steers), Budget: r.Config.Budget, Workspace: r.Config.Workspace,
	}
	run.Used = slices.Clone(r.Used) // the fold changes it in place
	return run
}

// viewLists returns the lists of a view, nil if all are empty.
func viewLists(enable, disable, force []string) *Overrides {
	if len(enable)+len(disable)+len(force) == 0 {
		return nil
	}
	return &Overrides{Enable: enable, Disable: disable, Force: force}
}

// ViewTurn is the latest turn, and what decided about it.
type ViewTurn struct {
	// The turn.
	Effect string `json:"effect" lim:"@turn"`
	// Hash of the registry of its tools.
	Registry string `json:"registry" lim:"@hash"`
	// Fingerprint (BLAKE2b-256) of the offered tools. Absent until its generation is
	// opened.
	Toolset string `json:"toolset,omitempty" lim:"@hash"`
	// Where its tools come from. Absent until its generation is opened.
	Base string `json:"base,omitempty" lim:"enum=profile|step|run|catalog"`
	// The profile, if that is the base.
	Profile string `json:"profile,omitempty" lim:"any"`
	// If the profile is the base: what chose it, or that there is none.
	ProfileWhy string `json:"profile_why,omitempty" lim:"any"`
	// The choice of a step rule or a hook. Absent: there are neither rules nor a hook.
	Step *ViewStep `json:"step,omitempty"`

	// The workspace that the turn uses, with its run's choices while the run is active.
	Workspace *ViewSpace `json:"workspace,omitempty"`

	// What the model is shown before the transcript. Absent: at most the system text of
	// the step or the config.
	Prompt *ViewPrompt `json:"prompt,omitempty"`
}

// ViewStep is the decision of a step rule or a step hook about the turn.
type ViewStep struct {
	// The number of the step in its run, from 0.
	Step int `json:"step" lim:"0.."`
	// Source of the choice that applies. Absent: none does.
	From StepSource `json:"from,omitempty"`
	// With from profile: the profile of the rules.
	Profile string `json:"profile,omitempty" lim:"any"`
	// The rule that applies, from 0.
	Rule *int `json:"rule,omitempty" lim:"0.."`
	// Whether the hook was called and has not answered.
	Open bool `json:"open,omitempty"`
	// Why the hook's answer does not count.
	Code string `json:"code,omitempty" lim:"any"`
	// Detail of the code.
	Detail string `json:"detail,omitempty" lim:"..DetailBytesMax"`
	// Rules whose when could not be evaluated, and so did not hold.
	Failed []ViewRuleFailed `json:"failed,omitempty" lim:"..planner.StepRulesMax"`
}

// ViewRuleFailed is a rule that could not be evaluated.
type ViewRuleFailed struct {
	// The rule, from 0.
	Rule int `json:"rule" lim:"0.."`
	// Why.
	Code string `json:"code" lim:"enum=when_failed|when_too_costly"`
}

// ViewBatch is the batch of the latest turn, as a host loop needs it.
type ViewBatch struct {
	// The turn.
	Batch string `json:"batch" lim:"@turn"`
	// Sequence of the ToolCallsObserved, which holds every call's arguments.
	Seq      uint64 `json:"seq" lim:"1.."`
	PlanHash string `json:"plan_hash" lim:"@hash"`
	// The plan: positions in calls that may run concurrently, group by group.
	Groups [][]int `json:"groups" lim:"item=item=0.."`
	// Index of the open group; the number of groups when all are done.
	Group int `json:"group" lim:"0.."`
	// The calls, in the model's order.
	Calls []ViewCall `json:"calls" lim:"1..CallsMax"`
	// Number of calls beyond the 64 that may run.
	Excess int `json:"excess,omitempty" lim:"0.."`
}

// ViewCall is one call of the batch. Code and Detail are of its result; while a
// person must decide over the call, they say why it would not run if it was approved
// now. The fields after Detail are set while a person must decide, or a host loop
// must run the call.
type ViewCall struct {
	// The call's name, whether it was opened or not.
	Effect string `json:"effect" lim:"@call"`
	// Absent: the registry has no such tool.
	ToolID string `json:"tool_id,omitempty" lim:"@tool_id"`
	// The tool's name as the model wrote it.
	ToolName string `json:"tool_name" lim:"any"`
	// Status of the call.
	Status CallStatus `json:"status"`
	// Code of a result that the session gave.
	Code string `json:"code,omitempty" lim:"any"`
	// Detail of the result, or of the reason.
	Detail string `json:"detail,omitempty" lim:"..DetailBytesMax"`

	// Of a call without a result that needs no bridge: the kind of its executor.
	Kind string `json:"kind,omitempty" lim:"enum=host_loop|reply|sleep|session"`
	// Of kind reply: who may answer.
	By string `json:"by,omitempty" lim:"enum=approvers|clients"`
	// Of kind session: the session whose run carries the call out, while it is open.
	Child string `json:"child,omitempty" lim:"@session"`
	// Set if a host loop must still carry the call out: the target of its executor.
	HostLoop string `json:"host_loop,omitempty" lim:"@token"`
	// JSON text, for a call that awaits approval, a call without a result that needs
	// no bridge, or a bridge's call that is not open yet. Absent if the arguments of the calls up to
	// this one exceed 128 KiB together: see seq.
	Arguments string `json:"arguments,omitempty" lim:"any"`
	// Of a call that awaits approval, or an answer: the decision or reply repeats it. Absent while its pack is
	// being read: nobody can decide yet.
	ArgsHash string `json:"args_hash,omitempty" lim:"@hash"`
	// Deadline of the approval, or of a call without a bridge: Unix milliseconds. The latter
	// is absent until its group has begun. A call of kind sleep ends then.
	Deadline int64 `json:"deadline,omitempty"`
	// Of a host loop's call: <session>.<effect>, the same at every start.
	IdempotencyKey string `json:"idempotency_key,omitempty" lim:"any"`
	// Of a host loop's call: whether it may run twice; false if absent.
	RetrySafe bool `json:"retry_safe,omitempty"`

	// Of a call that awaits approval: the pack that it would enable.
	Pack *ApprovalPack `json:"pack,omitempty"`
}

// viewArgumentsBytesMax limits the arguments in a view: an answer must fit a
// message.
const viewArgumentsBytesMax = 128 << 10

// ViewTool is whether and why the latest turn offered a tool.
type ViewTool struct {
	ToolID string `json:"tool_id" lim:"@tool_id"`
	// The name under which it was offered, else its own.
	ToolName string `json:"tool_name" lim:"@tool_name"`
	// Whether the latest turn offered it.
	Offered bool `json:"offered"`
	// offered, or the step that removed it, in words.
	Why string `json:"why" lim:"any"`
	// Its place among the offered tools, from 1.
	Place int `json:"place,omitempty" lim:"1.."`
}

func (s *State) viewTurn() *ViewTurn {
	t := s.Turn
	if t == nil {
		return nil
	}
	v := &ViewTurn{Effect: turnName(t.Run, t.Number), Registry: s.turnRegistry.Hash().String()}
	if step := t.Step; step != nil {
		v.Step = &ViewStep{
			Step: int(t.Number) - 1, From: step.From, Profile: step.Profile, Open: step.Open, Code: step.Code, Detail: step.Detail.String(),
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
	if t.RunMS == 0 {
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
			Effect: callName(t.Run, t.Number, i), ToolID: c.ToolID, ToolName: c.ToolName, Status: c.Status, Code: c.Code, Detail: c.Detail.String(),
		}
		if !c.done() && s.isUnbridged(c) {
			vc.Kind = s.kindOf(c)
		}
		if !c.done() && s.needsNobody(c) {
			vc.Deadline = c.Deadline
			if vc.By = s.tool(c.ToolID).Executor.By; vc.By != "" && c.Status == CallOpen {
				vc.ArgsHash = c.argsHash()
			}
		}
		if !c.done() && s.isHostLoop(c) {
			tool := s.tool(c.ToolID)
			vc.HostLoop, vc.Deadline, vc.RetrySafe = tool.Executor.Target, c.Deadline, tool.RetrySafe
			vc.IdempotencyKey = s.Session + "." + vc.Effect
		}
		if c.Child != nil {
			vc.Child, vc.Deadline = c.Child.Session, c.Deadline
		}
		if a := c.Approval; a != nil && !s.isBeingRead(c) {
			vc.ArgsHash, vc.Deadline = a.ArgsHash.String(), a.Deadline
			vc.Code, vc.Detail = s.whyNotNow(c)
		}
		// A settlement of the batch names every call that was not opened.
		if c.Status == CallWaiting || vc.Kind != "" || vc.ArgsHash != "" {
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
	if t == nil || t.RunMS == 0 {
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
		return text + " (rule " + strconv.Itoa(step.Rule) + " of profile " + sentence.Quoted(step.Profile) + ")"
	}
	return text + " (rule " + strconv.Itoa(step.Rule) + " of the run)"
}
