package session

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// startBatch checks each observed call against the toolset that its turn offered,
// plans the calls that may run, and opens the first group. Every call gets a
// result; a rejected call gets it at once. limited means that the output limit
// ended the answer, and may have cut its calls.
func (s *State) startBatch(observed []ObservedCall, limited bool) {
	t := s.Turn
	kept := observed[:min(len(observed), CallsMax)]
	b := &Batch{Calls: make([]Call, len(kept)), Excess: len(observed) - len(kept), Seq: s.Seq}
	t.Batch = b
	planned := make([]planner.PlanCall, len(kept))
	checker := planner.Checker{Floor: s.install.floor, Root: s.hostRoot()}
	var loading []string
	for i, o := range kept {
		c := &b.Calls[i]
		c.ToolName, c.ProviderCallID = clip(o.ToolName, NameBytesMax), o.ProviderCallID
		c.Arguments, c.Cut = o.Arguments, o.ArgumentsBlob != nil
		plan, rejection := checker.Check(s.turnRegistry, &t.Toolset, o.planned())
		planned[i], c.ToolID = plan, plan.ToolID
		if limited && o.isCut(i == len(observed)-1) && (rejection.OK() || rejection.Code == planner.InvalidArguments) {
			rejection = planner.Rejection{Code: planner.InvalidArguments, Detail: cutByLimit}
		}
		if rejection.OK() {
			rejection = s.skillFault(c.ToolID, c.Arguments, &loading)
		}
		if !rejection.OK() {
			planned[i].Rejected, planned[i].Key = true, planner.Key{}
			s.rejectCall(i, rejection)
			continue
		}
		c.Status = CallWaiting
		if c.Arguments == "" {
			c.Arguments = "{}"
		}
		s.admitCall(i, &planned[i])
	}
	b.Plan = planner.Schedule(planned)
	b.PlanHash = b.Plan.Hash()
	s.LastPlan = b.PlanHash
	s.notifyApprovals()
	s.openGroup()
}

// cutByLimit is the detail for a call that the output limit cut.
const cutByLimit = "the output limit cut the arguments off: call again with shorter ones, or in several calls"

// isCut reports whether the output limit cut the call of an answer that it ended:
// the arguments are no JSON, or nothing had come of those of the last call.
func (o *ObservedCall) isCut(last bool) bool {
	if o.ArgumentsBlob != nil {
		return false
	}
	if strings.TrimSpace(o.Arguments) == "" {
		return last
	}
	return !json.Valid([]byte(o.Arguments))
}

// planned returns the call in the planner's form.
func (o *ObservedCall) planned() planner.ObservedCall {
	call := planner.ObservedCall{ToolName: o.ToolName, Arguments: o.Arguments}
	if o.ArgumentsBlob != nil {
		call.BlobSize = max(1, o.Size)
	}
	return call
}

// rejectCall gives call i a result that the session makes.
func (s *State) rejectCall(i int, why planner.Rejection) {
	c := &s.Turn.Batch.Calls[i]
	c.Status, c.Code, c.Detail, c.Seq = CallStatus(why.Status()), string(why.Code), clip(why.Detail, DetailBytesMax), s.Seq
	s.forgetPack(c)
	s.keepArguments(c)
	s.callSettled(i, nil)
	notify(s, NoticeToolRejected, ToolRejected{
		Effect: callName(s.Turn.Run, s.Turn.Number, i), ToolName: c.ToolName, Code: c.Code, Detail: c.Detail,
	})
}

// openGroup opens the calls of the current group that are still waiting, else those
// of the first later group that has some. If none has, the batch is complete and
// the next turn starts.
func (s *State) openGroup() {
	b := s.Turn.Batch
	for ; b.Group < len(b.Plan.Groups); b.Group++ {
		open, any := false, false
		var opened [CallsMax]bool
		for _, i := range b.Plan.Groups[b.Group] {
			if b.Calls[i].Status == CallWaiting && !s.holds(HeldGroup) && s.openCall(i) {
				opened[i], any = true, true
			}
			open = open || !b.Calls[i].done()
		}
		if any {
			s.notifyPlanned(&opened)
		}
		if open {
			return
		}
	}
	s.completeBatch()
}

