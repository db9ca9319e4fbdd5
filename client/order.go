package client

import (
	"strings"

	"github.com/refold/refold/actors/session"
)

// ordered puts the notices about a turn's calls after the turn's text, and the
// text of the next turn after them. Deltas, notices and progress take different
// ways: a refused call may be reported before the end of its turn, and the next
// turn's model may speak before the end of the last call is heard.
type ordered struct {
	held  []Notice // about calls of a turn whose text is not complete
	calls int      // of the turn that ended last, whose results are not known
	late  int      // views since something has been waiting
}

// Limits of the wait for a message that may be lost.
const (
	heldMax  = 1024 // notices
	lateMost = 2    // views
)

// turnOfCall returns the turn of the call that a notice with this body is about; ok
// is false for notices that are not about a call of the run.
func turnOfCall(body any, run uint32) (turn uint32, ok bool) {
	var call string
	switch d := body.(type) {
	case session.CallSettled:
		call = d.Effect
	case session.ToolRejected:
		call = d.Effect
	case session.ApprovalRequested:
		call = d.Call
	case session.ReplyRequested:
		call = d.Call
	}
	of, _, ok := strings.Cut(call, "c")
	if !ok {
		return 0, false
	}
	a, ok := parseAttempt(of)
	return a.turn, ok && a.run == run
}

// hasTextOf reports whether the text of a turn is complete.
func (s *showing) hasTextOf(turn uint32) bool {
	return turn < s.at.turn || turn == s.at.turn && !s.open
}

// pass passes a notice on, after the text that was shown before it, or holds it.
func (f *Follower) pass(n Notice, body any) {
	turn, ofCall := turnOfCall(body, f.run)
	if ofCall && !f.words.hasTextOf(turn) && len(f.order.held) < heldMax {
		f.order.held = append(f.order.held, n)
		return
	}
	f.flush()
	f.watch.Notice(n)
	if _, settled := body.(session.CallSettled); settled && ofCall && turn == f.words.at.turn && f.order.calls > 0 {
		if f.order.calls--; f.order.calls == 0 {
			f.next()
		}
	}
}

// turnEnded starts the wait for the results of a turn's calls.
func (f *Follower) turnEnded(calls int) {
	f.order.calls, f.order.late = min(calls, session.CallsMax), 0
}

// release passes on what was held for the text of a turn that has ended since; all
// also passes on what waits for another message.
func (f *Follower) release(all bool) {
	held := f.order.held
	f.order.held = nil
	for i := range held {
		if !all {
			f.pass(held[i], held[i].Body())
			continue
		}
		f.flush()
		f.watch.Notice(held[i])
	}
}

// isHolding reports whether a notice or the next turn's text waits for a message,
// which may be lost.
func (f *Follower) isHolding() bool {
	return len(f.order.held) > 0 || f.order.calls > 0 && f.run != 0 && len(f.words.early) > 0
}

// viewed ends a wait for messages that are lost: they were sent before these views.
func (f *Follower) viewed() {
	if !f.isHolding() {
		f.order.late = 0
		return
	}
	if f.order.late++; f.order.late < lateMost {
		return
	}
	f.order.late, f.order.calls = 0, 0
	f.release(true)
	f.next()
}

// flush shows the text that has arrived.
func (f *Follower) flush() {
	out := f.words.out
	f.words.out = nil
	for _, s := range out {
		f.watch.Shown(s)
	}
}
