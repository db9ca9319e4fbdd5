package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/media"
	"github.com/refold/refold/internal/prompt"
)

// The kinds of entries.
const (
	kindRun      = "run"      // a run began
	kindInput    = "input"    // a user's text that began a run
	kindSteer    = "steer"    // a user's text for an active run, when a turn took it
	kindRepair   = "repair"   // the session asked the model to repair its answer, as the model is shown it
	kindText     = "text"     // a model's text
	kindCall     = "call"     // a call that the model made
	kindResult   = "result"   // the call's result, as the model is shown it
	kindAsked    = "asked"    // a call waits for a person
	kindDecided  = "decided"  // a person decided over a call
	kindFailed   = "failed"   // an attempt at a turn failed
	kindRejected = "rejected" // an event had no effect
	kindPaused   = "paused"   // the budget is used up
	kindEnd      = "end"      // a run ended
)

// entry is one step of a conversation.
type entry struct {
	Kind      string `json:"kind"`
	Run       uint32 `json:"run,omitempty"`
	Turn      string `json:"turn,omitempty"` // r1t2
	Seq       uint64 `json:"seq"`            // of the event in the log
	Time      int64  `json:"time"`           // Unix ms
	Text      string `json:"text,omitempty"`
	Call      string `json:"call,omitempty"` // r1t2c0
	Tool      string `json:"tool,omitempty"`
	Arguments string `json:"arguments,omitempty"`
	Status    string `json:"status,omitempty"` // of a result, a decision, or the end of a run
	Code      string `json:"code,omitempty"`
	Detail    string `json:"detail,omitempty"`
	By        string `json:"by,omitempty"`
	Model     string `json:"model,omitempty"` // provider/model

	FinishReason string `json:"finish_reason,omitempty"` // of a turn's text, or of the answer that ended a run; absent: stop, or tool_calls
}

// conversation folds a session's events into entries, in the model's order.
type conversation struct {
	c    *client.Client
	each func(*entry)

	run     uint32
	items   int                                 // number of emitted items of the transcript
	inputs  map[uint64]*session.Content         // inputs that no turn has taken yet, by event
	steers  map[uint64]bool                     // which of inputs steer a run
	turn    string                              // the turn of the latest calls
	calls   []session.ObservedCall              // of that turn
	results map[string]*session.ToolCallSettled // results of those calls, by name
	synced  map[uint64]*session.Content         // results of syncs, by event
	edits   map[uint64]*session.ApprovalDecided // decisions that changed arguments
}

func newConversation(c *client.Client, each func(*entry)) *conversation {
	return &conversation{
		c: c, each: each, inputs: map[uint64]*session.Content{}, steers: map[uint64]bool{},
		results: map[string]*session.ToolCallSettled{}, synced: map[uint64]*session.Content{}, edits: map[uint64]*session.ApprovalDecided{},
	}
}

// read reads a session to its newest event, and returns its number of runs.
func (v *conversation) read(ctx context.Context, sid string) (runs uint32, err error) {
	fold := v.c.Folder(sid)
	var state *session.State
	for e, err := range v.c.Read(ctx, sid, 0, 0) {
		if err != nil {
			return 0, err
		}
		var notices []session.Notice
		if notices, state, err = fold(ctx, e); err != nil {
			return 0, err
		}
		if err := v.add(ctx, e, notices, state); err != nil {
			return 0, err
		}
	}
	if state == nil {
		return 0, client.ErrNoSession
	}
	return state.Runs, nil
}

