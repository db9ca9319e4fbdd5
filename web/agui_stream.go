package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/transcript"
)

// aguiEvent is an event of the protocol: Type says which fields it has.
type aguiEvent struct {
	Type            string         `json:"type"`
	ThreadID        string         `json:"threadId,omitempty"`
	RunID           string         `json:"runId,omitempty"`
	ProtocolVersion string         `json:"protocolVersion,omitempty"`
	StepName        string         `json:"stepName,omitempty"`
	MessageID       string         `json:"messageId,omitempty"`
	Role            string         `json:"role,omitempty"`
	ToolCallID      string         `json:"toolCallId,omitempty"`
	ToolCallName    string         `json:"toolCallName,omitempty"`
	ParentMessageID string         `json:"parentMessageId,omitempty"`
	Delta           string         `json:"delta,omitempty"`
	Content         string         `json:"content,omitempty"`
	Messages        *[]aguiMessage `json:"messages,omitempty"`
	Outcome         *aguiOutcome   `json:"outcome,omitempty"`
	Message         string         `json:"message,omitempty"`
	Code            string         `json:"code,omitempty"`
	Name            string         `json:"name,omitempty"`
	Value           any            `json:"value,omitempty"`
	Metadata        *aguiMetadata  `json:"metadata,omitempty"`
}

// aguiMetadata is what a page of Refold may want to know besides.
type aguiMetadata struct {
	Refold aguiDetails `json:"refold"`
}

type aguiDetails struct {
	Run    uint32 `json:"run,omitempty"`    // of RUN_STARTED: the run's number in the session, to cancel it
	Status string `json:"status,omitempty"` // of TOOL_CALL_RESULT: how the call ended
	Code   string `json:"code,omitempty"`   // of TOOL_CALL_RESULT: why it did not succeed
}

// aguiOutcome is how a run of the protocol ended.
type aguiOutcome struct {
	Type       string          `json:"type"` // success, cancelled or interrupt
	Interrupts []aguiInterrupt `json:"interrupts,omitempty"`
}

// aguiInterrupt is a call that waits for a person.
type aguiInterrupt struct {
	ID             string          `json:"id"`
	Reason         string          `json:"reason"` // tool_call
	Message        string          `json:"message"`
	ToolCallID     string          `json:"toolCallId"`
	ExpiresAt      string          `json:"expiresAt,omitempty"`
	ResponseSchema json.RawMessage `json:"responseSchema"`
}

// decisionSchema is the schema of an aguiDecision.
var decisionSchema = json.RawMessage(`{"type":"object","properties":{"approved":{"type":"boolean"},"editedArgs":{"type":"object","description":"Arguments with which an approved call runs, in place of all of the model's."},"reason":{"type":"string","description":"Why it is denied, which the model is shown."}},"required":["approved"]}`)

// aguiVersion is the version of the protocol.
const aguiVersion = "1.0"

// aguiRun is a response: a run's messages, from an update on, after those that the page
// must have.
type aguiRun struct {
	c  *call
	s  *stream
	in *aguiInput

	run   uint32        // 0: none is active
	after string        // position: what comes after it is streamed
	shown []aguiMessage // before it; nil: the page has them

	began   bool
	turn    string // whose step is open, r1t2
	again   int    // how often that turn began again
	message string // that is open
	results map[string]bool
	replies map[string]bool // calls that were sent and wait, or waited, for the page
	ignored []string        // tools of the request
	gone    func()          // this reader is
	err     error           // of sending
}

// send sends an event. After an error it does nothing.
func (a *aguiRun) send(e *aguiEvent) {
	if a.err != nil {
		return
	}
	text, err := json.Marshal(e)
	if err == nil {
		err = a.s.send("", "", text)
	}
	a.err = err
}

// custom sends what the protocol has no event for.
func (a *aguiRun) custom(name string, value any) {
	a.send(&aguiEvent{Type: "CUSTOM", Name: "refold." + name, Value: value})
}

