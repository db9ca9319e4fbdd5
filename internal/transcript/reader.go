package transcript

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/llm"
	"github.com/refold/refold/internal/prompt"
)

// Reader turns a session's events into items, for all layouts. Lines about events
// come in the log's order; the conversation comes in the model's: an input when a
// turn takes it, results when all calls of a turn have one. What an item says is
// the effect of the event on the session, not the event's own claim.
type Reader struct {
	text func(*session.Content) string // of a conversation
	Each func(*Entry)                  // is called with every entry

	run    uint32
	length int                                  // of the transcript before the event
	inputs map[uint64]*session.Content          // that no turn has taken yet, by event
	turn   string                               // of the latest calls
	given  map[uint64][]session.ToolCallSettled // results of those calls, by event
	edits  map[uint64]string                    // changed arguments of those calls, by event
	tools  map[string]string                    // of all calls
	open   map[string]int64                     // effects and calls that were open before the event, and since when: Unix ms
}

// NewReader returns a reader of a session from its first event on. text returns the text
// of content, and each is called with every entry.
func NewReader(text func(*session.Content) string, each func(*Entry)) *Reader {
	return &Reader{
		text: text, Each: each, inputs: map[uint64]*session.Content{}, tools: map[string]string{},
		given: map[uint64][]session.ToolCallSettled{}, edits: map[uint64]string{},
	}
}

// Read emits the items of one event. notices are those that the fold returned for
// it, and after is the state after it.
func (r *Reader) Read(e session.Event, notices []session.Notice, after *session.State) {
	base := Entry{Run: r.run, Seq: e.Seq, Time: e.Time}
	env, _ := session.ReadEnvelope(e.Payload) // without data, it is rejected
	data, _ := codec.ToJSON(env.Data)
	var names Mentions
	_ = json.Unmarshal(data, &names) // other values have no names
	for _, n := range notices {
		if d, ok := n.Data.(session.EventRejected); ok {
			base.Kind, base.Detail, base.Code, base.Status = client.EntryRejected, d.Detail, string(d.Code), d.Type
			base.Line = fmt.Sprintf("%s refused: %s: %s", r.about(e, d.Type, names), d.Code, d.Detail)
			r.Each(&base)
			return
		}
	}
	added := after.ItemsSince(r.length)
	if !r.counts(e, env.Type, names, len(notices)+len(added) > 0, after) {
		r.tell(base, r.about(e, env.Type, names)+" again: no effect")
		return
	}
	body, _ := prompt.Body(e) // nil: the conversation has nothing of it
	if b, ok := body.(*session.TranscriptImported); ok {
		r.imported(base, b)
	} else {
		r.event(base, &env, names, body, data, after)
		r.conversation(base, notices, added, body, after)
	}
	r.noticed(base, notices, body, after)
	r.length = after.ItemCount()
	r.open = r.opened(e, after)
}

// Mentions are the names in the data of an event or a notice, even if the rest of it
// has a fault.
type Mentions struct {
	Effect string `json:"effect"`
	Call   string `json:"call"`
	Batch  string `json:"batch"`
	Run    uint32 `json:"run"`
}

// about returns an event's type, with the names in its data.
func (r *Reader) about(e session.Event, typ string, names Mentions) string {
	if typ == "" {
		return fmt.Sprintf("an event of %d bytes through %s", len(e.Payload), e.Door)
	}
	place := cmp.Or(names.Effect, names.Call, names.Batch)
	return strings.Join(strings.Fields(typ+" "+r.tools[place]+" "+place), " ")
}

// opened returns the names of open effects, and of open calls of host loops, with
// the times since when they are open.
func (r *Reader) opened(e session.Event, after *session.State) map[string]int64 {
	open := map[string]int64{}
	opened := func(name string) { open[name] = cmp.Or(r.open[name], e.Time) }
	after.EachOpen(nil, func(p session.Place) bool {
		opened(p.String())
		return true
	}, nil)
	if t := after.Turn; t != nil && t.Batch != nil {
		for i := range t.Batch.Calls {
			if t.Batch.Calls[i].Status == session.CallOpen {
				opened(fmt.Sprintf("r%dt%dc%d", t.Run, t.Number, i))
			}
		}
	}
	return open
}

