package session

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/sentence"
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
		c.ToolName, c.ProviderCallID = sentence.Clip(o.ToolName, NameBytesMax), o.ProviderCallID
		c.Arguments, c.Cut = o.Arguments, o.ArgumentsBlob != nil
		plan, rejection := checker.Check(s.turnRegistry, &t.Toolset, o.planned())
		detail := sentence.Own(rejection.Detail)
		planned[i], c.ToolID = plan, plan.ToolID
		if limited && o.isCut(i == len(observed)-1) && (rejection.OK() || rejection.Code == planner.InvalidArguments) {
			rejection, detail = planner.Rejection{Code: planner.InvalidArguments}, sentence.Say(sentence.ArgumentsCut)
		}
		if rejection.OK() {
			rejection = s.waitFault(c.ToolID, c.Arguments, &checker)
			detail = sentence.Own(rejection.Detail)
		}
		if rejection.OK() {
			rejection = s.skillFault(c.ToolID, c.Arguments, &loading)
			detail = sentence.Own(rejection.Detail)
		}
		if !rejection.OK() {
			planned[i].Rejected, planned[i].Key = true, planner.Key{}
			s.rejectCall(i, rejection, detail)
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
func (s *State) rejectCall(i int, why planner.Rejection, detail sentence.Text) {
	c := &s.Turn.Batch.Calls[i]
	c.Status, c.Code, c.Detail, c.Seq = CallStatus(why.Status()), string(why.Code), detail, s.Seq
	s.forgetPack(c)
	s.keepArguments(c)
	s.callSettled(i, nil)
	notify(s, NoticeToolRejected, ToolRejected{
		Effect: callName(s.Turn.Run, s.Turn.Number, i), ToolName: c.ToolName, Code: c.Code, Detail: c.Detail.String(),
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
		s.rejectCall(i, why, sentence.Own(why.Detail))
		return false
	}
	if s.isEnable(c) {
		if status, code, detail := s.enableFault(c.Arguments); code != "" {
			s.endCall(i, status, code, detail)
			return false
		}
	}
	deadline, runMS := callDeadline(&s.Run.Config, s.turnRegistry.Tool(tool).DeadlineMS)
	switch {
	case s.needsNobody(c):
		deadline, runMS = s.waitDeadline(c), 1
	case s.isChild(c):
		deadline = s.Run.Config.childDeadline()
	}
	c.Status, c.At, c.Deadline, c.RunMS = CallOpen, s.Clock, s.Clock+deadline, runMS
	c.Host = s.Host // replaced when it changes, never written to
	switch {
	case s.isChild(c):
		c.Host = nil
		return s.openChild(i)
	case s.isEnable(c):
		c.Host = nil
		s.enableNow(i)
	case s.needsNobody(c):
		c.Host = nil
		if s.kindOf(c) == planner.ExecutorReply {
			s.replyRequested(i)
		}
	case strings.HasPrefix(c.ToolID, extensionsPrefix) && s.turnSpace().Grants == nil:
		x := s.spaces()
		x.Turn.Grants = x.UsedGrants()
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
// may take. Without a deadline of the config, a call waits for a bridge for as long as
// one start may take, and for at least RunDefaultMS.
func callDeadline(c *RunConfig, toolMS int64) (deadline, runMS int64) {
	runMS = cmp.Or(toolMS, RunDefaultMS)
	if c.DeadlinesMS != nil && c.DeadlinesMS.Call > 0 {
		return c.DeadlinesMS.Call, min(runMS, c.DeadlinesMS.Call/2)
	}
	return runMS + max(runMS, RunDefaultMS), runMS
}

// calls is the folder of the effects of class tool.
type calls struct{ ofTurn }

func (calls) decode(typ string, data codec.Raw) (any, string, *refusal) {
	if typ == TypeChildSettled {
		b := &ChildSettled{}
		bad := decodeContent(data, "output", b)
		return b, b.Effect, bad
	}
	b := &ToolCallSettled{}
	bad := decodeContent(data, "output", b)
	return b, b.Effect, bad
}

func (calls) settle(s *State, p Place, b *settlement) *refusal {
	i, bad := int(p.n), b.bad
	child, byChild := b.body.(*ChildSettled)
	if byChild != s.isChild(&s.Turn.Batch.Calls[i]) {
		return refuse(RejectIllegalTransition, b.effect+" is not settled by a "+b.typ)
	}
	if byChild {
		s.Turn.Batch.Calls[i].Settled = settlementHash(b.typ, b.data)
		if bad == nil {
			result := child.Settled()
			bad = resultFault(&result)
		}
		if bad != nil {
			s.endCall(i, CallFailed, CodeBadSettlement, bad.unusable())
		} else {
			s.settleChild(i, child)
		}
		s.closeGroup()
		return nil
	}
	call := b.body.(*ToolCallSettled)
	if bad := s.hostLoopFault(i, call); bad != nil {
		return bad
	}
	if bad == nil {
		bad = s.callFault(call)
	}
	s.Turn.Batch.Calls[i].Settled = settlementHash(b.typ, b.data)
	if bad != nil {
		s.endCall(i, CallFailed, CodeBadSettlement, bad.unusable())
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
	s.countResult(i, b.shownBytes())
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
		return refuse(RejectInvalidData, "plan_hash: is not the hash of this batch's plan")
	}
	return nil
}

func resultFault(b *ToolCallSettled) *refusal {
	if CallStatus(b.Status) == CallSucceeded && b.Error != nil {
		return refuse(RejectInvalidData, "error: is not allowed with status succeeded")
	}
	return cmp.Or(contentFault("output", b.Output, true), hostFault(b.HostSession))
}

// endCall gives call i its result. With a code, the session makes the result; else
// it is in the event being folded.
func (s *State) endCall(i int, status CallStatus, code string, detail sentence.Text) {
	c := &s.Turn.Batch.Calls[i]
	if s.isBeingRead(c) {
		s.endSyncOf(c, CodeCancelled, sentence.Say(sentence.ReadForEndedCall))
	}
	s.stopChild(i, HaltCancel)
	c.Status, c.Code, c.Detail, c.Seq = status, code, detail, s.Seq
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
		s.appendItem(Item{Role: RoleTool, Seq: c.Seq, Bytes: c.Bytes, Call: int16(i), Code: c.Code, Detail: c.Detail, Edit: c.Edit}, 0) // the result was counted when it was settled
	}
	for i := range b.Excess {
		s.appendItem(Item{Role: RoleTool, Seq: b.Seq, Call: int16(len(b.Calls) + i), Code: CodeLimitExceeded,
			Detail: sentence.Say(sentence.TooManyCalls, strconv.Itoa(CallsMax), strconv.Itoa(b.Excess), strconv.Itoa(len(b.Calls)+b.Excess))}, 0)
	}
}

// admitCall decides whether an accepted call runs, waits for a person, or is
// refused. In a run that is being interrupted no call runs.
func (s *State) admitCall(i int, planned *planner.PlanCall) {
	c := &s.Turn.Batch.Calls[i]
	if s.Run.Lifecycle == Interrupting {
		planned.Rejected = true
		s.endCall(i, CallCancelled, CodeCancelled, sentence.Say(sentence.NotOpened))
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
	s.rejectCall(i, why, sentence.Own(why.Detail))
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

// ApprovalFor returns what decided that call i of the batch, in the state after the event
// that observed it, waits for a person: a rule of the install policy, from 0, or -1 for the
// tool's own binding; and its condition, empty if it has none. ok is false if the call does
// not wait.
func (s *State) ApprovalFor(i int) (rule int, when string, ok bool) {
	if s.Turn == nil || s.Run == nil || s.Turn.Batch == nil || i >= len(s.Turn.Batch.Calls) || s.Turn.Batch.Calls[i].Status != CallAwaiting {
		return 0, "", false
	}
	c := &s.Turn.Batch.Calls[i]
	tool, ok := s.turnRegistry.LookupID(c.ToolID)
	if !ok {
		return 0, "", false
	}
	_, rule = s.install.approvals.Decided(s.turnRegistry, tool, planner.ApprovalFacts{StepFacts: s.stepFacts(nil), Arguments: c.Arguments})
	switch spec := s.turnRegistry.Tool(tool); {
	case rule >= 0:
		when = s.install.Record.Policy.Approval[rule].When
	case spec.Approval != planner.ApprovalAlways:
		when = spec.Approval
	}
	return rule, when, true
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
	case b.Manifest != "" && !isHash(b.Manifest):
		return refuse(RejectInvalidData, "manifest: must be 64 lower-case hex digits")
	case b.Decision == DecisionDeny && b.Arguments != "":
		return refuse(RejectInvalidData, "arguments: are only allowed with decision approve")
	}
	if b.Decision == DecisionDeny {
		detail := sentence.Say(sentence.Denied)
		if b.Reason != "" {
			detail = sentence.Say(sentence.DeniedBecause, b.Reason)
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
		s.countResult(i, int64(len(b.Arguments))) // the result shows the edited arguments
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
	if why := s.waitFault(c.ToolID, arguments, new(planner.Checker)); !why.OK() {
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
	p, isOver, bad := s.callNamed(b.Call)
	switch {
	case bad != nil:
		return 0, bad
	case isOver:
		return 0, refuse(RejectApprovalStale, b.Call+" ended long ago")
	}
	c := &s.Turn.Batch.Calls[p.n]
	switch {
	case c.Status != CallAwaiting:
		return 0, refuse(RejectApprovalStale, b.Call+" does not wait for approval: it is "+string(c.Status))
	case b.ArgsHash != c.Approval.ArgsHash.String():
		return 0, refuse(RejectApprovalStale, "args_hash: must be that of the waiting call, "+c.Approval.ArgsHash.String())
	}
	return int(p.n), nil
}

// callNamed returns the place of a call that the session has made. isOver means that it
// is of an earlier turn than the latest.
func (s *State) callNamed(name string) (p Place, isOver bool, bad *refusal) {
	p, ok := parseName(name)
	t := s.Turn
	switch {
	case !ok || p.kind != kindTool:
		return p, false, refuse(RejectUnknownCall, "call: must name a call, such as r1t2c0, not "+sentence.Quoted(name))
	case t == nil || p.run > t.Run || p.run == t.Run && p.turn > t.Number:
		return p, false, refuse(RejectUnknownCall, "this session has made no call "+name)
	case p.run < t.Run || p.turn < t.Number:
		return p, true, nil
	case t.Batch == nil || int(p.n) >= len(t.Batch.Calls):
		return p, false, refuse(RejectUnknownCall, "this session has made no call "+name)
	}
	return p, false, nil
}

// whyNotNow returns why a call that waits for a person would be refused if it was
// opened now, "" if it would not.
func (s *State) whyNotNow(c *Call) (code, detail string) {
	tool, _ := s.turnRegistry.Lookup(c.ToolID)
	if why := s.deniedNow(c, tool); !why.OK() {
		return string(why.Code), sentence.Clip(why.Detail, DetailBytesMax)
	}
	if s.isEnable(c) {
		status, code, detail := s.enableFault(c.Arguments)
		if status == CallFailed {
			return code, detail.String()
		}
	}
	return "", ""
}

// isInOpenGroup reports whether call i is in the group that is open.
func (s *State) isInOpenGroup(i int) bool {
	b := s.Turn.Batch
	return slices.Contains(b.Plan.Groups[b.Group], i)
}

// hostLoopFault rejects a single settlement of open call i by a host loop if it
// names another plan: the host loop reads the rejection and tries again. From a
// bridge, the same settles the call as `bad_settlement`, so that nothing hangs.
func (s *State) hostLoopFault(i int, b *ToolCallSettled) *refusal {
	batch := s.Turn.Batch
	if b.PlanHash == "" || batch.PlanHash.Is(b.PlanHash) || !s.isHostLoop(&batch.Calls[i]) {
		return nil
	}
	return planMismatch(batch.PlanHash)
}

func planMismatch(want codec.Hash) *refusal {
	return refuse(RejectPlanMismatch, "plan_hash: must be that of this batch, "+want.String())
}

// toolBatchSettled settles all calls of the open batch that have no result. If
// anything is wrong, it settles none.
func (s *State) toolBatchSettled(data codec.Raw) *refusal {
	b, bad := decodeBatch(data)
	if bad != nil {
		return bad
	}
	p, ok := parseName(b.Batch)
	if !ok || p.kind != kindLLM {
		return refuse(RejectInvalidData, "batch: must name a turn, such as r1t2, not "+sentence.Quoted(b.Batch))
	}
	t := s.Turn
	switch done := s.Done; {
	case t == nil || p.run > t.Run || p.run == t.Run && p.turn > t.Number:
		return refuse(RejectUnknownEffect, "this session has no batch "+b.Batch)
	case p.run == t.Run && p.turn == t.Number && t.Batch != nil && s.isBatchOpen():
		return s.settleBatch(b)
	case p.run == t.Run && p.turn == t.Number && t.Batch == nil:
		return refuse(RejectUnknownEffect, b.Batch+" has made no calls")
	case done != nil && p.run == done.Run && p.turn == done.Turn && !s.isBatchLater(done):
		return done.sameFault(b, s.LastPlan)
	}
	return refuse(RejectStale, "batch "+b.Batch+" ended long ago")
}

// isBatchOpen reports whether the latest turn's batch has calls without a result.
func (s *State) isBatchOpen() bool { return s.Run != nil && s.Turn.isOpen() }

// isBatchLater reports whether there is a batch after the last completed one.
func (s *State) isBatchLater(done *DoneBatch) bool {
	t := s.Turn
	return t.Batch != nil && (t.Run != done.Run || t.Number != done.Turn)
}

// decodeBatch reads a ToolBatchSettled and checks each result by itself.
func decodeBatch(data codec.Raw) (*ToolBatchSettled, *refusal) {
	if bad := resultsPartsFault(data); bad != nil {
		return nil, bad
	}
	var b ToolBatchSettled
	if bad := decodeBody(data, &b); bad != nil {
		return nil, bad
	}
	if len(b.Results) > CallsMax {
		return nil, tooManyResults()
	}
	for i := range b.Results {
		if bad := resultFault(&b.Results[i]); bad != nil {
			return nil, refuse(bad.code, "results["+strconv.Itoa(i)+"]."+bad.detail)
		}
	}
	return &b, nil
}

// settleBatch settles the open batch.
func (s *State) settleBatch(b *ToolBatchSettled) *refusal {
	batch := s.Turn.Batch
	if b.PlanHash != batch.PlanHash.String() {
		return planMismatch(batch.PlanHash)
	}
	var given [CallsMax]*ToolCallSettled
	for i := range b.Results {
		r := &b.Results[i]
		at, bad := callOf(b.Batch, len(batch.Calls), r)
		if bad == nil {
			bad = s.mayBeSettled(&batch.Calls[at], r)
		}
		if bad == nil && given[at] != nil {
			bad = mismatch(r.Effect + " is named twice")
		}
		if bad == nil && r.PlanHash != "" && r.PlanHash != b.PlanHash {
			bad = planMismatch(batch.PlanHash)
		}
		if bad != nil {
			return bad
		}
		given[at] = r
	}
	for i := range batch.Calls {
		if batch.Calls[i].Status == CallAwaiting {
			return mismatch("call " + strconv.Itoa(i) + " waits for approval")
		}
		if !batch.Calls[i].done() && given[i] == nil {
			return mismatch("call " + strconv.Itoa(i) + " has no result: the whole batch is settled, later groups included")
		}
	}
	for i := range batch.Calls {
		c := &batch.Calls[i]
		if c.done() {
			continue
		}
		if c.Status == CallWaiting {
			c.At, c.RunMS = s.Clock, 1 // the host loop ran it
		}
		s.takeResult(i, given[i])
	}
	batch.Group = len(batch.Plan.Groups)
	s.completeBatch()
	return nil
}

// callOf returns the index of the call that a result names.
func callOf(batch string, calls int, r *ToolCallSettled) (int, *refusal) {
	p, ok := parseName(r.Effect)
	if !ok || p.kind != kindTool || turnName(p.run, p.turn) != batch || int(p.n) >= calls {
		return 0, refuse(RejectUnknownCall, "batch "+batch+" has no call "+sentence.Quoted(r.Effect))
	}
	return int(p.n), nil
}

// mayBeSettled checks a result of the batch against its call.
func (s *State) mayBeSettled(c *Call, r *ToolCallSettled) *refusal {
	switch {
	case c.done() && c.Result != r.result():
		return mismatch(r.Effect + " has another result")
	case !c.done() && s.needsNobody(c):
		return mismatch(r.Effect + " waits for a reply or for a time: nothing else ends it")
	case !c.done() && s.isChild(c):
		return mismatch(r.Effect + " waits for a run of another session: nothing else ends it")
	case c.Status == CallOpen && !s.isHostLoop(c):
		return mismatch(r.Effect + " is asked at a bridge: its settlement comes from there")
	}
	return nil
}

func tooManyResults() *refusal {
	return refuse(RejectLimitExceeded, "results: a batch has at most "+strconv.Itoa(CallsMax)+" calls")
}

func mismatch(detail string) *refusal { return refuse(RejectBatchMismatch, detail) }

// sameFault checks a ToolBatchSettled against the stored results and their plan.
func (d *DoneBatch) sameFault(b *ToolBatchSettled, plan codec.Hash) *refusal {
	if b.PlanHash != plan.String() {
		return mismatch("plan_hash: the batch was completed under " + plan.String())
	}
	var given [CallsMax]bool
	for i := range b.Results {
		r := &b.Results[i]
		at, bad := callOf(b.Batch, len(d.Results), r)
		switch {
		case bad != nil:
			return bad
		case given[at]:
			return mismatch(r.Effect + " is named twice")
		case d.Results[at] != r.result():
			return mismatch(r.Effect + " has another result")
		}
		given[at] = true
	}
	return nil
}

// hostSessionUpdated sets the host session's status, from the next turn on.
func (s *State) hostSessionUpdated(b *HostSessionUpdated) *refusal {
	host := HostSession(*b)
	if bad := hostFault(&host); bad != nil {
		return bad
	}
	if s.endsAnother(&host) {
		return refuse(RejectStale, "host session "+sentence.Quoted(host.ID)+" is not the one that is ready, "+sentence.Quoted(s.Host.ID))
	}
	s.setHost(host)
	return nil
}

// endsAnother reports whether h ends a host session other than the ready one. A
// worker's late report about an earlier host session must not end a later one.
func (s *State) endsAnother(h *HostSession) bool {
	return h.Status != "ready" && h.Status != "none" && h.ID != "" && s.hostStatus() == "ready" && s.Host.ID != "" && s.Host.ID != h.ID
}

// hostFault checks a host session, which may be nil.
func hostFault(h *HostSession) *refusal {
	if h != nil && h.Root != "" && h.Root[0] != '/' {
		return refuse(RejectInvalidData, "host_session.root: must be an absolute path")
	}
	return nil
}

// setHost sets the host session; status none removes it.
func (s *State) setHost(h HostSession) {
	s.toolsMoved = true
	if h.Status == "none" {
		s.Host = nil
		return
	}
	if s.Host != nil && s.Host.ID == h.ID {
		h.Root, h.Route = cmp.Or(h.Root, s.Host.Root), cmp.Or(h.Route, s.Host.Route)
	}
	s.Host = &h
}

// hostRoot returns the host session's working directory, "" if unknown.
func (s *State) hostRoot() string {
	if s.Host == nil {
		return ""
	}
	return s.Host.Root
}

// callTarget returns the target of a call's effect: the executor's, or the worker
// that holds the host session, if the tool requires one and the route is a target
// below the executor's: host-w1 for host. Any other route is for people. So a
// worker routes calls of its own target alone.
func callTarget(tool *planner.ToolSpec, h *HostSession) string {
	target := tool.Executor.Target
	if h == nil || !strings.HasPrefix(h.Route, target+"-") || !planner.IsName(h.Route) {
		return target
	}
	if slices.ContainsFunc(tool.Availability, func(r planner.Rule) bool { return r.Kind == planner.RuleHostSessionReady }) {
		return h.Route
	}
	return target
}

// hostStatus returns the host session's status: one of the five.
func (s *State) hostStatus() string {
	if s.Host == nil {
		return "none"
	}
	return s.Host.Status
}

// Error codes with which a bridge or a host loop refuses a call without starting
// it, because its tool differs from the one in the session's registry. Only a
// person can repair that, so the notice ToolRejected reports it. Temporary failures
// (a server is not running) and the model's own (wrong arguments) are not among
// them. The set is closed and part of the fold: a new code needs new rules after
// the first release.
const (
	RefusedToolChanged   = "tool_changed"    // the tool differs from the import, or is less safe than this session's registry declares
	RefusedToolGone      = "tool_gone"       // its server does not have it any more
	RefusedToolNotPinned = "tool_not_pinned" // it was never imported there
	RefusedToolNotServed = "tool_not_served" // what serves the target does not have it
	RefusedToolUnbound   = "tool_unbound"    // the host does not have it
	RefusedService       = "service_refused" // the current metadata of its service can't be used
)

var refusedCodes = []string{
	RefusedToolChanged, RefusedToolGone, RefusedToolNotPinned, RefusedToolNotServed, RefusedToolUnbound, RefusedService,
}

// IsRefusedCode reports whether a call that failed with this code was refused
// by its executor and never started.
func IsRefusedCode(code string) bool { return slices.Contains(refusedCodes, code) }

// notifyRefused reports that call i was refused and not started, if the settlement
// being folded has such an error.
func (s *State) notifyRefused(i int, b *ToolCallSettled) {
	if CallStatus(b.Status) != CallFailed || b.Error == nil || !IsRefusedCode(b.Error.Code) {
		return
	}
	notify(s, NoticeToolRejected, ToolRejected{
		Effect: callName(s.Turn.Run, s.Turn.Number, i), ToolName: s.Turn.Batch.Calls[i].ToolName,
		Code: b.Error.Code, Detail: sentence.Clip(b.Error.Detail, DetailBytesMax),
	})
}
