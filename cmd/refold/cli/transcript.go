package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/refold/refold/client"
	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/transcript"
)

// transcriptCommand prints a conversation.
type transcriptCommand struct {
	Session string `arg:"" archive:"" help:"The session, or the file of its archive: a name with a dot or a slash."`
	Number  uint32 `name:"run" placeholder:"N" help:"Only this run."`
	Format  string `enum:"md,json,openai,anthropic" default:"md" help:"md: Markdown. json: a JSON object an entry. openai: a messages array as OpenAI's chat API takes it. anthropic: one as Anthropic's API takes it."`
	JSON    bool   `name:"json" help:"The same as --format json."`
}

// Help returns the help text above the flags.
func (transcriptCommand) Help() string {
	return `It folds the log again, and needs no session-actor. Texts in blobs are read from the
blob store, up to 1 MiB each; brackets mark what is not printed. The prompt before the
conversation is not part of it: refold prompt prints that. A line marks each place from
which on the model was shown less of what stands above it: refold prompt --window prints
what a turn showed. The formats openai and anthropic have no such lines, and a
placeholder for each missing result, since these APIs require one for every call.`
}

func (t transcriptCommand) Run(ctx context.Context, s streams, conn connection) error {
	c, sid, err := conn.reader(ctx, t.Session)
	if err != nil {
		return err
	}
	defer c.Close()
	screen := settings.ScreenOf(s.out)
	var out transcript.Format = markdownOn(screen, sid)
	switch {
	case t.JSON || t.Format == "json":
		out = objects{s.out}
	case t.Format == "openai":
		out = &transcript.OpenAI{Out: s.out}
	case t.Format == "anthropic":
		out = &transcript.Anthropic{Out: s.out}
	}
	printed := false
	last, err := transcript.Each(ctx, c, sid, func(e *client.TranscriptEntry) {
		if t.Number == 0 || e.Run == t.Number {
			printed = true
			out.Entry(e)
		}
	})
	switch {
	case err != nil:
		return err
	case !printed && t.Number != 0:
		return fmt.Errorf("session %s has no run %d that has begun; it has %d requested runs", sid, t.Number, last.Runs)
	}
	out.End()
	return nil
}

// markdownOn prints a conversation on a screen.
func markdownOn(screen settings.Screen, sid string) *transcript.Markdown {
	return &transcript.Markdown{Out: screen, Session: sid, Bold: func(text string) { screen.Paint(settings.Bold, text) }, Spelled: settings.Spelled}
}

// objects prints a JSON object an entry.
type objects struct{ out io.Writer }

// Entry implements transcript.Format.
func (o objects) Entry(e *client.TranscriptEntry) { printJSON(o.out, e) }

// End implements transcript.Format.
func (o objects) End() {}
