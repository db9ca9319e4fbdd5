package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/devserver"
	"github.com/refold/refold/internal/llm/scripted"
	"github.com/refold/refold/internal/transcript"
)

// demoCommand runs a session from start to replay, on a server of its own.
type demoCommand struct {
	Model        string `default:"demo" placeholder:"MODEL" help:"demo, or recorded:FILE (OpenAI chat JSONL, a conversation a line)."`
	Conversation string `placeholder:"ID" help:"The conversation of a recording. Default: the first."`
	All          bool   `help:"All conversations of a recording, 8 at a time, with a summary."`
	MCP          bool   `name:"mcp" help:"Use the tools of an MCP server: the filesystem server from npm, which npx starts."`
	MCPServer    string `name:"mcp-server" type:"path" placeholder:"FILE" help:"With --mcp: the server's program or .js file, instead of the one that npx fetches."`
	Inspect      bool   `help:"Serve the inspector when the session has ended, until Ctrl-C, and print its address."`
	Keep         bool   `help:"Keep the demo's directory and print its path."`
	Verbose      bool   `help:"Print the daemons' logs."`
	modelFlags
}

// demoSession is the session of the built-in demo.
const demoSession = "demo"

func (d demoCommand) Run(ctx context.Context, s streams, conn connection, full *Full) (err error) {
	dir, err := os.MkdirTemp("", "refold-demo-")
	if err != nil {
		return err
	}
	defer func() {
		if d.Keep {
			fmt.Fprintln(s.out, "kept:", dir)
			return
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	work := filepath.Join(dir, "program")
	if err := os.MkdirAll(work, 0o755); err != nil {
		return err
	}
	m, err := d.openModel(ctx, s, full, work, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	for _, note := range m.notes {
		fmt.Fprintln(s.err, "note:", note)
	}
	if (d.Conversation != "" || d.All) && m.recording == nil {
		return &statusError{statusUsage, "demo: --conversation and --all go with --model recorded:FILE"}
	}
	log := slog.New(slog.DiscardHandler)
	if d.Verbose {
		log = slog.New(slog.NewTextHandler(s.err, nil))
	}
	fmt.Fprintln(s.out, "Starting a NATS server, a session-actor and a bridge.")
	server, err := devserver.Start(ctx, devserver.Options{
		Dir: dir, Prefix: conn.Prefix, Install: m.install, Logger: log, Version: settings.Version(), Serve: m.serve, Roles: true,
	})
	if err != nil {
		return err
	}
	defer server.Stop()
	c, err := client.Connect(ctx, client.Options{InProcess: server.InProcess(), Context: server.Context(devserver.Operator), Prefix: conn.Prefix, Name: "refold-demo"})
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case failed := <-server.Failed():
			cancel(failed)
		case <-ctx.Done():
		}
	}()
	page := "/s/" + demoSession
	switch {
	case m.recording != nil:
		page = "/"
		err = d.playAll(ctx, s, c, m)
	case d.MCP:
		err = d.note(ctx, s.out, c, work)
	default:
		err = d.repair(ctx, s.out, c, work)
	}
	if err == nil && d.Inspect {
		err = d.show(ctx, s.out, server, conn.Prefix, page, log)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// openModel opens the model that the flags name, and its tools.
func (d demoCommand) openModel(ctx context.Context, s streams, full *Full, work, dir string) (*model, error) {
	if d.MCPServer != "" && !d.MCP || d.MCP && d.Model != "demo" {
		return nil, &statusError{statusUsage, "demo: --mcp-server goes with --mcp, and --model does not"}
	}
	if d.MCP {
		return d.mcpModel(ctx, s, full, work)
	}
	return d.open(d.Model, hostDirs{hosts: filepath.Join(dir, "hosts"), workdir: work}, dir)
}

// repair makes the session repair the broken program, and folds it again.
func (d demoCommand) repair(ctx context.Context, out io.Writer, c *client.Client, work string) error {
	_, files := scripted.Demo()
	if err := scripted.Unpack(files, work); err != nil {
		return err
	}
	fmt.Fprintf(out, "A session repairs the program in %s\n\n", work)
	began := time.Now()
	if err := tellRun(ctx, out, c, demoSession, scripted.DemoInput); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nThe run took %.1f s. Now all events are folded again, from the first one:\n", time.Since(began).Seconds())
	return foldAgain(ctx, out, c, demoSession)
}

// tellRun starts a run and prints its events and answer. It fails if the run
// does.
func tellRun(ctx context.Context, out io.Writer, c *client.Client, sid, text string) error {
	from, err := c.LastNotice(ctx)
	if err != nil {
		return err
	}
	seq, err := c.Run(ctx, sid, text, client.RunOptions{})
	if err != nil {
		return err
	}
	t := printEvents(ctx, out, c, sid)
	defer t.stop()
	var last uint64
	end, err := c.End(ctx, sid, seq, from+1, func(n client.Notice) { last = n.Seq })
	if err != nil {
		return err
	}
	if err := t.until(last); err != nil {
		return err
	}
	if end.Lifecycle != session.Completed {
		return errors.New(outcome(end))
	}
	if end.Output != nil {
		fmt.Fprintf(out, "\n%s\n", end.Output.Text)
	}
	return nil
}

// eventPrinter prints a session's events as they arrive.
type eventPrinter struct {
	stop    context.CancelFunc
	printed chan uint64 // sequence of the newest printed event; only the latest is kept
	ended   chan error
}

// printEvents starts to print a session's events from the first one on.
func printEvents(ctx context.Context, out io.Writer, c *client.Client, sid string) *eventPrinter {
	ctx, stop := context.WithCancel(ctx)
	t := &eventPrinter{stop: stop, printed: make(chan uint64, 1), ended: make(chan error, 1)}
	go func() {
		t.ended <- t.follow(ctx, transcript.NewReader(transcript.Briefly, (&transcript.Lines{Out: out}).Entry), c, sid)
	}()
	return t
}

func (t *eventPrinter) follow(ctx context.Context, r *transcript.Reader, c *client.Client, sid string) error {
	fold := c.Folder(sid)
	for e, err := range c.Events(ctx, sid, 1) {
		if err != nil {
			return err
		}
		notices, state, err := fold(ctx, e)
		if err != nil {
			return err
		}
		r.Read(e, notices, state)
		select {
		case <-t.printed:
		default:
		}
		t.printed <- e.Seq
	}
	return ctx.Err()
}

// until waits until the event at seq is printed, and stops.
func (t *eventPrinter) until(seq uint64) error {
	for {
		select {
		case printed := <-t.printed:
			if printed < seq {
				continue
			}
			t.stop()
			if err := <-t.ended; !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		case err := <-t.ended:
			return err
		}
	}
}

// foldAgain folds a session from its first event. It prints how the result
// compares with what is stored and with the session-actor's state.
func foldAgain(ctx context.Context, out io.Writer, c *client.Client, sid string) error {
	replayed, err := c.Replay(ctx, sid, 0, nil)
	if err != nil {
		return err
	}
	view, err := c.View(ctx, sid)
	if err != nil {
		return err
	}
	if view.Seq == replayed.Seq && view.Hash != replayed.Hash.String() {
		replayed.Differences = append(replayed.Differences, "the session-actor's state is "+view.Hash)
	}
	fmt.Fprintln(out, verdictLine(replayed))
	if !replayed.Identical() {
		return &statusError{statusFailed, "the replay differs"}
	}
	return nil
}
