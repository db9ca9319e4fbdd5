package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
)

// runCommand asks for a run.
type runCommand struct {
	Session  string `arg:"" help:"The session; it opens with its first run. 1 to 64 of A-Za-z0-9_-."`
	Text     string `arg:"" optional:"" help:"What to say; - or nothing reads standard input."`
	Provider string `help:"Provider of the model, with --model, instead of the session's config."`
	Model    string `help:"Model, with --provider."`
	System   string `help:"System text, with --provider and --model."`
	Config   string `placeholder:"JSON" help:"The whole run config as JSON, asked for through the door ctl."`
	WhenBusy string `enum:"queue,reject" default:"queue" help:"What to do while another run is active: queue or reject."`
	NoFollow bool   `help:"Print the request's sequence in the log and don't wait for the end."`
}

// Run asks, follows, and ends with the run's outcome.
func (r runCommand) Run(ctx context.Context, s streams, conn connection) error {
	text, err := r.text(s.in)
	if err != nil {
		return err
	}
	options, err := r.options()
	if err != nil {
		return err
	}
	c, err := conn.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if r.NoFollow {
		seq, err := c.Run(ctx, r.Session, text, options)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(s.out, seq)
		return err
	}
	return r.follow(ctx, s, c, text, options)
}

// text returns what to say.
func (r runCommand) text(in io.Reader) (string, error) {
	if r.Text != "" && r.Text != "-" {
		return r.Text, nil
	}
	if f, ok := in.(*os.File); ok && r.Text == "" {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return "", &statusError{statusUsage, `run: what shall be said? As in: refold run hello "What is here?"`}
		}
	}
	data, err := io.ReadAll(in)
	return string(data), err
}

// options returns the optional parts of the request.
func (r runCommand) options() (client.RunOptions, error) {
	o := client.RunOptions{WhenBusy: r.WhenBusy}
	if r.Config != "" {
		o.Config, o.Operator = json.RawMessage(r.Config), true
		return o, nil
	}
	if (r.Provider == "") != (r.Model == "") {
		return o, &statusError{statusUsage, "run: --provider and --model go together"}
	}
	if r.Provider == "" {
		if r.System != "" {
			return o, &statusError{statusUsage, "run: --system goes with --provider and --model"}
		}
		return o, nil
	}
	config := map[string]string{"provider": r.Provider, "model": r.Model}
	if r.System != "" {
		config["system"] = r.System
	}
	var err error
	o.Config, err = json.Marshal(config)
	return o, err
}

// follow asks for the run and shows the model's words as they come, and calls
// on standard error.
func (r runCommand) follow(ctx context.Context, s streams, c *client.Client, text string, options client.RunOptions) error {
	words := &live{out: s.out}
	if err := c.Live(ctx, r.Session, words.delta); err != nil {
		return err
	}
	from, err := c.LastNotice(ctx)
	if err != nil {
		return err
	}
	seq, err := c.Run(ctx, r.Session, text, options)
	if err != nil {
		return err
	}
	end, err := c.End(ctx, r.Session, seq, from+1, func(n client.Notice) { r.note(s.err, words, n, seq) })
	var rejected *client.RejectedError
	switch {
	case errors.As(err, &rejected):
		return &statusError{statusFailed, rejected.Error()}
	case errors.Is(err, context.Canceled):
		words.stop()
		return &statusError{statusFailed, "stopped; the run goes on: refold tail " + r.Session}
	case err != nil:
		words.stop()
		return err
	}
	answer, err := textOf(ctx, c, end.Output)
	if err != nil {
		return err
	}
	words.end(answer)
	if end.Lifecycle != session.Completed {
		return &statusError{statusFailed, outcome(end)}
	}
	return nil
}

// outcome tells how a run ended that was not completed.
func outcome(end client.RunEnd) string {
	text := fmt.Sprintf("run %d %s", end.Run, end.Lifecycle)
	for _, part := range []string{end.Code, end.Detail} {
		if part != "" {
			text += ": " + part
		}
	}
	return text
}

// note tells a notice that concerns the request.
func (r runCommand) note(out io.Writer, words *live, n client.Notice, seq uint64) {
	switch n.Type {
	case session.NoticeRunQueued, session.NoticeRunStarted:
		var d session.RunPlaced
		if json.Unmarshal(n.Data, &d) != nil || d.Seq != seq {
			return
		}
		words.of(d.Run)
		if n.Type == session.NoticeRunQueued {
			fmt.Fprintln(out, "queued: another run is active")
		}
	case session.NoticeToolRejected:
		var d session.ToolRejected
		if json.Unmarshal(n.Data, &d) == nil && words.ours(d.Effect) {
			fmt.Fprintf(out, "refused: %s: %s: %s\n", d.ToolName, d.Code, d.Detail)
		}
	}
}

// textOf returns the text of an answer, wherever it is kept.
func textOf(ctx context.Context, c *client.Client, content *session.Content) (string, error) {
	switch {
	case content == nil:
		return "", nil
	case content.Blob != nil:
		data, err := c.Blob(ctx, *content.Blob)
		return string(data), err
	case len(content.Parts) == 0:
		return content.Text, nil
	}
	var all strings.Builder
	for i := range content.Parts {
		text, err := textOf(ctx, c, &content.Parts[i])
		if err != nil {
			return "", err
		}
		all.WriteString(text)
	}
	return all.String(), nil
}
