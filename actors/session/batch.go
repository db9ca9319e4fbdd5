package session

import (
	"strconv"

	"github.com/refold/refold/planner"
)

// startBatch checks each observed call against the set that was offered in
// the turn that produced it, plans those that may run, and asks the first
// group. Every call will have a result, rejected ones have it at once.
func (s *State) startBatch(observed []ObservedCall) {
	t := s.Turn
	kept := observed[:min(len(observed), CallsMax)]
	b := &Batch{Calls: make([]Call, len(kept)), Excess: len(observed) - len(kept), Seq: s.Seq}
	t.Batch = b
	planned := make([]planner.PlanCall, len(kept))
	for i, o := range kept {
		c := &b.Calls[i]
		c.ToolName, c.ProviderCallID = clip(o.ToolName, NameBytesMax), o.ProviderCallID
		plan, rejection := planner.Check(s.install.Registry, &t.Toolset, planner.ObservedCall{ToolName: o.ToolName, Arguments: o.Arguments})
		planned[i], c.ToolID = plan, plan.ToolID
		if !rejection.OK() {
			s.rejectCall(i, rejection)
			continue
		}
		c.Status, c.Arguments = CallWaiting, o.Arguments
		if c.Arguments == "" {
			c.Arguments = "{}"
		}
	}
	b.Plan = planner.Schedule(planned)
	b.PlanHash = b.Plan.Hash()
	s.LastPlan = b.PlanHash
	s.askGroup()
}

// rejectCall gives call i a result that the session itself gives.
func (s *State) rejectCall(i int, why planner.Rejection) {
	c := &s.Turn.Batch.Calls[i]
	c.Status, c.Code, c.Detail, c.Seq = CallStatus(why.Status()), string(why.Code), clip(why.Detail, DetailBytesMax), s.Seq
	c.Arguments = ""
	s.say(NoticeToolRejected, ToolRejected{
		Effect: callName(s.Turn.Run, s.Turn.Number, i), ToolName: c.ToolName, Code: c.Code, Detail: c.Detail,
	})
}

// askGroup asks the calls of the open group, or of the first later one that
// has something left to ask; when none has, the batch is complete and the
// next turn starts.
func (s *State) askGroup() {
	b := s.Turn.Batch
	for ; b.Group < len(b.Plan.Groups); b.Group++ {
		open := false
		for _, i := range b.Plan.Groups[b.Group] {
			if s.askCall(i) {
				open = true
			}
		}
		if open {
			return
		}
	}
	s.completeBatch()
}

// askCall asks call i, after checking again what may have changed since it
// was planned. It reports whether the call is open now.
func (s *State) askCall(i int) bool {
	t := s.Turn
	c := &t.Batch.Calls[i]
	tool, _ := s.install.Registry.Lookup(c.ToolID)
	if t.Batch.Group > 0 {
		if why := planner.Recheck(s.install.Registry, tool, s.toolRequest(), s.plannerFacts()); !why.OK() {
			s.rejectCall(i, why)
			return false
		}
	}
	deadline, runMS := callDeadline(&s.Run.Config, s.install.Registry.Tool(tool).DeadlineMS)
	c.Status, c.At, c.Deadline, c.RunMS = CallOpen, s.Clock, s.Clock+deadline, runMS
	c.Host = s.Host // which is replaced when it changes, never written to
	return true
}

// callDeadline returns how long a call may be open, and what one start of it
// may take. A tool's own run time stretches the default, never a deadline
// that the config gives.
func callDeadline(c *RunConfig, toolMS int64) (deadline, runMS int64) {
	runMS = RunDefaultMS
	if toolMS > 0 {
		runMS = toolMS
	}
	if c.DeadlinesMS != nil && c.DeadlinesMS.Call > 0 {
		return c.DeadlinesMS.Call, min(runMS, c.DeadlinesMS.Call/2)
	}
	return max(DeadlineDefaultMS, 2*runMS), runMS
}

// settleCall folds a settlement of open call i.
func (s *State) settleCall(i int, b *settlement) {
	bad := b.bad
	if bad == nil {
		bad = s.callFault(b.call)
	}
	s.Turn.Batch.Calls[i].Settled = b.hash
	if bad != nil {
		s.endCall(i, CallFailed, CodeBadSettlement, bad.detail)
	} else {
		if b.call.HostSession != nil {
			s.setHost(*b.call.HostSession)
		}
		s.endCall(i, CallStatus(b.call.Status), "", "")
	}
	s.closeGroup()
}

// callFault says what is wrong with the settlement of a call of this batch.
func (s *State) callFault(b *ToolCallSettled) *refusal {
	switch CallStatus(b.Status) {
	case CallSucceeded:
		if b.Error != nil {
			return refuse(RejectInvalidData, "error: the status is succeeded")
		}
	case CallFailed, CallCancelled, CallUnknown:
	default:
		return refuse(RejectInvalidData, "status: succeeded, failed, cancelled or outcome_unknown, not "+quoted(b.Status))
	}
	if b.PlanHash != "" && b.PlanHash != s.Turn.Batch.PlanHash.String() {
		return refuse(RejectInvalidData, "plan_hash: is not this batch's")
	}
	if b.Output != nil {
		if bad := contentFault("output", b.Output, true); bad != nil {
			return bad
		}
	}
	if b.HostSession != nil {
		if bad := hostFault(b.HostSession); bad != nil {
			return bad
		}
	}
	return faultFault(b.Error)
}

// endCall gives call i its result. With a code, the session itself gives it;
// else the event being folded holds it.
func (s *State) endCall(i int, status CallStatus, code, detail string) {
	c := &s.Turn.Batch.Calls[i]
	c.Status, c.Code, c.Detail, c.Seq = status, code, clip(detail, DetailBytesMax), s.Seq
	c.Arguments, c.Host = "", nil
}

// closeGroup goes on to the next group when every call of the open one has a
// result, failed ones included.
func (s *State) closeGroup() {
	b := s.Turn.Batch
	if b.Group >= len(b.Plan.Groups) {
		return
	}
	for _, i := range b.Plan.Groups[b.Group] {
		if !b.Calls[i].done() {
			return
		}
	}
	b.Group++
	s.askGroup()
}

// completeBatch puts the results into the transcript, in the order of the
// calls, and starts the next turn.
func (s *State) completeBatch() {
	b := s.Turn.Batch
	for i := range b.Calls {
		c := &b.Calls[i]
		s.appendItem(Item{Role: RoleTool, Seq: c.Seq, Call: i, Code: c.Code, Detail: c.Detail})
	}
	for i := range b.Excess {
		s.appendItem(Item{Role: RoleTool, Seq: b.Seq, Call: len(b.Calls) + i, Code: CodeLimitExceeded,
			Detail: "a batch runs at most " + strconv.Itoa(CallsMax) + " calls: make fewer at a time"})
	}
	s.startTurn()
}