// took returns how long an effect was open.
func (r *Reader) took(e Entry, effect string) string {
	if since := r.open[effect]; since != 0 {
		return fmt.Sprintf(" (%d ms)", e.Time-since)
	}
	return ""
}

// counts reports whether an accepted event had an effect; a repeat has none. shows
// says that it has notices, or items of the transcript.
func (r *Reader) counts(e session.Event, typ string, names Mentions, shows bool, after *session.State) bool {
	switch {
	case names.Effect != "":
		return r.open[names.Effect] != 0
	case typ == session.TypeToolBatchSettled:
		return shows
	case typ == session.TypeRunRequested:
		return shows || after.Run != nil && slices.ContainsFunc(after.Run.Steers, func(of session.Steer) bool { return of.Seq == e.Seq })
	}
	return true
}

// tell emits a line that is no part of the conversation.
func (r *Reader) tell(base Entry, line string) {
	base.Line = line
	r.Each(&base)
}

// event emits the line of an event, and keeps what later items need of it.
func (r *Reader) event(base Entry, env *session.Envelope, names Mentions, body any, data []byte, after *session.State) {
	line := env.Type + " " + Shorten(string(data))
	switch b := body.(type) {
	case *session.RunRequested:
		r.inputs[base.Seq], line = &b.Input, "run requested: "+Briefly(&b.Input)
	case *session.SteerRequested:
		r.inputs[base.Seq], line = &b.Input, "steered: "+Briefly(&b.Input)
	case *session.RunEdited:
		r.inputs[base.Seq], line = &b.Input, fmt.Sprintf("run %d edited: %s", b.Run, Briefly(&b.Input))
	case *session.ScheduleSet:
		r.inputs[base.Seq], line = &b.Input, fmt.Sprintf("schedule %s set, %s: %s", b.Name, b.Times(), Briefly(&b.Input))
	case *session.ScheduleFired:
		line = "schedule " + b.Name + " fired"
	case *session.ToolCallSettled:
		r.given[base.Seq] = []session.ToolCallSettled{*b}
	case *session.ToolBatchSettled:
		r.given[base.Seq] = b.Results
	case *session.ReplyGiven:
		r.given[base.Seq] = []session.ToolCallSettled{b.Settled()}
	case *session.ChildSettled:
		r.given[base.Seq] = []session.ToolCallSettled{b.Settled()}
	case *session.ChildRequested:
		r.inputs[base.Seq], line = &b.Input, fmt.Sprintf("call %s of %s: %s", b.Call, b.Parent, Briefly(&b.Input))
	case *session.ChildStopped:
		line = fmt.Sprintf("%s of call %s by %s", b.How, b.Call, b.Parent)
	case *session.WorkspaceSnapshotReady:
		r.given[base.Seq] = synced(b.Output)
	case *session.WorkspaceSyncUnchanged:
		r.given[base.Seq] = synced(b.Output)
	case *session.ApprovalDecided:
		r.decided(base, env, b)
		return
	}
	switch t := after.Turn; env.Type {
	case session.TypeToolCallSettled, session.TypeReplyGiven, session.TypeChildSettled: // the line is that of its progress
		return
	case session.TypeToolCallsObserved, session.TypeGenerationSettled: // an answer has a line of its own
		if !slices.Contains(after.ItemsSince(r.length), session.Item{Role: session.RoleAssistant, Seq: base.Seq}) {
			r.failed(base, "turn "+names.Effect+r.took(base, names.Effect), body)
		}
		return
	case session.TypeStepPrepared:
		if t != nil && t.Step != nil && t.Step.Code != "" {
			line = fmt.Sprintf("step %s%s does not count: %s: %s", names.Effect, r.took(base, names.Effect), t.Step.Code, t.Step.Detail)
		}
	}
	r.tell(base, line)
}

// synced returns the result of a call that waited for a sync, whose event doesn't
// name the call.
func synced(output *session.Content) []session.ToolCallSettled {
	return []session.ToolCallSettled{{Status: string(session.CallSucceeded), Output: output}}
}

