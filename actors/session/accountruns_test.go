package session_test

// The books of runs and of people, kept from outside: which run is active and
// which are queued, in which order, what a run ends by; which calls wait for a
// person; and what a run may use.

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// runs: each run that is taken starts or queues, in order, and ends once; the
// next one starts when one ends.
func (l *laws) runs(e session.Event, env session.Envelope, notices []session.Notice, rejected error) {
	finished, placed := false, false
	for _, n := range notices {
		switch d := n.Data.(type) {
		case session.RunPlaced:
			placed = true
			if n.Type == session.NoticeRunQueued {
				l.queues(e, env, d, finished)
			} else {
				l.starts(e, d)
			}
		case session.RunFinished:
			l.finishes(env, d)
			finished = true
		}
	}
	if l.running == 0 && len(l.waiting) > 0 {
		l.t.Fatalf("nothing runs, and %v wait", l.waiting)
	}
	if l.state.Runs > l.accepted && (rejected != nil || !placed) {
		l.t.Fatalf("run %d was taken: rejected %v, placed %v", l.state.Runs, rejected, placed)
	}
	l.accepted = l.state.Runs
	run := l.state.Run
	if (run == nil) != (l.running == 0) || run != nil && run.Number != l.running {
		l.t.Fatalf("active is %d, the state has another run", l.running)
	}
	queue := make([]uint32, len(l.state.Queue))
	for i := range l.state.Queue {
		queue[i] = l.state.Queue[i].Number
	}
	if !slices.Equal(queue, l.waiting) {
		l.t.Fatalf("%v wait, the state's queue is %v", l.waiting, queue)
	}
	if run != nil {
		if run.Turns < l.turns || run.Turns > l.turns+1 || int(run.Turns) > max(run.Config.TurnsMax, session.TurnsDefault) {
			l.t.Fatalf("run %d is in turn %d after %d", run.Number, run.Turns, l.turns)
		}
		l.turns = run.Turns
	}
}

// queues: a request comes last, one that interrupts first, and so do steers
// that a run left which has just ended. An edit moves nothing.
func (l *laws) queues(e session.Event, env session.Envelope, d session.RunPlaced, finished bool) {
	at := slices.Index(l.waiting, d.Run)
	switch {
	case at >= 0 && env.Type == session.TypeRunEdited && d.Seq == e.Seq:
	case at >= 0 || l.running == d.Run || l.ended[d.Run]:
		l.t.Fatalf("run %d is queued again", d.Run)
	case finished:
		if typ := l.taken[d.Seq]; typ == "" && d.Seq != e.Seq {
			l.t.Fatalf("run %d is of event %d, which brought no input", d.Run, d.Seq)
		}
		l.waiting = slices.Insert(l.waiting, 0, d.Run)
	case d.Seq != e.Seq:
		l.t.Fatalf("run %d is queued by event %d, and is of event %d", d.Run, e.Seq, d.Seq)
	case whenBusyOf(env) == session.BusyInterrupt:
		l.waiting = slices.Insert(l.waiting, 0, d.Run)
	default:
		l.waiting = append(l.waiting, d.Run)
	}
}

// whenBusyOf returns the field of a RunRequested.
func whenBusyOf(env session.Envelope) string {
	var b session.RunRequested
	if env.Type != session.TypeRunRequested || codec.Decode(env.Data, &b) != nil {
		return ""
	}
	return b.WhenBusy
}

func (l *laws) starts(e session.Event, d session.RunPlaced) {
	if len(l.waiting) > 0 && l.waiting[0] == d.Run {
		l.waiting = l.waiting[1:]
	} else if d.Seq != e.Seq || len(l.waiting) > 0 {
		l.t.Fatalf("run %d started, waiting are %v", d.Run, l.waiting)
	}
	if l.running != 0 {
		l.t.Fatalf("run %d started while %d is active", d.Run, l.running)
	}
	l.running, l.turns = d.Run, 0
}

// finishes: the active run ends by whatever ends it, a queued one by a cancel
// alone. What failed or was cancelled says why.
func (l *laws) finishes(env session.Envelope, d session.RunFinished) {
	why := d.Code != ""
	if d.Lifecycle == session.Completed {
		why = false // a code is whoever completed it's to give
	}
	if (d.Lifecycle == session.Failed || d.Lifecycle == session.Cancelled) != why {
		l.t.Fatalf("run %d ended as %s %q", d.Run, d.Lifecycle, d.Code)
	}
	if d.Run == l.running {
		l.running = 0
		return
	}
	at := slices.Index(l.waiting, d.Run)
	if at < 0 || d.Lifecycle != session.Cancelled || env.Type != session.TypeRunCancelRequested && env.Type != session.TypeSessionClosed && env.Type != session.TypeSessionErased {
		l.t.Fatalf("run %d ended as %s by %s, active is %d, waiting are %v", d.Run, d.Lifecycle, env.Type, l.running, l.waiting)
	}
	l.waiting = slices.Delete(l.waiting, at, at+1)
}

