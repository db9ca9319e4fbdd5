package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
)

// The kinds of items. An item without a kind is no part of the conversation.
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
	kindWindow   = "window"   // something left what the model is shown; it stays in the transcript
	kindEnd      = "end"      // a run ended
)

// item is one thing that happened in a session: an entry of a conversation, a line
// about an event, or both.
type item struct {
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

	line string // for people, without a time; empty: the item has none
	todo string // what the reader can do
}

// oneLine returns the item's line. What a model, a tool or a stranger wrote in it
// can't begin another one; the writer escapes other terminal controls.
func (it *item) oneLine() string { return lineBreaks.Replace(it.line) }

var lineBreaks = strings.NewReplacer("\n", " ", "\t", " ")

// lined returns an item with a line and nothing else.
func lined(format string, args ...any) item { return item{line: fmt.Sprintf(format, args...)} }

// noticed returns what a notice, or a progress, of a session says. It is the same
// for notices that a fold returns and for those that arrive. body is a value.
func noticed(sid, typ string, body any) []item {
	switch d := body.(type) {
	case session.RunPlaced:
		all := []item{{Kind: kindRun, Run: d.Run, Model: d.Provider + "/" + d.Model}}
		if typ == session.NoticeRunQueued {
			all[0] = lined("run %d is queued: another run is active", d.Run)
		}
		if len(d.Ignored) > 0 {
			all = append(all, lined("disable: the session has no tool %s: ignored", strings.Join(d.Ignored, ", ")))
		}
		return all
	case session.TurnSettled:
		return turned(d)
	case session.CallSettled:
		return []item{called(d)}
	case session.ToolRejected:
		return []item{{line: refused(d)}}
	case session.CallsPlanned:
		return []item{lined("%s group %d of %d, for a host loop: %s", d.Batch, d.Group+1, len(d.Groups), cmp.Or(strings.Join(d.Calls, " "), "none yet"))}
	case session.ApprovalRequested:
		return []item{asked(sid, d)}
	case session.BudgetExceeded:
		breach := breach(sid, d)
		return []item{{Kind: kindPaused, Detail: breach, line: fmt.Sprintf("run %d is paused: %s", d.Run, breach)}}
	case session.ContextCleared:
		return []item{left(typ, d.Run, fmt.Sprintf("not shown %s of earlier calls any more", count(d.Results, "result")), d.TokensBefore, d.Tokens)}
	case session.ContextCompacted:
		return []item{left(typ, d.Run, fmt.Sprintf("shown a summary (event %d) in the place of %s", d.SummarySeq, count(d.Items, "earlier message")), d.TokensBefore, d.Tokens)}
	case session.ContextCut:
		return []item{left(typ, d.Run, fmt.Sprintf("not shown %s any more", count(d.Items, "earlier message")), d.TokensBefore, d.Tokens)}
	case session.LimitNear:
		return []item{{line: nearLimit(sid, &d.Warning)}}
	case session.RunFinished:
		end := item{Kind: kindEnd, Run: d.Run, Status: string(d.Lifecycle), Code: d.Code, Detail: d.Detail, FinishReason: d.FinishReason}
		if d.Lifecycle != session.Completed {
			end.line = ended(d.Run, d.Lifecycle, d.Code, d.Detail)
		}
		if d.FinishReason == "" {
			return []item{end}
		}
		return []item{end, {line: answerEnded(d.FinishReason)}}
	case spaces.WorkspaceStaged, spaces.WorkspaceApplied, spaces.WorkspaceFailed, spaces.WorkspaceGone, spaces.WorkspaceDisplaced:
		return []item{{line: aboutSpace(d)}}
	}
	return nil
}

// left says what left the window of a run. what is what the model is shown, or not.
func left(typ string, run uint32, what string, before, after int64) item {
	detail := fmt.Sprintf("from here on the model is %s: about %d tokens, before %d", what, after, before)
	return item{Kind: kindWindow, Status: typ, Detail: detail, line: fmt.Sprintf("run %d: %s", run, detail)}
}