// failed emits a turn that has no answer.
func (r *Reader) failed(base Entry, turn string, body any) {
	b, ok := body.(*session.GenerationSettled)
	if !ok || b.Error == nil { // it has no text, or can't be used: then the run's end shows why
		r.tell(base, turn+": without an answer")
		return
	}
	base.Kind, base.Turn, base.Code, base.Detail = client.EntryFailed, b.Effect, b.Error.Code, b.Error.Detail
	base.Line = fmt.Sprintf("%s failed: %s: %s", turn, b.Error.Code, Shorten(b.Error.Detail))
	if b.Error.Code == llm.CodeRecordingEnded {
		base.Line = turn + ": the recording has no more turns"
	}
	r.Each(&base)
}

// decided emits what a person decided over a call.
func (r *Reader) decided(base Entry, env *session.Envelope, b *session.ApprovalDecided) {
	r.edits[base.Seq] = b.Arguments
	base.Kind, base.Call, base.Tool, base.Status = client.EntryDecided, b.Call, r.tools[b.Call], b.Decision
	base.Detail, base.Arguments, base.By = b.Reason, b.Arguments, env.By
	base.Line = "  " + decisions[b.Decision] + Prefixed(" ", base.Tool) + " " + b.Call + Prefixed(" with ", Shorten(b.Arguments)) + Prefixed(": ", Shorten(b.Reason))
	r.Each(&base)
}

// decisions are the words for what a person decided.
var decisions = map[string]string{session.DecisionApprove: "approved", session.DecisionDeny: "denied"}

// Noticed emits what an event's progress and notices say. The inputs of the runs
// that it began follow the runs.
func (r *Reader) noticed(base Entry, notices []session.Notice, body any, after *session.State) {
	for _, n := range append(after.Progress(), notices...) {
		if d, ok := n.Data.(session.CallSettled); ok && tells(notices, func(n session.ToolRejected) bool { return n.Effect == d.Effect }) {
			continue // the notice says more
		}
		for _, it := range Noticed(n.Session, n.Type, n.Data) {
			it.Run, it.Seq, it.Time = cmp.Or(it.Run, r.run), base.Seq, base.Time
			it.Line = Prefixed("  ", it.Line)
			if summary, ok := body.(*session.GenerationSettled); ok && n.Type == session.NoticeContextCompacted {
				it.Text = r.text(summary.Text)
			}
			r.Each(&it)
		}
		if d, ok := n.Data.(session.RunPlaced); ok && n.Type == session.NoticeRunStarted {
			base.Run, r.run = d.Run, d.Run
			r.input(base, client.EntryInput, d.Seq)
		}
	}
}

// tells reports whether a notice is a T for which is returns true.
func tells[T any](notices []session.Notice, is func(T) bool) bool {
	return slices.ContainsFunc(notices, func(n session.Notice) bool {
		d, ok := n.Data.(T)
		return ok && is(d)
	})
}

// conversation emits what an event added to the transcript, except for the inputs
// of the runs that it began.
func (r *Reader) conversation(base Entry, notices []session.Notice, added []session.Item, body any, after *session.State) {
	for i := range added {
		switch it := &added[i]; {
		case it.Role == session.RoleUser && it.Code != "":
			repair := base
			repair.Kind, repair.Turn, repair.Code, repair.Detail = client.EntryRepair, r.turn, it.Code, it.Detail.String()
			repair.Text = prompt.RepairText(repair.Detail)
			r.Each(&repair)
		case it.Role == session.RoleUser && !tells(notices, func(n session.RunPlaced) bool { return n.Seq == it.Seq }):
			r.input(base, client.EntrySteer, it.Seq)
		case it.Role == session.RoleAssistant:
			r.answer(base, body, after)
		case it.Role == session.RoleTool:
			r.result(base, it)
		}
	}
}

// input emits the user's text in the event at a sequence.
func (r *Reader) input(base Entry, kind string, seq uint64) {
	base.Kind, base.Seq, base.Text = kind, seq, r.text(r.inputs[seq])
	delete(r.inputs, seq)
	r.Each(&base)
}