// notifyPlanned announces the calls of the current group to a host loop. It does so
// for the first group if the batch has any call for a host loop, and for a later
// group if that group has one. Calls that open later, after an approval or a
// resume, are announced then. No call is announced twice.
func (s *State) notifyPlanned(opened *[CallsMax]bool) {
	t := s.Turn
	b, waits, begun := t.Batch, false, false
	var calls []string
	for i := range b.Calls {
		c := &b.Calls[i]
		begun = begun || c.RunMS > 0 && !opened[i]
		if c.done() || !s.isHostLoop(c) {
			continue
		}
		waits = true
		if opened[i] {
			calls = append(calls, callName(t.Run, t.Number, i))
		}
	}
	if len(calls) == 0 && (!waits || begun || b.Group > 0) {
		return
	}
	notify(s, NoticeCallsPlanned, CallsPlanned{
		Batch: turnName(t.Run, t.Number), PlanHash: b.PlanHash.String(), Groups: b.Plan.Groups, Group: b.Group, Calls: append([]string{}, calls...),
	})
}

// openCall opens call i unless it is denied now. It reports whether the call is
// open.
func (s *State) openCall(i int) bool {
	t := s.Turn
	c := &t.Batch.Calls[i]
	tool, _ := s.turnRegistry.Lookup(c.ToolID)
	if why := s.deniedNow(c, tool); !why.OK() {
		s.rejectCall(i, why)
		return false
	}
	if s.isEnable(c) {
		if status, code, detail := s.enableFault(c.Arguments); code != "" {
			s.endCall(i, status, code, detail)
			return false
		}
	}
	deadline, runMS := callDeadline(&s.Run.Config, s.turnRegistry.Tool(tool).DeadlineMS)
	c.Status, c.At, c.Deadline, c.RunMS = CallOpen, s.Clock, s.Clock+deadline, runMS
	c.Host = s.Host // replaced when it changes, never written to
	switch {
	case s.isEnable(c):
		c.Host = nil
		s.enableNow(i)
	case strings.HasPrefix(c.ToolID, extensionsPrefix) && s.turnSpace().Grants == nil:
		s.turnSpace().Grants = s.usedGrants()
	}
	return true
}

// deniedNow returns why a call that was offered and planned may not be opened now.
// The first group is checked too: while the model was thinking, a tool may have
// been disabled, the host session may have ended, or the registry may have been
// replaced. A person's approval overrides none of these checks.
func (s *State) deniedNow(c *Call, tool planner.ToolIndex) planner.Rejection {
	why := planner.Recheck(s.turnRegistry, s.NextRegistry(), tool, s.overrides(), s.plannerFacts())
	if why.OK() && s.decide(tool, c.Arguments) == planner.Deny {
		return policyDenies()
	}
	return why
}

func policyDenies() planner.Rejection {
	return planner.Rejection{Code: planner.ToolDenied, Detail: planner.PolicyDenies}
}

// callDeadline returns how long a call may be open, and how long one start of it
// may take. A tool's own run time extends the default, but never a deadline of the
// config.
func callDeadline(c *RunConfig, toolMS int64) (deadline, runMS int64) {
	runMS = cmp.Or(toolMS, RunDefaultMS)
	if c.DeadlinesMS != nil && c.DeadlinesMS.Call > 0 {
		return c.DeadlinesMS.Call, min(runMS, c.DeadlinesMS.Call/2)
	}
	return max(DeadlineDefaultMS, 2*runMS), runMS
}

// calls is the folder of the effects of class tool.
type calls struct{ ofTurn }

func (calls) decode(_ string, data codec.Raw) (any, string, *refusal) {
	b := &ToolCallSettled{}
	bad := decodeContent(data, "output", b)
	return b, b.Effect, bad
}

func (calls) settle(s *State, p Place, b *settlement) *refusal {
	i, call, bad := int(p.n), b.body.(*ToolCallSettled), b.bad
	if bad := s.hostLoopFault(i, call); bad != nil {
		return bad
	}
	if bad == nil {
		bad = s.callFault(call)
	}
	s.Turn.Batch.Calls[i].Settled = settlementHash(b.typ, b.data)
	if bad != nil {
		s.endCall(i, CallFailed, CodeBadSettlement, bad.detail)
	} else {
		s.takeResult(i, call)
	}
	s.closeGroup()
	return nil
}