// add emits the entries of one event. notices are those that the fold returned
// for it, and after is the state after it.
func (v *conversation) add(ctx context.Context, e session.Event, notices []session.Notice, after *session.State) error {
	base := entry{Run: v.run, Seq: e.Seq, Time: e.Time}
	if refused := rejection(notices); refused != nil {
		base.Kind, base.Detail, base.Code, base.Status = kindRejected, refused.Detail, string(refused.Code), refused.Type
		v.each(&base)
		return nil
	}
	env, err := session.ReadEnvelope(e.Payload)
	if err == nil {
		v.remember(base, &env)
	}
	started := map[uint64]bool{} // inputs of runs that this event began: they follow the run's entry
	for _, n := range notices {
		if d, ok := n.Data.(session.RunPlaced); ok && n.Type == session.NoticeRunStarted {
			started[d.Seq] = true
		}
	}
	var first []session.Item
	for _, it := range after.ItemsSince(v.items) {
		if it.Role == session.RoleUser && started[it.Seq] {
			first = append(first, it)
			continue
		}
		if err := v.item(ctx, base, &it, &env); err != nil {
			return err
		}
	}
	v.items = after.ItemCount()
	for _, n := range notices {
		v.notice(base, n)
		base.Run = v.run
		if d, ok := n.Data.(session.RunPlaced); ok && started[d.Seq] {
			for i := range first {
				if first[i].Seq == d.Seq {
					if err := v.item(ctx, base, &first[i], &env); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// remember stores what later items need of an event, and emits entries without items.
func (v *conversation) remember(base entry, env *session.Envelope) {
	switch env.Type {
	case session.TypeRunRequested:
		if b, ok := bodyOf[session.RunRequested](env); ok {
			v.inputs[base.Seq] = &b.Input
			v.steers[base.Seq] = b.WhenBusy == session.BusySteer
		}
	case session.TypeSteerRequested:
		if b, ok := bodyOf[session.SteerRequested](env); ok {
			v.inputs[base.Seq], v.steers[base.Seq] = &b.Input, true
		}
	case session.TypeRunEdited:
		if b, ok := bodyOf[session.RunEdited](env); ok {
			v.inputs[base.Seq] = &b.Input
		}
	case session.TypeToolCallSettled:
		if b, ok := bodyOf[session.ToolCallSettled](env); ok {
			v.keepResult(b)
		}
	case session.TypeToolBatchSettled:
		if b, ok := bodyOf[session.ToolBatchSettled](env); ok {
			for i := range b.Results {
				v.keepResult(&b.Results[i])
			}
		}
	case session.TypeWorkspaceSnapshotReady:
		if b, ok := bodyOf[session.WorkspaceSnapshotReady](env); ok && b.Output != nil {
			v.synced[base.Seq] = b.Output
		}
	case session.TypeWorkspaceSyncUnchanged:
		if b, ok := bodyOf[session.WorkspaceSyncUnchanged](env); ok && b.Output != nil {
			v.synced[base.Seq] = b.Output
		}
	case session.TypeApprovalDecided:
		if b, ok := bodyOf[session.ApprovalDecided](env); ok {
			v.edits[base.Seq] = b
			base.Kind, base.Call, base.Tool, base.Status = kindDecided, b.Call, v.toolOf(b.Call), b.Decision
			base.Detail, base.Arguments, base.By = b.Reason, b.Arguments, env.By
			v.each(&base)
		}
	case session.TypeGenerationSettled:
		if b, ok := bodyOf[session.GenerationSettled](env); ok && b.Error != nil {
			base.Kind, base.Turn, base.Code, base.Detail = kindFailed, b.Effect, b.Error.Code, b.Error.Detail
			v.each(&base)
		}
	}
}

// bodyOf decodes the data of an event; ok is false if it has another form.
func bodyOf[T any](env *session.Envelope) (*T, bool) {
	body := new(T)
	return body, codec.Decode(env.Data, body) == nil
}

// keepResult stores the result of a call; the first one counts.
func (v *conversation) keepResult(r *session.ToolCallSettled) {
	call, _, _ := strings.Cut(r.Effect, "a") // of an attempt: r1t2c0a2
	if v.results[call] == nil {
		v.results[call] = r
	}
}

// toolOf returns the tool of a call of the latest turn.
func (v *conversation) toolOf(call string) string {
	for i := range v.calls {
		if v.callAt(i) == call {
			return v.calls[i].ToolName
		}
	}
	return ""
}

func (v *conversation) callAt(i int) string { return fmt.Sprintf("%sc%d", v.turn, i) }

// item emits an item of the transcript.
func (v *conversation) item(ctx context.Context, base entry, it *session.Item, env *session.Envelope) error {
	switch {
	case it.Role == session.RoleUser && it.Code != "":
		base.Kind, base.Turn, base.Code, base.Detail, base.Text = kindRepair, v.turn, it.Code, it.Detail.String(), prompt.RepairText(it.Detail.String())
		v.each(&base)
	case it.Role == session.RoleUser:
		base.Kind, base.Seq = kindInput, it.Seq
		if v.steers[it.Seq] && base.Run == v.run && base.Run != 0 {
			base.Kind = kindSteer
		}
		base.Text = v.text(ctx, v.inputs[it.Seq])
		delete(v.inputs, it.Seq)
		delete(v.steers, it.Seq)
		v.each(&base)
	case it.Role == session.RoleAssistant:
		return v.answer(ctx, base, env)
	case it.Role == session.RoleTool:
		v.result(ctx, base, it)
	}
	return nil
}

// answer emits a turn's text, and its calls.
func (v *conversation) answer(ctx context.Context, base entry, env *session.Envelope) error {
	var b session.ToolCallsObserved
	if env.Type != session.TypeToolCallsObserved {
		var g session.GenerationSettled
		if err := codec.Decode(env.Data, &g); err != nil {
			return err
		}
		b = session.ToolCallsObserved{Effect: g.Effect, Text: g.Text, FinishReason: g.FinishReason}
	} else if err := codec.Decode(env.Data, &b); err != nil {
		return err
	}
	v.turn, _, _ = strings.Cut(b.Effect, "a") // of an attempt: r1t2a3
	v.calls, base.Turn = b.Calls, v.turn
	clear(v.results)
	reply := base
	reply.Kind, reply.Text = kindText, v.text(ctx, b.Text)
	if b.FinishReason != session.FinishStop {
		reply.FinishReason = b.FinishReason
	}
	if reply.Text != "" || len(b.Calls) == 0 || reply.FinishReason != "" {
		v.each(&reply)
	}
	for i := range b.Calls {
		call := base
		call.Kind, call.Call, call.Tool, call.Arguments = kindCall, v.callAt(i), b.Calls[i].ToolName, b.Calls[i].Arguments
		if ref := b.Calls[i].ArgumentsBlob; ref != nil {
			call.Arguments = v.text(ctx, &session.Content{Blob: ref, MediaType: "application/json", Size: b.Calls[i].Size})
		}
		v.each(&call)
	}
	return nil
}

// result emits the result of a call.
func (v *conversation) result(ctx context.Context, base entry, it *session.Item) {
	base.Kind, base.Seq, base.Turn, base.Call = kindResult, it.Seq, v.turn, v.callAt(it.Call)
	base.Tool = v.toolOf(base.Call)
	if edit := v.edits[it.Edit]; edit != nil {
		base.Arguments = edit.Arguments
		delete(v.edits, it.Edit)
	}
	given := v.results[base.Call]
	switch {
	case it.Code == session.CodeAlreadyLoaded: // nothing failed
		base.Status, base.Text = string(session.CallSucceeded), it.Detail.String()
	case it.Code != "":
		base.Status, base.Code, base.Detail = statusGiven(it.Code), it.Code, it.Detail.String()
	case given == nil && v.synced[it.Seq] != nil: // a sync carried it out
		base.Status, base.Text = string(session.CallSucceeded), v.text(ctx, v.synced[it.Seq])
		delete(v.synced, it.Seq)
	case given == nil:
		base.Text = fmt.Sprintf("[event %d has no result of this call]", it.Seq)
	default:
		base.Status, base.Text = given.Status, v.text(ctx, given.Output)
		if given.Error != nil {
			base.Code, base.Detail = given.Error.Code, given.Error.Detail
		}
	}
	v.each(&base)
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

// notice emits an entry for a notice about runs or approvals.
func (v *conversation) notice(base entry, n session.Notice) {
	switch d := n.Data.(type) {
	case session.RunPlaced:
		if n.Type != session.NoticeRunStarted {
			return
		}
		v.run = d.Run
		base.Kind, base.Run, base.Model = kindRun, d.Run, d.Provider+"/"+d.Model
	case session.ApprovalRequested:
		base.Kind, base.Call, base.Tool = kindAsked, d.Call, d.ToolName
	case session.BudgetExceeded:
		base.Kind, base.Detail = kindPaused, breach(n.Session, d)
	case session.RunFinished:
		base.Kind, base.Run, base.Status, base.Code, base.Detail = kindEnd, d.Run, string(d.Lifecycle), d.Code, d.Detail
		base.FinishReason = d.FinishReason
	default:
		return
	}
	v.each(&base)
}

// blobMax is the size of the largest blob that is printed.
const blobMax = 1 << 20

// text returns the text of content, with brackets for parts that are not printed.
func (v *conversation) text(ctx context.Context, c *session.Content) string {
	switch {
	case c == nil:
		return ""
	case c.Blob != nil:
		what := fmt.Sprintf("%s, %d bytes, %s", cmp.Or(c.MediaType, "text"), c.Size, c.Blob)
		if c.Name != "" {
			what = c.Name + ", " + what
		}
		if !session.IsShownAsText(c.MediaType) {
			return "[" + what + "]"
		}
		if c.Size > blobMax {
			return fmt.Sprintf("[%s: more than the %d bytes that are printed]", what, blobMax)
		}
		text, err := v.c.Text(ctx, c)
		if err != nil {
			return fmt.Sprintf("[%s: %v]", what, err)
		}
		if kind := media.Type([]byte(text)); kind != "" && !media.IsText([]byte(text)) {
			return fmt.Sprintf("[%s: by its bytes it is %s]", what, kind)
		}
		return text
	case len(c.Parts) > 0:
		texts := make([]string, len(c.Parts))
		for i := range c.Parts {
			texts[i] = v.text(ctx, &c.Parts[i])
		}
		return strings.Join(texts, "\n")
	}
	return c.Text
}
