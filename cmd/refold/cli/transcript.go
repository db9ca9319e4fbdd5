package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/media"
)

// transcriptCommand prints a conversation.
type transcriptCommand struct {
	Session string `arg:"" help:"The session."`
	Number  uint32 `name:"run" placeholder:"N" help:"Only this run."`
	Format  string `enum:"md,json,openai" default:"md" help:"md: Markdown. json: a JSON object an entry. openai: a messages array as OpenAI's chat API takes it."`
	JSON    bool   `name:"json" help:"The same as --format json."`
}

// Help returns the help text above the flags.
func (transcriptCommand) Help() string {
	return `It folds the log again, and needs no session-actor. Texts in blobs are read from the
blob store, up to 1 MiB each; brackets mark what is not printed. The prompt before the
conversation is not part of it: refold prompt prints that. A line marks each place from
which on the model was shown less of what stands above it: refold prompt --window prints
what a turn showed. The format openai has no such lines, and a placeholder for each
missing result, since the API requires one for every call.`
}

// transcriptFormat prints a conversation, item by item, and then what ends it.
type transcriptFormat interface {
	entry(*item)
	end()
}

func (t transcriptCommand) Run(ctx context.Context, s streams, conn connection) error {
	c, err := conn.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	var out transcriptFormat = &markdown{screen: settings.ScreenOf(s.out), session: t.Session}
	switch {
	case t.JSON || t.Format == "json":
		out = objects{s.out}
	case t.Format == "openai":
		out = &chat{out: s.out}
	}
	printed := false
	r := newReader(func(content *session.Content) string { return printedText(ctx, c, content) }, func(it *item) {
		if it.Kind == "" || t.Number != 0 && it.Run != t.Number {
			return
		}
		printed = true
		out.entry(it)
	})
	runs, err := uint32(0), client.ErrNoSession
	fold := c.Folder(t.Session)
	for e, failed := range c.Read(ctx, t.Session, 0, 0) {
		var notices []session.Notice
		var state *session.State
		if err = failed; err == nil {
			notices, state, err = fold(ctx, e)
		}
		if err != nil {
			return err
		}
		r.read(e, notices, state)
		runs = state.Runs
	}
	switch {
	case err != nil:
		return err
	case !printed && t.Number != 0:
		return fmt.Errorf("session %s has no run %d that has begun; it has %d requested runs", t.Session, t.Number, runs)
	}
	out.end()
	return nil
}

// blobMax is the size of the largest blob that is printed.
const blobMax = 1 << 20

// printedText returns the text of content, with brackets for parts that are not
// printed.
func printedText(ctx context.Context, c *client.Client, content *session.Content) string {
	return textOf(content, func(blob *session.Content, what string) string {
		if blob.Size > blobMax {
			return fmt.Sprintf("[%s: more than the %d bytes that are printed]", what, blobMax)
		}
		text, err := c.Text(ctx, blob)
		if err != nil {
			return fmt.Sprintf("[%s: %v]", what, err)
		}
		if kind := media.Type([]byte(text)); kind != "" && !media.IsText([]byte(text)) {
			return fmt.Sprintf("[%s: by its bytes it is %s]", what, kind)
		}
		return text
	})
}

// objects prints a JSON object an entry.
type objects struct{ out io.Writer }

func (o objects) entry(e *item) { printJSON(o.out, e) }
func (o objects) end()          {}

// markdown prints a conversation for people. Texts are quoted, and arguments and
// results of tools are in fences, so that no text looks like the next entry.
type markdown struct {
	screen  settings.Screen
	session string // of the head that is not printed yet
}

func (m *markdown) end() { m.begin() }

func (m *markdown) begin() {
	if m.session != "" {
		m.head("# Session " + m.session)
		m.session = ""
	}
}

func (m *markdown) entry(e *item) {
	m.begin()
	tool := fmt.Sprintf("`%s` %s", e.Tool, e.Call)
	because := strings.Trim(e.Code+": "+e.Detail, ": ")
	switch e.Kind {
	case kindRun:
		fmt.Fprintln(m.screen)
		m.head(fmt.Sprintf("## Run %d: %s, %s", e.Run, e.Model, moment(e.Time)))
	case kindInput:
		m.quoted("User", e.Text)
	case kindSteer:
		m.quoted("User, while the run was active", e.Text)
	case kindRepair:
		m.line("The answer does not have the required form: %s. The model is asked to repair it.", e.Detail)
	case kindText:
		m.quoted("Assistant", e.Text)
		if e.FinishReason != "" {
			m.line("%s.", answerEnded(e.FinishReason))
		}
	case kindCall:
		m.fenced("Call of "+tool, "json", indented(e.Arguments))
	case kindResult:
		head := fmt.Sprintf("Result of %s, %s", tool, e.Status)
		if because != "" {
			head += ": " + because
		}
		if e.Arguments != "" {
			head += ", run with other arguments: " + e.Arguments
		}
		m.fenced(head, "", e.Text)
	case kindAsked:
		m.line("%s waits for approval.", tool)
	case kindDecided:
		m.line("%s was %s%s%s.", tool, decisions[e.Status], prefixed(" by ", e.By), prefixed(": ", e.Detail))
	case kindFailed:
		m.line("Turn %s failed: %s", e.Turn, because)
	case kindRejected:
		m.line("%s was rejected: %s", orDash(e.Status), because)
	case kindPaused:
		m.line("The run is paused: %s", e.Detail)
	case kindWindow:
		m.line("%s%s.", strings.ToUpper(e.Detail[:1]), e.Detail[1:])
		if e.Text != "" {
			m.quoted("Summary", e.Text)
		}
	case kindEnd:
		if e.FinishReason != "" {
			because = answerEnded(e.FinishReason)
		}
		m.line("Run %d %s%s.", e.Run, e.Status, prefixed(": ", because))
	}
}

// head prints a line in bold.
func (m *markdown) head(text string) {
	m.screen.Paint(settings.Bold, settings.Spelled(text))
	fmt.Fprintln(m.screen)
}

// title prints the heading of an entry.
func (m *markdown) title(text string) {
	fmt.Fprintln(m.screen)
	m.screen.Paint(settings.Bold, "**"+settings.Spelled(text)+"**")
	fmt.Fprintln(m.screen)
}

func (m *markdown) line(format string, args ...any) {
	fmt.Fprintf(m.screen, "\n*%s*\n", settings.Spelled(fmt.Sprintf(format, args...)))
}

func (m *markdown) quoted(who, text string) {
	m.title(who)
	fmt.Fprintf(m.screen, "\n> %s\n", strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n> "))
}

// fenced prints text in a fence that is longer than any fence in it.
func (m *markdown) fenced(head, language, text string) {
	m.title(head)
	if text == "" {
		return
	}
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	fmt.Fprintf(m.screen, "\n%s%s\n%s\n%s\n", fence, language, strings.TrimRight(text, "\n"), fence)
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