// stands: what is open is of the active run, so after a cancel nothing of the
// cancelled one is.
func (l *laws) stands(now []session.Effect) {
	of := fmt.Sprintf("r%dt", l.running)
	for _, o := range now {
		if o.Class != session.ClassWake && !strings.HasPrefix(o.Name, of) {
			l.t.Fatalf("%s is open, active is run %d", o.Name, l.running)
		}
	}
	if err := waitsRight(l.state.Run); err != nil {
		l.t.Fatal(err)
	}
}

// waitsRight: a run keeps its answer while it waits for input, and no longer;
// and it does not wait for what it has.
func waitsRight(run *session.Run) error {
	if run == nil {
		return nil
	}
	waits := run.Lifecycle == session.WaitingInput || run.Lifecycle == session.Paused && run.Before == session.WaitingInput
	switch {
	case run.Answer != 0 && !waits:
		return fmt.Errorf("run %d is %s and keeps the answer of event %d", run.Number, run.Lifecycle, run.Answer)
	case run.FinishReason != "" && !waits:
		return fmt.Errorf("run %d is %s and keeps that its answer ended by %q", run.Number, run.Lifecycle, run.FinishReason)
	case run.Lifecycle == session.WaitingInput && len(run.Steers) > 0:
		return fmt.Errorf("run %d waits for input, and %v wait for a turn", run.Number, run.Steers)
	}
	return nil
}

// countApprovals enters what is asked of people, and what they decide: each
// call is asked about once, and decided over once.
func (l *laws) countApprovals(e session.Event, env session.Envelope, notices []session.Notice, rejected error) {
	for _, n := range notices {
		if d, is := n.Data.(session.ApprovalRequested); is {
			if _, again := l.asked[d.Call]; again {
				l.t.Fatalf("%s is asked about again", d.Call)
			}
			l.asked[d.Call] = d.ArgsHash
		}
	}
	if env.Type == session.TypeApprovalDecided && rejected == nil {
		var b session.ApprovalDecided
		if err := codec.Decode(env.Data, &b); err != nil {
			l.t.Fatalf("a decision that was taken: %v", err)
		}
		hash, known := l.asked[b.Call]
		if _, again := l.approved[b.Call]; !known || again || hash != b.ArgsHash || e.Door != session.DoorApprove {
			l.t.Fatalf("%s is decided over: asked about %v, approved before %v, hash %s, want %s", b.Call, known, again, b.ArgsHash, hash)
		}
		if b.Decision == session.DecisionApprove {
			l.approved[b.Call] = l.approves(e, &b)
		}
	}
	for _, i := range l.awaiting() {
		t := l.state.Turn
		name := fmt.Sprintf("r%dt%dc%d", t.Run, t.Number, i)
		if _, decided := l.approved[name]; decided || l.asked[name] != t.Batch.Calls[i].Approval.ArgsHash.String() {
			l.t.Fatalf("%s waits: decided over %v, asked about with %q", name, decided, l.asked[name])
		}
	}
}

// approves returns what an approval lets run.
func (l *laws) approves(e session.Event, b *session.ApprovalDecided) approval {
	t := l.state.Turn
	for seq, of := range l.calls {
		for i, made := range of.calls {
			if fmt.Sprintf("%sc%d", of.effect, i) != b.Call {
				continue
			}
			written := made.Arguments
			if written == "" {
				written = "{}"
			}
			if codec.Sum([]byte(written)).String() != b.ArgsHash {
				l.t.Fatalf("%s: %s was decided over, the call of event %d was made with %s", b.Call, b.ArgsHash, seq, written)
			}
			if b.Arguments == "" || b.Arguments == written {
				return approval{arguments: written}
			}
			return approval{arguments: b.Arguments, edit: e.Seq}
		}
	}
	l.t.Fatalf("%s of turn %d is approved, and nobody made it", b.Call, t.Number)
	return approval{}
}