// stream sends the response.
func (a *aguiRun) stream() error {
	started := &aguiEvent{Type: "RUN_STARTED", ThreadID: a.in.Thread, RunID: a.in.Run, ProtocolVersion: aguiVersion}
	if a.run > 0 {
		started.Metadata = &aguiMetadata{aguiDetails{Run: a.run}}
	}
	a.send(started)
	a.tellIgnored()
	if a.shown != nil {
		a.snapshot()
	}
	if a.run == 0 {
		a.finish(aguiOutcome{Type: "success"})
	}
	if a.run == 0 || a.err != nil {
		return a.err
	}
	return a.c.follow(a.s, a.after, a.update)
}

// tellIgnored tells of what a request has and the server does not use.
func (a *aguiRun) tellIgnored() {
	if len(a.ignored)+len(a.in.Context) > 0 {
		a.custom("ignored", map[string]any{
			"tools": append([]string{}, a.ignored...), "context": len(a.in.Context),
			"detail": "An agent has the texts of its definition alone, and of two tools of one name its own.",
		})
	}
}

// snapshot sends the messages that the page must have, in place of all others.
func (a *aguiRun) snapshot() {
	kept, left := fitting(a.shown)
	a.shown = nil
	if left > 0 {
		a.custom("snapshot_cut", map[string]any{"messages": left, "detail": "The session's transcript has all of them."})
	}
	a.send(&aguiEvent{Type: "MESSAGES_SNAPSHOT", Messages: &kept})
}

// update sends what an update is to a page, and reports whether more may come.
func (a *aguiRun) update(u refold.Update) (more bool, err error) {
	what := updateOf(u)
	if what.Run != a.run && what.Run != 0 {
		if what.Type == "approval_asked" && !a.began { // the run is queued behind it
			return !a.interrupt(what.Call.Call, u.Position()), a.err
		}
		return true, nil
	}
	switch more = true; what.Type {
	case "text":
		a.write(fmt.Sprintf("r%dt%d", what.Run, what.Turn), what.Delta)
	case "text_restarted":
		a.restart(a.c.seqOf(u))
	case "tool_asked":
		a.asked(what.Call)
	case "reply_asked":
		a.replies[what.Call.Call] = true
		more = !a.waits()
	case "tool_ended":
		a.ended(what.Call, a.c.seqOf(u))
		more = !a.waits()
	case "approval_asked":
		more = !a.interrupt(what.Call.Call, u.Position())
	case "run_started":
		a.began = true
	case "run_queued":
		a.custom("update", what)
		more = !a.interrupt("", u.Position())
	case "run_ended":
		a.end(what)
		more = false
	case "waiting":
		if what.Cause == "quarantined" {
			return false, a.failed(problem(409, CodeQuarantined, "%s", what.Detail))
		}
		a.custom("update", what)
	default: // the page can do without
		a.custom("update", what)
	}
	return more, a.err
}

// step begins the step of a turn, unless it is open.
func (a *aguiRun) step(turn string) {
	if a.turn == turn {
		return
	}
	a.closeStep()
	a.turn, a.again = turn, 0
	a.send(&aguiEvent{Type: "STEP_STARTED", StepName: turn})
}

func (a *aguiRun) closeStep() {
	a.closeMessage()
	if a.turn != "" {
		a.send(&aguiEvent{Type: "STEP_FINISHED", StepName: a.turn})
		a.turn = ""
	}
}

// messageID is the id of the message of the open turn.
func (a *aguiRun) messageID() string {
	if a.again > 0 {
		return fmt.Sprintf("%s-%d", a.turn, a.again+1)
	}
	return a.turn
}

// write sends text of a turn.
func (a *aguiRun) write(turn, delta string) {
	if delta == "" {
		return
	}
	if a.step(turn); a.message == "" {
		a.message = a.messageID()
		a.send(&aguiEvent{Type: "TEXT_MESSAGE_START", MessageID: a.message, Role: "assistant"})
	}
	a.send(&aguiEvent{Type: "TEXT_MESSAGE_CONTENT", MessageID: a.message, Delta: delta})
}

func (a *aguiRun) closeMessage() {
	if a.message != "" {
		a.send(&aguiEvent{Type: "TEXT_MESSAGE_END", MessageID: a.message})
		a.message = ""
	}
}

// restart takes the text of the open turn back: what comes again has another id.
func (a *aguiRun) restart(seq uint64) {
	if a.message == "" {
		return
	}
	a.closeMessage()
	a.again++
	history, err := a.c.aguiHistory()
	if err == nil {
		a.shown, err = history.until(a.run, seq)
	}
	if err != nil {
		a.fail(err)
		return
	}
	a.snapshot()
}

