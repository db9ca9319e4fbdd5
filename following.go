package refold

import (
	"context"
	"fmt"
	"hash/fnv"
	"iter"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
)

// Updates yields what happens in the session, in all its runs, after a position: that of
// an earlier update, or now if it is empty. It goes on after a lost connection. If the
// model began the turn again since, a TextRestarted comes, and then the whole text.
// Leaving the loop stops nothing; the last pair has the error, if there is one, which is
// that of ctx when ctx ends. A user who may not read the log gets what Partial says.
func (s *Session) Updates(ctx context.Context, after string) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		at, err := parsePosition(after)
		if err == nil && after == "" {
			at.seq, err = s.rt.client.LastEvent(ctx)
			at.seq++
		}
		if err != nil {
			yield(nil, err)
			return
		}
		if s.rt.unread != nil {
			s.told(ctx, at, yield)
			return
		}
		s.updates(ctx, at)(yield)
	}
}

// steps is where updates come from: a viewer, which folds the log, or a follower, which
// is told, and has nothing before its creation.
type steps interface {
	Shown(ctx context.Context, from uint64) iter.Seq2[client.Shown, error]
	Close()
}

// steps returns the session's steps, by the rights of this user.
func (s *Session) steps(ctx context.Context) (steps, error) {
	if s.rt.unread == nil {
		return s.rt.client.EventViewer(ctx, s.id)
	}
	f, err := s.rt.client.Follow(ctx, s.id)
	return toldSteps{f}, err
}

// updates yields what happens after a position.
func (s *Session) updates(ctx context.Context, after position) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		for r := (&reader{after: after, at: after}); ; r.rejoin() {
			f := s.rt.join(ctx, s, r.after.seq)
			if f == nil {
				if !s.catchUp(ctx, r, yield) {
					return
				}
				continue
			}
			goesOn := f.deliver(ctx, r, yield)
			s.rt.leave(f)
			if !goesOn {
				return
			}
		}
	}
}

// following turns what a viewer shows into updates.
type following struct {
	at position // of the latest update

	text  strings.Builder   // of the open turn
	calls map[string]Call   // that have no end, by name
	turns map[uint32]uint32 // of runs that have not ended: the latest turn

	out []Update
}

// newFollowing begins with the event at a sequence.
func newFollowing(from uint64) *following {
	return &following{at: position{seq: from}, calls: map[string]Call{}, turns: map[uint32]uint32{}}
}

// turnOver is the end of a turn's text. It is for feeds alone.
type turnOver struct {
	about
	Turn uint32
	by   uint64 // sequence of the event that ended the turn, which comes next
}

// take returns the updates of the next step, which the caller owns.
func (f *following) take(s *client.Shown) []Update {
	f.out = nil
	switch s.Kind {
	case client.ShownText:
		f.text.WriteString(s.Text)
		f.at.text, f.at.sum = f.text.Len(), sumOf(f.text.String())
		f.out = append(f.out, Text{about{s.Run, f.at}, s.Turn, s.Text})
	case client.ShownAgain:
		f.closeText()
		f.out = append(f.out, TextRestarted{about{s.Run, f.at}, s.Turn})
	case client.ShownDone, client.ShownFailed:
		f.closeText()
		f.out = append(f.out, turnOver{about{s.Run, f.at}, s.Turn, s.Seq})
		f.turns[s.Run] = s.Turn
	case client.ShownEvent:
		f.event(s.Event)
	case client.ShownMissed:
		f.out = append(f.out, Partial{about{at: f.at}, true})
	}
	return f.out
}

// closeText ends the text of a turn.
func (f *following) closeText() {
	f.text.Reset()
	f.at.text, f.at.sum = 0, 0
}

// event emits what an event did.
func (f *following) event(e *client.Folded) {
	if e.Seq != f.at.seq || f.at.n == 0 {
		f.at.seq, f.at.n = e.Seq, 1
	}
	f.requested(e) // a call that is denied ends after the decision
	for _, n := range e.Progress {
		switch d := n.Data.(type) {
		case session.TurnSettled:
			f.asked(e, d)
		case session.CallSettled:
			f.ended(Call{Name: d.Effect, Tool: d.ToolName, Status: string(d.Status), Code: d.Code, Detail: d.Detail})
		}
	}
	for _, n := range e.Notices {
		f.notice(n)
	}
}

