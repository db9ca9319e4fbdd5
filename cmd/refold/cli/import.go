package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/archive"
	"github.com/refold/refold/internal/transcript"
	"github.com/refold/refold/subjects"
)

// importSessionCommand continues a conversation as a new session.
type importSessionCommand struct {
	File string `arg:"" help:"The conversation: an archive, or messages as OpenAI or Anthropic have them, as JSON; - is standard input."`
	As   string `required:"" placeholder:"SESSION" help:"Name of the new session."`
	asJSON
}

// Help returns the help text above the flags.
func (importSessionCommand) Help() string {
	return `The messages become the head of the session: the model is shown them before the input of
the first run. Messages are a JSON array, or an object with one as "messages", in the form
of OpenAI's chat API or of Anthropic's. System texts are left out: a session's config has
its own. Of an archive the conversation is imported as refold transcript prints it; the
new session has its own log, config and tools. It needs the rights of an operator.`
}

// importedJSON is what --json prints.
type importedJSON struct {
	Session  string `json:"session"`
	Seq      uint64 `json:"seq"` // of the event
	Messages int    `json:"messages"`
	System   int    `json:"system"`   // system texts that were left out
	Thoughts int    `json:"thoughts"` // parts with reasoning that were left out
}

// importBytesMax is how much is read of a file with messages: images are in it as text.
const importBytesMax = 256 << 20

// Run imports the file.
func (i importSessionCommand) Run(ctx context.Context, s streams, conn connection) error {
	if err := subjects.ValidSession(i.As); err != nil {
		return &statusError{statusUsage, "import: --as: " + err.Error()}
	}
	p, err := i.read(ctx, s.in)
	if err != nil {
		return fmt.Errorf("import %s: %w", i.File, err)
	}
	c, err := conn.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	seq, err := c.Import(ctx, i.As, p.Messages, "")
	if err != nil {
		return err
	}
	if _, err := c.Taken(ctx, i.As, seq); err != nil {
		return fmt.Errorf("session %s refused the import: %w", i.As, err)
	}
	if i.JSON {
		printJSON(s.out, importedJSON{i.As, seq, len(p.Messages), p.System, p.Thoughts})
		return nil
	}
	fmt.Fprintf(s.out, "imported %s into session %s; go on: refold run %s \"…\"\n", transcript.Count(len(p.Messages), "message"), i.As, i.As)
	if p.System > 0 {
		fmt.Fprintf(s.err, "%s left out: the session's config has its own, as system\n", transcript.Count(p.System, "system text"))
	}
	if p.Thoughts > 0 {
		fmt.Fprintf(s.err, "%s of reasoning left out: only the provider that wrote it can read it\n", transcript.Count(p.Thoughts, "part"))
	}
	return nil
}

// read reads the conversation.
func (i importSessionCommand) read(ctx context.Context, in io.Reader) (*transcript.Parsed, error) {
	var data []byte
	if i.File == "-" {
		var err error
		if data, err = io.ReadAll(io.LimitReader(in, importBytesMax+1)); err != nil {
			return nil, err
		}
	} else {
		file, err := os.Open(i.File)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		switch is, err := archive.Is(file); {
		case err != nil:
			return nil, err
		case is:
			return readArchived(ctx, i.File)
		}
		if data, err = io.ReadAll(io.LimitReader(file, importBytesMax+1)); err != nil {
			return nil, err
		}
	}
	if len(data) > importBytesMax {
		return nil, fmt.Errorf("it has over %d MiB: leave out the oldest messages", importBytesMax>>20)
	}
	return transcript.Parse(data)
}

// readArchived reads the conversation of an archive.
func readArchived(ctx context.Context, name string) (*transcript.Parsed, error) {
	c, sid, err := client.OpenArchive(name)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var text bytes.Buffer
	out := &transcript.OpenAI{Out: &text}
	if _, err := transcript.Each(ctx, c, sid, out.Entry); err != nil {
		return nil, err
	}
	out.End()
	p, err := transcript.Parse(text.Bytes())
	if err != nil {
		return nil, errors.Join(errors.New("the archive's conversation can't be continued"), err)
	}
	return p, nil
}