// answer emits a turn's text and its calls.
func (r *Reader) answer(base Entry, body any, after *session.State) {
	var b session.ToolCallsObserved
	switch body := body.(type) {
	case *session.ToolCallsObserved:
		b = *body
	case *session.GenerationSettled:
		b = session.ToolCallsObserved{Effect: body.Effect, Text: body.Text, FinishReason: body.FinishReason}
	}
	r.turn, _, _ = strings.Cut(b.Effect, "a") // of an attempt: r1t2a3
	clear(r.given)
	clear(r.edits)
	base.Turn = r.turn
	reply := base
	reply.Text, reply.Line = r.text(b.Text), fmt.Sprintf("turn %s%s: %s", b.Effect, r.took(base, b.Effect), Briefly(b.Text))
	if b.FinishReason != session.FinishStop {
		reply.FinishReason = b.FinishReason
	}
	if reply.Text != "" || len(b.Calls) == 0 || reply.FinishReason != "" {
		reply.Kind = client.EntryText
	}
	r.Each(&reply)
	for i := range b.Calls {
		call := base
		call.Kind, call.Call, call.Tool, call.Arguments = client.EntryCall, r.callAt(i), b.Calls[i].ToolName, b.Calls[i].Arguments
		if ref := b.Calls[i].ArgumentsBlob; ref != nil {
			call.Arguments = r.text(&session.Content{Blob: ref, MediaType: "application/json", Size: b.Calls[i].Size})
		}
		r.tools[call.Call] = call.Tool
		if group := groupOf(i, base.Seq, after); group != "" {
			call.Line = fmt.Sprintf("  %s  %s %s", group, call.Tool, Shorten(b.Calls[i].Arguments))
		}
		r.Each(&call)
	}
}

func (r *Reader) callAt(i int) string { return fmt.Sprintf("%sc%d", r.turn, i) }

// groupOf returns the group of a call in the plan of the turn at a sequence, "" if
// the call was refused.
func groupOf(call int, seq uint64, after *session.State) string {
	t := after.Turn
	if t == nil || t.Batch == nil || t.Batch.Seq != seq {
		return "" // all calls were refused, and the next turn is open
	}
	for g, calls := range t.Batch.Plan.Groups {
		if slices.Contains(calls, call) {
			return fmt.Sprintf("group %d of %d", g+1, len(t.Batch.Plan.Groups))
		}
	}
	return ""
}

// result emits the result of a call.
func (r *Reader) result(base Entry, it *session.Item) {
	base.Kind, base.Seq, base.Turn, base.Call = client.EntryResult, it.Seq, r.turn, r.callAt(int(it.Call))
	base.Tool = r.tools[base.Call]
	base.Arguments = r.edits[it.Edit]
	given := slices.IndexFunc(r.given[it.Seq], func(of session.ToolCallSettled) bool {
		call, _, _ := strings.Cut(of.Effect, "a") // of an attempt: r1t2c0a2
		return call == base.Call || call == ""
	})
	switch {
	case session.IsSuccessCode(it.Code):
		base.Status, base.Text = string(session.CallSucceeded), it.Detail.String()
	case it.Code != "":
		base.Status, base.Code, base.Detail = statusGiven(it.Code), it.Code, it.Detail.String()
	case given < 0:
		base.Text = fmt.Sprintf("[event %d has no result of this call]", it.Seq)
	default:
		of := &r.given[it.Seq][given]
		base.Status, base.Text = of.Status, r.text(of.Output)
		if of.Error != nil {
			base.Code, base.Detail = of.Error.Code, of.Error.Detail
		}
	}
	r.Each(&base)
}

// statusGiven returns the status of a result that the session itself made: that of
// a call which started, or "refused".
func statusGiven(code string) string {
	switch code {
	case session.CodeCancelled:
		return string(session.CallCancelled)
	case session.CodeOutcomeUnknown:
		return string(session.CallUnknown)
	case session.CodeDeadlineExceeded, session.CodeBadSettlement:
		return string(session.CallFailed)
	}
	return "refused"
}
