package session

import (
	"strconv"

	"github.com/refold/refold/codec"
)

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
	return refuse(RejectPlanMismatch, "plan_hash: this batch's is "+want.String())
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
		return refuse(RejectInvalidData, "batch: is the name of a turn, r1t2, not "+quoted(b.Batch))
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
	return refuse(RejectStale, "batch "+b.Batch+" was over long before")
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
		return 0, refuse(RejectUnknownCall, "batch "+batch+" has no call "+quoted(r.Effect))
	}
	return int(p.n), nil
}

// mayBeSettled checks a result of the batch against its call.
func (s *State) mayBeSettled(c *Call, r *ToolCallSettled) *refusal {
	switch {
	case c.done() && c.Result != r.result():
		return mismatch(r.Effect + " has another result")
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
