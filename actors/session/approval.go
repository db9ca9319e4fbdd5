package session

import (
	"slices"
	"strconv"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// admitCall decides whether an accepted call runs, waits for a person, or is
// refused. In a run that is being interrupted no call runs.
func (s *State) admitCall(i int, planned *planner.PlanCall) {
	c := &s.Turn.Batch.Calls[i]
	if s.Run.Lifecycle == Interrupting {
		planned.Rejected = true
		s.endCall(i, CallCancelled, CodeCancelled, detailNotOpened)
		return
	}
	tool, _ := s.turnRegistry.Lookup(c.ToolID)
	if s.isEnable(c) {
		if status, code, detail := s.enableFault(c.Arguments); code != "" {
			planned.Rejected, planned.Key = true, planner.Key{}
			s.endCall(i, status, code, detail)
			return
		}
	}
	why := policyDenies()
	switch s.decide(tool, c.Arguments) {
	case planner.Allow: // checked again when the call is opened
		return
	case planner.Ask:
		if why = s.deniedNow(c, tool); why.OK() {
			// The arguments may be edited, and an edit must not change the plan.
			planned.Key = planner.Key{Bare: planned.Key.Bare}
			c.Status, c.Approval = CallAwaiting, &Approval{
				ArgsHash: codec.Sum([]byte(c.Arguments)), Deadline: s.Clock + approvalDeadline(&s.Run.Config),
			}
			if s.isEnable(c) {
				s.readForApproval(i)
			}
			return
		}
	}
	planned.Rejected, planned.Key = true, planner.Key{}
	s.rejectCall(i, why)
}

// decide returns the approval decision for a call with these arguments: the
// policy's, or else the tool's own.
func (s *State) decide(tool planner.ToolIndex, arguments string) planner.Decision {
	approvals := s.install.approvals
	if approvals.AllowsAll(s.turnRegistry, tool) {
		return planner.Allow
	}
	return approvals.Decide(s.turnRegistry, tool, planner.ApprovalFacts{StepFacts: s.stepFacts(nil), Arguments: arguments})
}

// approvalDeadline returns how long a call waits for a person, in milliseconds.
func approvalDeadline(c *RunConfig) int64 {
	if c.DeadlinesMS != nil && c.DeadlinesMS.Approval > 0 {
		return c.DeadlinesMS.Approval
	}
	return ApprovalDefaultMS
}

// notifyApprovals requests the approvals of the whole batch, except those of packs
// that are still being read.
func (s *State) notifyApprovals() {
	for i := range s.Turn.Batch.Calls {
		if c := &s.Turn.Batch.Calls[i]; c.Status == CallAwaiting && !s.isBeingRead(c) {
			s.notifyApproval(i)
		}
	}
}

// notifyApproval requests the approval of call i. Its deadline counts from here: a
// pack may have been read before.
func (s *State) notifyApproval(i int) {
	t := s.Turn
	c := &t.Batch.Calls[i]
	c.Approval.Deadline = s.Clock + approvalDeadline(&s.Run.Config)
	d := ApprovalRequested{
		Call: callName(t.Run, t.Number, i), ToolID: c.ToolID, ToolName: c.ToolName, Arguments: c.Arguments,
		ArgsHash: c.Approval.ArgsHash.String(), Deadline: c.Approval.Deadline, Grant: s.approvalGrant(c), Pack: s.approvalPack(c),
	}
	if d.Pack != nil && d.Pack.bytes()+jsonTextBytesMax(c.Arguments) > NoticeBytesMax-noticeFixedBytesMax {
		d.Pack.cut()
	}
	if jsonTextBytesMax(c.Arguments) > NoticeBytesMax-noticeFixedBytesMax {
		d.Arguments, d.ArgumentsSeq = "", t.Batch.Seq
	}
	notify(s, NoticeApprovalRequested, d)
}

// approvalDecided lets a call run, perhaps with other arguments, or refuses it.
func (s *State) approvalDecided(b *ApprovalDecided) *refusal {
	i, bad := s.awaiting(b)
	if bad != nil {
		return bad
	}
	t := s.Turn
	c := &t.Batch.Calls[i]
	switch {
	case b.Decision != DecisionApprove && b.Decision != DecisionDeny:
		return refuse(RejectInvalidData, "decision: approve or deny, not "+quoted(b.Decision))
	case len(b.Reason) > DetailBytesMax:
		return refuse(RejectLimitExceeded, "reason: at most "+strconv.Itoa(DetailBytesMax)+" bytes")
	case b.Manifest != "" && !isHash(b.Manifest):
		return refuse(RejectInvalidData, "manifest: is 64 lower-case hex digits")
	case b.Decision == DecisionDeny && b.Arguments != "":
		return refuse(RejectInvalidData, "arguments: belong to decision approve")
	}
	if b.Decision == DecisionDeny {
		detail := "a person decided that the call does not run"
		if b.Reason != "" {
			detail += ": " + b.Reason
		}
		s.endCall(i, CallIgnored, CodeApprovalDenied, detail)
		s.closeGroup()
		return nil
	}
	if bad := s.packFault(c, b); bad != nil {
		return bad
	}
	if b.Arguments != "" && b.Arguments != c.Arguments {
		if bad := s.editFault(c, b.Arguments); bad != nil {
			return bad
		}
		c.Arguments, c.Edit = b.Arguments, s.Seq
		s.addToWindow(int64(len(b.Arguments))) // the result shows the edited arguments
	}
	c.Status, c.Approval = CallWaiting, nil
	if t.Batch.Group < len(t.Batch.Plan.Groups) && s.isInOpenGroup(i) {
		s.openGroup()
	}
	return nil
}

// editFault returns why call c may not run with other arguments: its schema or the
// policy refuses them, or the batch's arguments together would exceed the size of
// one event. A state at its limits has no room for more.
func (s *State) editFault(c *Call, arguments string) *refusal {
	t := s.Turn
	tool, _ := s.turnRegistry.Lookup(c.ToolID)
	if why := planner.CheckArguments(s.turnRegistry, &t.Toolset, tool, arguments); !why.OK() {
		return refuse(RejectInvalidData, "arguments: "+why.Detail)
	}
	loading := s.otherSkillsLoading(c)
	if why := s.skillFault(c.ToolID, arguments, &loading); !why.OK() {
		return refuse(RejectInvalidData, "arguments: "+why.Detail)
	}
	if s.decide(tool, arguments) == planner.Deny {
		return refuse(RejectNotPermitted, "arguments: the install policy denies the call with them")
	}
	size := len(arguments) - len(c.Arguments)
	for i := range t.Batch.Calls {
		size += len(t.Batch.Calls[i].Arguments)
	}
	if size > EventBytesMax {
		return refuse(RejectLimitExceeded, "arguments: those of all calls without a result are at most "+
			strconv.Itoa(EventBytesMax)+" bytes together: deny the call, or let others end first")
	}
	return nil
}

// awaiting returns the call that waits for this decision.
func (s *State) awaiting(b *ApprovalDecided) (int, *refusal) {
	p, ok := parseName(b.Call)
	t := s.Turn
	switch {
	case !ok || p.kind != kindTool:
		return 0, refuse(RejectUnknownCall, "call: is the name of a call, r1t2c0, not "+quoted(b.Call))
	case t == nil || p.run > t.Run || p.run == t.Run && p.turn > t.Number:
		return 0, refuse(RejectUnknownCall, "this session has made no call "+b.Call)
	case p.run < t.Run || p.turn < t.Number:
		return 0, refuse(RejectApprovalStale, b.Call+" was over long before")
	case t.Batch == nil || int(p.n) >= len(t.Batch.Calls):
		return 0, refuse(RejectUnknownCall, "this session has made no call "+b.Call)
	}
	c := &t.Batch.Calls[p.n]
	switch {
	case c.Status != CallAwaiting:
		return 0, refuse(RejectApprovalStale, b.Call+" does not wait for approval: it is "+string(c.Status))
	case b.ArgsHash != c.Approval.ArgsHash.String():
		return 0, refuse(RejectApprovalStale, "args_hash: the call waits with "+c.Approval.ArgsHash.String())
	}
	return int(p.n), nil
}

// whyNotNow returns why a call that waits for a person would be refused if it was
// opened now, "" if it would not.
func (s *State) whyNotNow(c *Call) (code, detail string) {
	tool, _ := s.turnRegistry.Lookup(c.ToolID)
	if why := s.deniedNow(c, tool); !why.OK() {
		return string(why.Code), clip(why.Detail, DetailBytesMax)
	}
	if s.isEnable(c) {
		status, code, detail := s.enableFault(c.Arguments)
		if status == CallFailed {
			return code, clip(detail, DetailBytesMax)
		}
	}
	return "", ""
}

// isInOpenGroup reports whether call i is in the group that is open.
func (s *State) isInOpenGroup(i int) bool {
	b := s.Turn.Batch
	return slices.Contains(b.Plan.Groups[b.Group], i)
}