// requested emits what people asked, if the session took it.
func (f *following) requested(e *client.Folded) {
	if e.State == nil { // this user may not read what it was
		return
	}
	env, err := session.ReadEnvelope(e.Payload)
	for _, n := range e.Notices {
		if _, refused := n.Data.(session.EventRejected); refused {
			return
		}
	}
	switch run := e.State.Run; {
	case err != nil || run == nil:
	case env.Type == session.TypeRunPauseRequested:
		f.emit(RunPaused{f.next(run.Number)})
	case env.Type == session.TypeRunResumeRequested:
		f.emit(RunResumed{f.next(run.Number)})
	case env.Type == session.TypeApprovalDecided:
		var b session.ApprovalDecided
		if codec.Decode(env.Data, &b) != nil {
			return
		}
		call, asked := f.calls[b.Call]
		if !asked {
			call = Call{Name: b.Call}
		}
		f.emit(ApprovalDecided{f.next(run.Number), call, b.Decision, b.Reason})
	}
}

// asked emits the calls of a turn.
func (f *following) asked(e *client.Folded, d session.TurnSettled) {
	var b session.ToolCallsObserved
	env, err := session.ReadEnvelope(e.Payload)
	if err != nil || d.Calls == 0 || env.Type != session.TypeToolCallsObserved || codec.Decode(env.Data, &b) != nil {
		return
	}
	turn, _, _ := strings.Cut(b.Effect, "a") // of an attempt: r1t2a3
	for i := range b.Calls {
		call := Call{Name: fmt.Sprintf("%sc%d", turn, i), Tool: b.Calls[i].ToolName, Arguments: b.Calls[i].Arguments}
		f.calls[call.Name] = call
		f.emit(ToolAsked{f.next(runOf(call.Name)), call})
	}
}

// ended emits the end of a call.
func (f *following) ended(c Call) {
	if asked, ok := f.calls[c.Name]; ok {
		c.Arguments = asked.Arguments
		delete(f.calls, c.Name)
	}
	f.emit(ToolEnded{f.next(runOf(c.Name)), c})
}

func (f *following) notice(n session.Notice) {
	switch d := n.Data.(type) {
	case session.RunPlaced:
		if n.Type == session.NoticeRunQueued {
			f.emit(RunQueued{f.next(d.Run)})
		} else {
			f.emit(RunStarted{f.next(d.Run)})
		}
	case session.ApprovalRequested:
		call := Call{Name: d.Call, Tool: d.ToolName, Arguments: d.Arguments}
		if asked, ok := f.calls[d.Call]; ok {
			call = asked
		}
		f.emit(ApprovalAsked{f.next(runOf(d.Call)), call})
	case session.ReplyRequested:
		call := Call{Name: d.Call, Tool: d.ToolName, Arguments: d.Arguments}
		if asked, ok := f.calls[d.Call]; ok {
			call = asked
		}
		f.emit(ReplyAsked{f.next(runOf(d.Call)), call})
	case session.RunFinished:
		f.emit(RunEnded{f.next(d.Run), d.Lifecycle, d.Code, d.Detail, f.turns[d.Run], &d})
		delete(f.turns, d.Run)
	case session.BudgetExceeded:
		f.emit(RunPaused{f.next(d.Run)})
	}
}

// next returns the place of an event's next update.
func (f *following) next(run uint32) about {
	f.at.n++
	return about{run, f.at}
}

// emit appends an update.
func (f *following) emit(u Update) { f.out = append(f.out, u) }

// position is where a reader is, and what text it has of the turn that is open there.
type position struct {
	seq  uint64 // of an event of the session, or of others
	n    int    // 0: before that event; 1: after it, and each of its updates is one more
	text int
	sum  uint64 // of that text
}

// String formats it, for parsePosition.
func (p position) String() string {
	if p.text == 0 {
		return fmt.Sprintf("%d-%d", p.seq, p.n)
	}
	return fmt.Sprintf("%d-%d-%d-%x", p.seq, p.n, p.text, p.sum)
}

// parsePosition parses a position; empty is the zero value.
func parsePosition(text string) (p position, err error) {
	if text == "" {
		return p, nil
	}
	if strings.Count(text, "-") == 1 {
		text += "-0-0"
	}
	if _, err := fmt.Sscanf(text, "%d-%d-%d-%x", &p.seq, &p.n, &p.text, &p.sum); err != nil || p.seq == 0 || p.n < 0 || p.text < 0 {
		return position{}, fmt.Errorf("updates after %q: it is not the position of an update", text)
	}
	return p, nil
}

func sumOf(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return h.Sum64()
}

// runOf returns the run of a call, r1t2c0.
func runOf(call string) (run uint32) {
	_, _ = fmt.Sscanf(call, "r%d", &run) // 0: it is no call's name
	return run
}