// turned says how an answer ended after which the run goes on.
func turned(d session.TurnSettled) (all []item) {
	if d.FinishReason != "" && d.FinishReason != session.FinishStop && d.Calls == 0 {
		all = append(all, item{line: answerEnded(d.FinishReason)})
	}
	if d.Invalid != "" {
		all = append(all, lined("the answer does not have the required form: %s; the model is asked to repair it", d.Invalid))
	}
	return all
}

// called says how a call ended.
func called(d session.CallSettled) item {
	text := fmt.Sprintf("%s %s %s", d.Status, d.ToolName, d.Effect)
	if d.DurationMS > 0 {
		text += fmt.Sprintf(" (%d ms)", d.DurationMS)
	}
	for _, part := range []string{d.Code, shorten(d.Detail), shorten(d.Output)} {
		text += prefixed(": ", part)
	}
	if d.Output == "" && d.OutputBytes > 0 {
		text += fmt.Sprintf(": %d bytes, in a blob", d.OutputBytes)
	}
	return item{line: text}
}

// asked says that a call waits for a person.
func asked(sid string, d session.ApprovalRequested) item {
	arguments := shorten(d.Arguments)
	if d.ArgumentsSeq != 0 {
		arguments = fmt.Sprintf("(arguments at %d)", d.ArgumentsSeq)
	}
	return item{
		Kind: kindAsked, Call: d.Call, Tool: d.ToolName,
		line: fmt.Sprintf("waits for approval until %s: %s %s (%s) %s", moment(d.Deadline), d.ToolName, d.Call, d.ToolID, arguments),
		todo: fmt.Sprintf("refold approve %s %s    refold deny %s %s --reason …", sid, d.Call, sid, d.Call),
	}
}

// breach describes the exceeded budget and how to resume the run.
func breach(sid string, d session.BudgetExceeded) string {
	return fmt.Sprintf("%d of %d %s are used, and the next turn's input takes about %d; to continue: refold resume %s --budget '{\"%s\":…}'",
		d.Used, d.Limit, d.Budget, d.Estimate, sid, d.Budget)
}

// nearLimit describes a limit that is near, and what to do.
func nearLimit(sid string, w *session.Warning) string {
	what := "items"
	if w.Limit == session.LimitItemBytes {
		what = "bytes of references"
	}
	return fmt.Sprintf("the transcript of %s has %d of at most %d %s, and then every run fails: add a context to the config of its runs, or continue in a new session",
		sid, w.Used, w.Max, what)
}

// lines prints the items that have a line, with the time since the first one.
type lines struct {
	out   io.Writer
	began int64 // time of the first item, Unix ms
}

func (l *lines) entry(it *item) {
	if it.line == "" {
		return
	}
	l.began = cmp.Or(l.began, it.Time)
	fmt.Fprintf(l.out, "%8.3fs  %s\n", float64(it.Time-l.began)/1000, it.oneLine())
}

// lineMax is the number of a text's characters that one line shows.
const lineMax = 100

// shorten puts text on one line of at most lineMax characters.
func shorten(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > lineMax {
		return string(runes[:lineMax]) + "…"
	}
	return text
}

// brieflyOf returns content on one line, without the text of blobs.
func brieflyOf(c *session.Content) string { return shorten(textOf(c, inBrackets)) }

// inBrackets is the text of a blob that is not read.
func inBrackets(_ *session.Content, what string) string { return "[" + what + "]" }

// textOf returns the text of content. blob returns that of a blob with text, which
// what describes; brackets describe other blobs.
func textOf(c *session.Content, blob func(c *session.Content, what string) string) string {
	switch {
	case c == nil:
		return ""
	case c.Blob != nil:
		what := fmt.Sprintf("%s, %d bytes, %s", cmp.Or(c.MediaType, "text"), c.Size, c.Blob)
		if c.Name != "" {
			what = c.Name + ", " + what
		}
		if !session.IsShownAsText(c.MediaType) {
			blob = inBrackets
		}
		return blob(c, what)
	case len(c.Parts) > 0:
		texts := make([]string, len(c.Parts))
		for i := range c.Parts {
			texts[i] = textOf(&c.Parts[i], blob)
		}
		return strings.Join(texts, "\n")
	}
	return c.Text
}
