package transcript

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/client"
)

// Entry is one thing that happened in a session: an entry of a conversation, a line
// about an event, or both. One without a kind is no part of the conversation.
type Entry = client.TranscriptEntry

// lined returns an item with a line and nothing else.
func lined(format string, args ...any) Entry { return Entry{Line: fmt.Sprintf(format, args...)} }

// Noticed returns what a notice, or a progress, of a session says. It is the same
// for notices that a fold returns and for those that arrive. body is a value.
func Noticed(sid, typ string, body any) []Entry {
	switch d := body.(type) {
	case session.RunPlaced:
		all := []Entry{{Kind: client.EntryRun, Run: d.Run, Model: d.Provider + "/" + d.Model}}
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
		return []Entry{called(d)}
	case session.ToolRejected:
		return []Entry{{Line: refused(d)}}
	case session.CallsPlanned:
		return []Entry{lined("%s group %d of %d, for a host loop: %s", d.Batch, d.Group+1, len(d.Groups), cmp.Or(strings.Join(d.Calls, " "), "none yet"))}
	case session.ApprovalRequested:
		return []Entry{asked(sid, d)}
	case session.ReplyRequested:
		return []Entry{questioned(sid, d)}
	case session.BudgetExceeded:
		breach := breach(sid, d)
		return []Entry{{Kind: client.EntryPaused, Detail: breach, Line: fmt.Sprintf("run %d is paused: %s", d.Run, breach)}}
	case session.ModelChanged:
		return []Entry{lined("run %d: %s of %s failed (%s), and %s of %s is asked", d.Run, d.FromModel, d.FromProvider, d.Code, d.Model, d.Provider)}
	case session.ContextCleared:
		return []Entry{left(typ, d.Run, fmt.Sprintf("not shown %s of earlier calls any more", Count(d.Results, "result")), d.TokensBefore, d.Tokens)}
	case session.ContextCompacted:
		return []Entry{left(typ, d.Run, fmt.Sprintf("shown a summary (event %d) in the place of %s", d.SummarySeq, Count(d.Items, "earlier message")), d.TokensBefore, d.Tokens)}
	case session.ContextCut:
		return []Entry{left(typ, d.Run, fmt.Sprintf("not shown %s any more", Count(d.Items, "earlier message")), d.TokensBefore, d.Tokens)}
	case session.ScheduleSkipped:
		return []Entry{{Line: fmt.Sprintf("schedule %s requested no run for %s: %s%s", d.Schedule, Moment(d.At), d.Code, because(d.Detail))}}
	case session.SchedulePaused:
		return []Entry{{Line: fmt.Sprintf("schedule %s is paused: %s%s", d.Schedule, d.Code, because(d.Detail))}}
	case session.LimitNear:
		return []Entry{{Line: NearLimit(sid, &d.Warning)}}
	case session.RunFinished:
		end := Entry{Kind: client.EntryEnd, Run: d.Run, Status: string(d.Lifecycle), Code: d.Code, Detail: d.Detail, FinishReason: d.FinishReason}
		if d.Lifecycle != session.Completed {
			end.Line = Ended(d.Run, d.Lifecycle, d.Code, d.Detail)
		}
		if d.FinishReason == "" {
			return []Entry{end}
		}
		return []Entry{end, {Line: AnswerEnded(d.FinishReason)}}
	case spaces.WorkspaceStaged, spaces.WorkspaceApplied, spaces.WorkspaceFailed, spaces.WorkspaceGone, spaces.WorkspaceDisplaced:
		return []Entry{{Line: AboutSpace(d)}}
	}
	return nil
}

// left says what left the window of a run. what is what the model is shown, or not.
func left(typ string, run uint32, what string, before, after int64) Entry {
	detail := fmt.Sprintf("from here on the model is %s: about %d tokens, before %d", what, after, before)
	return Entry{Kind: client.EntryWindow, Status: typ, Detail: detail, Line: fmt.Sprintf("run %d: %s", run, detail)}
}

// turned says how an answer ended after which the run goes on.
func turned(d session.TurnSettled) (all []Entry) {
	if d.FinishReason != "" && d.FinishReason != session.FinishStop && d.Calls == 0 {
		all = append(all, Entry{Line: AnswerEnded(d.FinishReason)})
	}
	if d.Invalid != "" {
		all = append(all, lined("the answer does not have the required form: %s; the model is asked to repair it", d.Invalid))
	}
	return all
}

