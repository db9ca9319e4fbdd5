package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/refold/refold/client"
)

// Markdown prints a conversation for people. Texts are quoted, and arguments and
// results of tools are in fences, so that no text looks like the next entry.
type Markdown struct {
	Out     io.Writer
	Session string                   // of the head that is not printed yet
	Bold    func(text string)        // prints a text in bold; nil: as it is
	Spelled func(text string) string // what a line may hold; nil: any text on one line
}

// End ends the text.
func (m *Markdown) End() { m.begin() }

func (m *Markdown) begin() {
	if m.Session != "" {
		m.head("# Session " + m.Session)
		m.Session = ""
	}
}

// Entry prints the next entry.
func (m *Markdown) Entry(e *Entry) {
	m.begin()
	tool := fmt.Sprintf("`%s` %s", e.Tool, e.Call)
	because := strings.Trim(e.Code+": "+e.Detail, ": ")
	switch e.Kind {
	case client.EntryRun:
		fmt.Fprintln(m.Out)
		m.head(fmt.Sprintf("## Run %d: %s, %s", e.Run, e.Model, Moment(e.Time)))
	case client.EntryInput:
		m.quoted("User", e.Text)
	case client.EntrySteer:
		m.quoted("User, while the run was active", e.Text)
	case client.EntryRepair:
		m.line("The answer does not have the required form: %s. The model is asked to repair it.", e.Detail)
	case client.EntryText:
		m.quoted("Assistant", e.Text)
		if e.FinishReason != "" {
			m.line("%s.", AnswerEnded(e.FinishReason))
		}
	case client.EntryCall:
		m.fenced("Call of "+tool, "json", indented(e.Arguments))
	case client.EntryResult:
		head := fmt.Sprintf("Result of %s, %s", tool, e.Status)
		if because != "" {
			head += ": " + because
		}
		if e.Arguments != "" {
			head += ", run with other arguments: " + e.Arguments
		}
		m.fenced(head, "", e.Text)
	case client.EntryAsked:
		m.line("%s waits for approval.", tool)
	case client.EntryDecided:
		m.line("%s was %s%s%s.", tool, decisions[e.Status], Prefixed(" by ", e.By), Prefixed(": ", e.Detail))
	case client.EntryFailed:
		m.line("Turn %s failed: %s", e.Turn, because)
	case client.EntryRejected:
		m.line("%s was rejected: %s", OrDash(e.Status), because)
	case client.EntryPaused:
		m.line("The run is paused: %s", e.Detail)
	case client.EntryWindow:
		m.line("%s%s.", strings.ToUpper(e.Detail[:1]), e.Detail[1:])
		if e.Text != "" {
			m.quoted("Summary", e.Text)
		}
	case client.EntryEnd:
		if e.FinishReason != "" {
			because = AnswerEnded(e.FinishReason)
		}
		m.line("Run %d %s%s.", e.Run, e.Status, Prefixed(": ", because))
	}
}

func (m *Markdown) spelled(text string) string {
	if m.Spelled == nil {
		return lineBreaks.Replace(text)
	}
	return m.Spelled(text)
}

// lineBreaks keep a text from beginning a line of its own.
var lineBreaks = strings.NewReplacer("\r", " ", "\n", " ")

// bold prints a text between marks, in bold.
func (m *Markdown) bold(text, marks string) {
	text = marks + m.spelled(text) + marks
	if m.Bold == nil {
		fmt.Fprint(m.Out, text)
		return
	}
	m.Bold(text)
}

// head prints a line in bold.
func (m *Markdown) head(text string) {
	m.bold(text, "")
	fmt.Fprintln(m.Out)
}

// title prints the heading of an entry.
func (m *Markdown) title(text string) {
	fmt.Fprintln(m.Out)
	m.bold(text, "**")
	fmt.Fprintln(m.Out)
}

func (m *Markdown) line(format string, args ...any) {
	fmt.Fprintf(m.Out, "\n*%s*\n", m.spelled(fmt.Sprintf(format, args...)))
}

func (m *Markdown) quoted(who, text string) {
	m.title(who)
	fmt.Fprintf(m.Out, "\n> %s\n", strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n> "))
}

// fenced prints text in a fence that is longer than any fence in it.
func (m *Markdown) fenced(head, language, text string) {
	m.title(head)
	if text == "" {
		return
	}
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	fmt.Fprintf(m.Out, "\n%s%s\n%s\n%s\n", fence, language, strings.TrimRight(text, "\n"), fence)
}

// indented returns JSON text with a member a line, and other text unchanged.
func indented(text string) string {
	var out bytes.Buffer
	if text == "" {
		return "{}"
	}
	if json.Indent(&out, []byte(text), "", "  ") != nil {
		return text
	}
	return out.String()
}
