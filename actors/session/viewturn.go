package session

import (
	"strconv"

	"github.com/refold/refold/planner"
)

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