// called says how a call ended.
func called(d session.CallSettled) Entry {
	text := fmt.Sprintf("%s %s %s", d.Status, d.ToolName, d.Effect)
	if d.DurationMS > 0 {
		text += fmt.Sprintf(" (%d ms)", d.DurationMS)
	}
	for _, part := range []string{d.Code, Shorten(d.Detail), Shorten(d.Output)} {
		text += Prefixed(": ", part)
	}
	if d.Output == "" && d.OutputBytes > 0 {
		text += fmt.Sprintf(": %d bytes, in a blob", d.OutputBytes)
	}
	return Entry{Line: text}
}

// asked says that a call waits for a person.
func asked(sid string, d session.ApprovalRequested) Entry {
	arguments := Shorten(d.Arguments)
	if d.ArgumentsSeq != 0 {
		arguments = fmt.Sprintf("(arguments at %d)", d.ArgumentsSeq)
	}
	return Entry{
		Kind: client.EntryAsked, Call: d.Call, Tool: d.ToolName,
		Line: fmt.Sprintf("waits for approval until %s: %s %s (%s) %s", Moment(d.Deadline), d.ToolName, d.Call, d.ToolID, arguments),
		Todo: fmt.Sprintf("refold approve %s %s    refold deny %s %s --reason …", sid, d.Call, sid, d.Call),
	}
}

// questioned says that a call waits for a reply.
func questioned(sid string, d session.ReplyRequested) Entry {
	arguments := Shorten(d.Arguments)
	if d.ArgumentsSeq != 0 {
		arguments = fmt.Sprintf("(arguments at %d)", d.ArgumentsSeq)
	}
	return Entry{
		Kind: client.EntryAsked, Call: d.Call, Tool: d.ToolName,
		Line: fmt.Sprintf("waits for a reply until %s: %s %s (%s) %s", Moment(d.Deadline), d.ToolName, d.Call, d.ToolID, arguments),
		Todo: fmt.Sprintf("refold reply %s %s \"…\"", sid, d.Call),
	}
}

// breach describes the exceeded budget and how to resume the run.
func breach(sid string, d session.BudgetExceeded) string {
	return fmt.Sprintf("%d of %d %s are used, and the next turn's input takes about %d; to continue: refold resume %s --budget '{\"%s\":…}'",
		d.Used, d.Limit, d.Budget, d.Estimate, sid, d.Budget)
}

// NearLimit describes a limit that is near, and what to do.
func NearLimit(sid string, w *session.Warning) string {
	what := "items"
	if w.Limit == session.LimitItemBytes {
		what = "bytes of references"
	}
	return fmt.Sprintf("the transcript of %s has %d of at most %d %s, and then every run fails: add a context to the config of its runs, or continue in a new session",
		sid, w.Used, w.Max, what)
}

// Lines prints the items that have a line, with the time since the first one.
type Lines struct {
	Out   io.Writer
	began int64 // time of the first item, Unix ms
}

// Entry prints the line of the next entry.
func (l *Lines) Entry(it *Entry) {
	if it.Line == "" {
		return
	}
	l.began = cmp.Or(l.began, it.Time)
	fmt.Fprintf(l.Out, "%8.3fs  %s\n", float64(it.Time-l.began)/1000, it.OneLine())
}

// lineMax is the number of a text's characters that one line shows.
const lineMax = 100

// Shorten puts text on one line of at most lineMax characters.
func Shorten(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > lineMax {
		return string(runes[:lineMax]) + "…"
	}
	return text
}

// Briefly returns content on one line, without the text of blobs.
func Briefly(c *session.Content) string { return Shorten(TextOf(c, inBrackets)) }

// inBrackets is the text of a blob that is not read.
func inBrackets(_ *session.Content, what string) string { return "[" + what + "]" }

// TextOf returns the text of content. blob returns that of a blob with text, which
// what describes; brackets describe other blobs.
func TextOf(c *session.Content, blob func(c *session.Content, what string) string) string {
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
			texts[i] = TextOf(&c.Parts[i], blob)
		}
		return strings.Join(texts, "\n")
	}
	return c.Text
}

// because returns a detail behind a code, if there is one.
func because(detail string) string {
	if detail == "" {
		return ""
	}
	return ": " + detail
}