// asked sends a call that the model made.
func (a *aguiRun) asked(call *Call) {
	turn, _, _ := strings.Cut(call.Call, "c")
	a.step(turn)
	a.closeMessage()
	arguments := call.Arguments
	if arguments == "" { // or they are too large for an event
		whole, err := a.c.client.Arguments(a.c.ctx(), a.c.sid, call.Call)
		if err != nil {
			a.fail(err)
			return
		}
		arguments = orObject(whole)
	}
	a.send(&aguiEvent{Type: "TOOL_CALL_START", ToolCallID: call.Call, ToolCallName: call.Tool, ParentMessageID: a.messageID()})
	a.send(&aguiEvent{Type: "TOOL_CALL_ARGS", ToolCallID: call.Call, Delta: arguments})
	a.send(&aguiEvent{Type: "TOOL_CALL_END", ToolCallID: call.Call})
}

// ended sends the result of a call, as the model is shown it.
func (a *aguiRun) ended(call *Call, seq uint64) {
	if a.results[call.Call] {
		return
	}
	a.results[call.Call] = true
	turn, _, _ := strings.Cut(call.Call, "c")
	a.step(turn)
	text, err := a.c.output(seq, call.Call)
	if err != nil {
		a.fail(err)
		return
	}
	text = transcript.ResultText(&transcript.Entry{Text: text, Code: call.Code, Detail: call.Detail})
	a.send(&aguiEvent{
		Type: "TOOL_CALL_RESULT", MessageID: call.Call, ToolCallID: call.Call, Role: "tool", Content: text,
		Metadata: &aguiMetadata{aguiDetails{Status: call.Status, Code: call.Code}},
	})
}

// interrupt ends the response if calls of the session wait for a person, and among them
// the one that is named, if it is: the update that told of it may be an old one.
func (a *aguiRun) interrupt(named, position string) (ends bool) {
	view, err := a.c.client.ViewNow(a.c.ctx(), a.c.sid)
	if err != nil {
		a.fail(err)
		return true
	}
	if view.Batch == nil {
		return false
	}
	var all []aguiInterrupt
	for i := range view.Batch.Calls {
		call := &view.Batch.Calls[i]
		if call.Status != session.CallAwaiting || call.ArgsHash == "" {
			continue
		}
		if named == call.Effect {
			named = ""
		}
		it := aguiInterrupt{
			ID: interruptID(call, position), Reason: "tool_call", ToolCallID: call.Effect, ResponseSchema: decisionSchema,
			Message: fmt.Sprintf("%s waits for a person's approval.", call.ToolName),
		}
		if call.Deadline > 0 {
			it.ExpiresAt = time.UnixMilli(call.Deadline).UTC().Format(time.RFC3339Nano)
		}
		all = append(all, it)
	}
	if len(all) == 0 || named != "" {
		return false
	}
	a.finish(aguiOutcome{Type: "interrupt", Interrupts: all})
	return true
}

// end sends the end of the run.
func (a *aguiRun) end(of *Update) {
	switch of.Lifecycle {
	case session.Completed:
		a.finish(aguiOutcome{Type: "success"})
	case session.Failed:
		a.closeStep()
		a.send(&aguiEvent{Type: "RUN_ERROR", Message: cmp.Or(of.Detail, of.Code), Code: of.Code})
	default:
		a.finish(aguiOutcome{Type: "cancelled"})
	}
}

func (a *aguiRun) finish(outcome aguiOutcome) {
	a.closeStep()
	a.send(&aguiEvent{Type: "RUN_FINISHED", ThreadID: a.in.Thread, RunID: a.in.Run, Outcome: &outcome})
}

// fail ends the response with an error.
func (a *aguiRun) fail(err error) { a.err = cmp.Or(a.err, a.s.fail(err), errSent) }

// failed sends a problem that ends the response, and says that it was sent.
func (a *aguiRun) failed(p *Problem) error {
	a.send(&aguiEvent{Type: "RUN_ERROR", Message: p.Detail, Code: p.Code})
	return cmp.Or(a.err, errSent)
}