// takeResult gives call i the result, and the session the host session, in the event
// being folded.
func (s *State) takeResult(i int, b *ToolCallSettled) {
	s.Turn.Batch.Calls[i].Result = b.result()
	s.addToWindow(b.shownBytes())
	if b.HostSession != nil && !s.endsAnother(b.HostSession) {
		s.setHost(*b.HostSession)
	}
	s.skillLoaded(i, b.Status)
	s.endCall(i, CallStatus(b.Status), "", "")
	s.notifyRefused(i, b)
	s.callSettled(i, b)
}

// result identifies a result: the BLAKE2b-256 of its status and output.
func (b *ToolCallSettled) result() codec.Hash {
	switch o := b.Output; {
	case o == nil || o.isEmpty():
		return codec.Digest(append([]byte(b.Status), 0))
	case o.Text != "": // text alone: most outputs, which need no encoding
		return resultHash(b.Status, 't', o.Text)
	default:
		return resultHash(b.Status, 'c', encode(o))
	}
}

// resultHash returns the BLAKE2b-256 of a status and an output of one kind.
func resultHash[O string | []byte](status string, kind byte, output O) codec.Hash {
	var room [hashRoom]byte
	return codec.Digest(append(append(append(room[:0], status...), 0, kind), output...))
}

func (s *State) callFault(b *ToolCallSettled) *refusal {
	if bad := resultFault(b); bad != nil {
		return bad
	}
	if b.PlanHash != "" && !s.Turn.Batch.PlanHash.Is(b.PlanHash) {
		return refuse(RejectInvalidData, "plan_hash: is not this batch's")
	}
	return nil
}

func resultFault(b *ToolCallSettled) *refusal {
	switch CallStatus(b.Status) {
	case CallSucceeded:
		if b.Error != nil {
			return refuse(RejectInvalidData, "error: the status is succeeded")
		}
	case CallFailed, CallCancelled, CallUnknown:
	default:
		return refuse(RejectInvalidData, "status: succeeded, failed, cancelled or outcome_unknown, not "+quoted(b.Status))
	}
	if b.DurationMS < 0 || b.DurationMS > NumberMax {
		return refuse(RejectInvalidData, "duration_ms: "+numberRange)
	}
	return cmp.Or(contentFault("output", b.Output, true), hostFault(b.HostSession), faultFault(b.Error))
}

// endCall gives call i its result. With a code, the session makes the result; else
// it is in the event being folded.
func (s *State) endCall(i int, status CallStatus, code, detail string) {
	c := &s.Turn.Batch.Calls[i]
	if s.isBeingRead(c) {
		s.endSyncOf(c, CodeCancelled, "the call that it was read for has ended")
	}
	c.Status, c.Code, c.Detail, c.Seq = status, code, clip(detail, DetailBytesMax), s.Seq
	c.Host, c.Approval = nil, nil
	s.forgetPack(c)
	s.keepArguments(c)
	if code != "" {
		s.callSettled(i, nil)
	}
}

// closeGroup starts the next group once every call of the current one has a result,
// failed or not.
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
	s.openGroup()
}

func (s *State) completeBatch() {
	s.fileResults()
	s.startTurn()
}

// fileResults puts the results into the transcript, in the order of the calls.
func (s *State) fileResults() {
	b := s.Turn.Batch
	s.rememberCalls(b)
	done := &DoneBatch{Results: make([]codec.Hash, len(b.Calls)), Run: s.Turn.Run, Turn: s.Turn.Number}
	s.Done = done
	for i := range b.Calls {
		c := &b.Calls[i]
		done.Results[i] = c.Result
		s.appendItem(Item{Role: RoleTool, Seq: c.Seq, Call: i, Code: c.Code, Detail: c.Detail, Edit: c.Edit}, 0) // the result was counted when it was settled
	}
	for i := range b.Excess {
		s.appendItem(Item{Role: RoleTool, Seq: b.Seq, Call: len(b.Calls) + i, Code: CodeLimitExceeded,
			Detail: "a batch runs at most " + strconv.Itoa(CallsMax) + " calls: make fewer at a time; " + strconv.Itoa(b.Excess) + " of " + strconv.Itoa(len(b.Calls)+b.Excess) + " were refused"}, 0)
	}
}
