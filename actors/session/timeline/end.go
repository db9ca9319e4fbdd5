package timeline

import (
	"github.com/refold/refold/actors/session"
)

// Decisions over a call that waited for a person.
const (
	Approved = "approve"
	Denied   = "deny"
	Expired  = "expired"
	Closed   = "closed" // the run ended first
)

// end ends a span with the event that s folded last.
func (p *part) end(s *session.State, notices, progress []session.Notice) {
	p.span.End, p.span.Seq = s.Clock, s.Seq
	switch p.key.kind {
	case KindRun:
		p.endRun(notices)
	case KindStep:
		p.endStep(s, notices)
	case KindAttempt, KindCompaction:
		p.endAttempt(notices, progress)
	case KindCall:
		p.endCall(progress)
	case KindApproval:
		p.endApproval(s, progress)
	}
}

// finished returns the notice about the end of a run.
func finished(notices []session.Notice, run uint32) (session.RunFinished, bool) {
	for _, n := range notices {
		if end, is := n.Data.(session.RunFinished); is && end.Run == run {
			return end, true
		}
	}
	return session.RunFinished{}, false
}

func (p *part) endRun(notices []session.Notice) {
	end, _ := finished(notices, p.key.run)
	p.span.Code, p.span.Failed = end.Code, end.Lifecycle == session.Failed
	p.span.Outcome.Lifecycle, p.span.Outcome.Usage, p.span.Outcome.Cost = end.Lifecycle, end.Usage, end.Cost
}

func (p *part) endStep(s *session.State, notices []session.Notice) {
	if t := s.Turn; t != nil && t.Run == p.key.run && t.Number == p.key.turn && t.Step != nil {
		p.span.From, p.span.Code = string(t.Step.From), t.Step.Code
	}
	if end, is := finished(notices, p.key.run); is && p.span.Code == "" {
		p.span.Code = end.Code
	}
	p.span.Failed = p.span.Code != "" && p.span.Code != session.CodeCancelled
}

// endAttempt sets an attempt's outcome from its progress. An attempt that ends its
// run is reported by the end of the run.
func (p *part) endAttempt(notices, progress []session.Notice) {
	effect := p.key.effect()
	for _, n := range progress {
		if settled, is := n.Data.(session.TurnSettled); is && settled.Effect == effect {
			p.span.Code, p.span.Failed = settled.Code, settled.Code != ""
			p.span.Outcome.Usage, p.span.Outcome.FinishReason = settled.Usage, settled.FinishReason
			return
		}
	}
	for _, n := range notices {
		if done, is := n.Data.(session.ContextCompacted); is && done.Effect == effect {
			p.span.Outcome.Usage = done.Usage
			return
		}
	}
	if end, is := finished(notices, p.key.run); is {
		p.span.Code, p.span.Failed = end.Code, end.Lifecycle == session.Failed
	}
}

func (p *part) settledCall(progress []session.Notice) (session.CallSettled, bool) {
	effect := key{kind: KindCall, run: p.key.run, turn: p.key.turn, n: p.key.n}.effect()
	for _, n := range progress {
		if settled, is := n.Data.(session.CallSettled); is && settled.Effect == effect {
			return settled, true
		}
	}
	return session.CallSettled{}, false
}

func (p *part) endCall(progress []session.Notice) {
	settled, _ := p.settledCall(progress)
	p.span.Call.Status, p.span.Code = settled.Status, settled.Code
	p.span.Failed = settled.Status == session.CallFailed || settled.Status == session.CallUnknown
}

func (p *part) endApproval(s *session.State, progress []session.Notice) {
	settled, ended := p.settledCall(progress)
	p.span.Decision = Approved
	switch {
	case !ended:
		p.span.Call.Edited = s.Turn.Batch.Calls[p.key.n].Edit == s.Seq
	case settled.Code == session.CodeApprovalDenied:
		p.span.Decision = Denied
	case settled.Code == session.CodeApprovalExpired:
		p.span.Decision, p.span.Failed = Expired, true
	case settled.Code == session.CodeCancelled:
		p.span.Decision = Closed
	}
	if p.span.Decision != Approved {
		p.span.Code = settled.Code
	}
}