// mayBeAsked: a call that somebody has to approve was approved. It returns the
// arguments to ask it with, and the event that changed them.
func (l *laws) mayBeAsked(name string, spec *planner.ToolSpec, written string) (arguments string, edit uint64) {
	approved, is := l.approved[name]
	_, asked := l.asked[name]
	if !is && (asked || spec.Approval == "always" && len(l.install.Record.Policy.Approval) == 0) {
		l.t.Fatalf("%s is asked and was not approved; asked about %v", name, asked)
	}
	if !is {
		return written, 0
	}
	return approved.arguments, approved.edit
}

// inBudget: no turn is asked while a budget of its run is spent. An attempt is
// of the turn that was in it, and so is a compaction after an attempt or after another
// compaction that failed.
func (l *laws) inBudget(name string) {
	b := l.state.Run.Config.Budget
	if b == nil || l.state.Turn.Attempt > 0 {
		return
	}
	if w := l.state.Window; w != nil && w.Compaction != nil && w.Compaction.To > 0 &&
		(w.Compaction.Again || w.Compaction.Failed > 0 || l.state.Run.Fell > 0) {
		return
	}
	run, all := &l.state.Run.Usage, &l.state.Usage
	spent := func(used, limit int64) bool { return limit > 0 && used >= limit }
	if spent(run.InputTokens+run.OutputTokens, b.Tokens) || spent(all.InputTokens+all.OutputTokens, b.SessionTokens) ||
		spent(l.state.Run.Cost, b.Cost) || spent(l.state.Cost, b.SessionCost) {
		l.t.Fatalf("%s is asked, and of %+v are used %+v at %d, and %+v at %d in all", name, *b, *run, l.state.Run.Cost, *all, l.state.Cost)
	}
}

// again: another attempt asks for what the first one did, later, if the run's
// config lets it. How much it may say is what the budgets leave then. After a refusal as too
// long the window is smaller, and there is no wait.
func (l *laws) again(o session.Effect, g, before *session.Generation) {
	retry, t := l.state.Run.Config.Retry, l.state.Turn
	attempts := 1 + int(t.Shrunk) + int(l.state.Run.Fell)
	if retry != nil {
		attempts += retry.Attempts - 1
	}
	if int(t.Attempt) >= attempts || t.Shrunk > 0 && l.contextOf() == nil || o.Name != fmt.Sprintf("r%dt%da%d", t.Run, t.Number, t.Attempt+1) {
		l.t.Fatalf("%s: attempt %d under %+v", o.Name, t.Attempt+1, retry)
	}
	if before == nil || g.At < before.At || t.Shrunk+l.state.Run.Fell == 0 && g.At == before.At {
		l.t.Fatalf("%s is asked without a wait", o.Name)
	}
	same := *g
	same.At, same.StartBy, same.Effect, same.OutputTokensMax = before.At, before.StartBy, before.Effect, before.OutputTokensMax
	if w := l.state.Window; w != nil && w.Compaction != nil && w.Compaction.Again { // facts may be others after it
		same.Defined, same.Tools, same.Toolset, same.ToolChoice = before.Defined, before.Tools, before.Toolset, before.ToolChoice
	}
	// The run may also have fallen back for a compaction, before the first attempt or before
	// this one, or in an earlier turn.
	fell := l.state.Run.Fell > 0 || slices.ContainsFunc(l.state.Run.Config.Fallback, func(f session.FallbackModel) bool {
		return f.Provider == before.Provider && f.Model == before.Model || f.Provider == g.Provider && f.Model == g.Model
	})
	if fell { // another model, or the first one again, with the tools of then
		same.Provider, same.Model, same.Params = before.Provider, before.Model, before.Params
		same.Defined, same.Tools, same.Toolset, same.ToolChoice = before.Defined, before.Tools, before.Toolset, before.ToolChoice
	}
	if t.Shrunk > 0 || fell {
		same.Summary = before.Summary
		l.sendable(o.Name, itemsOf(l.t, g.Items))
		same.Cut, same.Items, same.V, same.Prompt, same.PromptMark, same.Vars = before.Cut, before.Items, before.V, before.Prompt, before.PromptMark, before.Vars
	}
	want, err := codec.Marshal(before)
	if err != nil {
		l.t.Fatal(err)
	}
	got, err := codec.Marshal(same)
	if err != nil {
		l.t.Fatal(err)
	}
	if name, _, _ := strings.Cut(before.Effect, "a"); name != fmt.Sprintf("r%dt%d", t.Run, t.Number) || !bytes.Equal(got, want) {
		l.t.Fatalf("%s asks for %+v, %s asked for %+v", o.Name, g, before.Effect, before)
	}
}
