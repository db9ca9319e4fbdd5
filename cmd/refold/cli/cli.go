// Package cli is the program refold: its commands, and how they print.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/refold/refold/client"
	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/llm/provider"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// cli has every command but those of the proof kit, in the order of the help.
type cli struct {
	connection
	Raw bool `help:"On a terminal, print texts of models and tools unchanged, with their control sequences."`

	Demo  demoCommand `cmd:"" help:"Watch a session repair a small program, on a server of its own; then replay it from its first event."`
	Dev   devCommand  `cmd:"" help:"Run a NATS server, a session-actor and a bridge in one process, for development."`
	Serve httpCommand `cmd:"" help:"Serve sessions over HTTP, for browsers and programs that know nothing of NATS."`
	Run   runCommand  `cmd:"" help:"Start a run of a session and follow it to its end."`

	Steer     steerCommand     `cmd:"" help:"Give a session's active run more input, before its next turn."`
	Cancel    cancelCommand    `cmd:"" help:"End a run at once: its open effects are withdrawn."`
	Interrupt interruptCommand `cmd:"" help:"End the active run when its open effects are settled."`
	Pause     pauseCommand     `cmd:"" help:"Pause the active run: it opens no new effects."`
	Resume    resumeCommand    `cmd:"" help:"Resume a paused run."`
	Queue     queueCommand     `cmd:"" help:"List the queued runs; edit or remove one."`
	Compact   compactCommand   `cmd:"" help:"Have the model go on from a summary of the conversation, from the next turn on."`
	Schedule  scheduleCommand  `cmd:"" help:"Have a session request runs at given times; list, pause or remove its schedules."`
	Close     closeCommand     `cmd:"" help:"Close a session permanently: its runs are cancelled."`

	Hold   holdCommand   `cmd:"" help:"Hold a session, so that nobody can delete it; --release ends the hold."`
	Adopt  adoptCommand  `cmd:"" help:"Move sessions to newer rules, after comparing what these would have done in their history."`
	Redact redactCommand `cmd:"" help:"Remove the text of one event for good: its session stays what it is."`
	Delete deleteCommand `cmd:"" help:"Delete sessions for good: their text, in every stream. It says first what it deletes, and how long that takes."`
	Retain retainCommand `cmd:"" help:"Archive and delete old sessions, as a policy says: once, or again and again."`
	Blobs  blobsCommand  `cmd:"" help:"Delete blobs that nothing names any more."`

	Approvals approvalsCommand `cmd:"" help:"List the calls that wait for a person, of a session or of all."`
	Approve   approveCommand   `cmd:"" help:"Approve a call that waits for a person, perhaps with other arguments."`
	Deny      denyCommand      `cmd:"" help:"Deny a call that waits for a person."`
	Waiting   waitingCommand   `cmd:"" help:"List the calls that wait for a reply, of a session or of all."`
	Reply     replyCommand     `cmd:"" help:"Answer a call that waits for a reply."`

	Sessions   sessionsCommand      `cmd:"" help:"List sessions: state, what each waits for, model, age, latest text."`
	Transcript transcriptCommand    `cmd:"" help:"Print a session's conversation, for people, programs or another model."`
	Archive    archiveCommand       `cmd:"" help:"Write sessions into files that can be read without a server."`
	Import     importSessionCommand `cmd:"" help:"Continue an archive, or a conversation of another system, as a new session."`
	Inspect    inspectCommand       `cmd:"" help:"Show the archive of a session in a browser, without a server."`
	Export     exportCommand        `cmd:"" help:"Write a session as a page of HTML that opens offline."`
	Log        logCommand           `cmd:"" help:"Print a session's events in full."`
	Tail       tailCommand          `cmd:"" help:"Print the notices of a session, or of all, as they arrive."`
	View       viewCommand          `cmd:"" help:"Print the present state of a session, as JSON."`

	Replay  replayCommand  `cmd:"" help:"Fold a session's events from the first one and print the hash of its state."`
	Trace   traceCommand   `cmd:"" help:"Show the timings of a session's runs, or export them to OpenTelemetry."`
	Verify  verifyCommand  `cmd:"" help:"Replay a session, or all, and report differences from what was stored; exit status 1 if there are any."`
	Release releaseCommand `cmd:"" help:"End a session's quarantine: print its cause and the effect of a release, and ask."`
	Decode  decodeCommand  `cmd:"" help:"Convert msgpack on standard input to JSON."`

	Install installCommand `cmd:"" help:"Publish the install record for new sessions: tools, profiles, default config."`
	Tools   toolsCommand   `cmd:"" help:"Show a session's tools, or list the bridges that serve the install record's tools."`
	Actor   actorCommand   `cmd:"" help:"Run a session-actor."`
	Bridge  bridgeCommand  `cmd:"" help:"Run a bridge; list the running ones, what they serve, and the effects that no bridge serves."`
	Doctor  systemsCommand `cmd:"" help:"Compare a NATS account with what Refold needs."`
	Why     whyCommand     `cmd:"" help:"Explain why a turn of a session offered a tool, or did not."`

	Space  spaceCommand  `cmd:"" help:"Manage workspaces: check folders of prompts, catalogs and context, and apply them to sessions."`
	Skills skillsCommand `cmd:"" help:"List a session's skills: available, active or not, and why."`
	Pack   packCommand   `cmd:"" help:"Sign and publish packs of tools, and enable them in sessions."`
	Prompt promptCommand `cmd:"" help:"Show a turn's prompt before the transcript, part by part with sizes."`

	Roles    rolesCommand    `cmd:"" help:"Write and test accounts and keys for NATS servers, each with the rights of a role."`
	Timers   timersCommand   `cmd:"" help:"Schedule the deadlines of all sessions again, after their stream was lost."`
	Webhooks webhooksCommand `cmd:"" help:"List the dead letters of webhooks: notices that no receiver took. Send them again."`
	Streams  streamsCommand  `cmd:"" help:"List the streams, buckets and consumers, or print one as the JetStream API takes it."`
	Version  versionCommand  `cmd:"" help:"Print the version, as --version does."`

	Completion completionCommand `cmd:"" help:"Print the completion script of a shell: bash, zsh or fish."`
	Complete   completeCommand   `cmd:"" hidden:""`
}

// connection has the flags for connecting to NATS.
type connection struct {
	NATS    string `name:"nats" group:"NATS" env:"NATS_URL" placeholder:"URL" help:"NATS servers, separated by commas. Default: the context's, else nats://127.0.0.1:4222."`
	Creds   string `group:"NATS" env:"NATS_CREDS" placeholder:"FILE" help:"Credentials file."`
	Context string `group:"NATS" env:"NATS_CONTEXT" placeholder:"NAME" help:"Context of the nats tool."`
	Prefix  string `group:"NATS" env:"REFOLD_PREFIX" default:"refold" help:"Prefix of all subjects."`
}

func (c connection) connect(ctx context.Context) (*client.Client, error) {
	return client.Connect(ctx, client.Options{URL: c.NATS, Creds: c.Creds, Context: c.Context, Prefix: c.Prefix, Name: "refold"})
}

// connectCore connects a client that does not use JetStream. It says on told when it
// begins to wait for the streams.
func (c connection) connectCore(ctx context.Context, told io.Writer) (*client.Client, error) {
	return client.Connect(ctx, client.Options{URL: c.NATS, Creds: c.Creds, Context: c.Context, Prefix: c.Prefix, Name: "refold", CoreOnly: true, Logger: slog.New(awaited{told})})
}

// awaited prints that a client waits for a stream; all other records it drops.
type awaited struct{ to io.Writer }

func (awaited) Enabled(_ context.Context, l slog.Level) bool { return l == slog.LevelWarn }

func (a awaited) Handle(_ context.Context, r slog.Record) error {
	if r.Message == journal.WaitsForLog {
		fmt.Fprintln(a.to, "waiting: no stream takes the request yet: for 30 s, until a session-actor has created the streams; start one: refold actor serve")
	}
	return nil
}

func (a awaited) WithAttrs([]slog.Attr) slog.Handler { return a }
func (a awaited) WithGroup(string) slog.Handler      { return a }

// dial connects a bus, for what a client doesn't do.
func (c connection) dial(ctx context.Context) (*bus.Bus, error) {
	return bus.Connect(ctx, natsio.Options{URL: c.NATS, Creds: c.Creds, Context: c.Context, Prefix: c.Prefix, Name: "refold"})
}

// streams are where a command reads and writes. A failed write to out ends the
// command, so printing functions return no error.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// output is where a command prints; a failed write ends the command.
type output struct {
	io.Writer
	end context.CancelCauseFunc
}

// writeError is the cause of a context that a failed write ended.
type writeError struct{ error }

func (o output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if err != nil {
		o.end(writeError{err})
	}
	return n, err
}

// unguarded returns s with an output whose failed writes do not end the command.
func (s streams) unguarded() streams {
	if out, ok := s.out.(output); ok {
		s.out = out.Below()
	}
	return s
}

// Below returns the writer below.
func (o output) Below() io.Writer { return o.Writer }

// asJSON is the --json flag of commands that print facts.
type asJSON struct {
	JSON bool `name:"json" help:"Print JSON, an object a line, and nothing else on standard output."`
}

// printJSON prints a value as JSON on its own line.
func printJSON(out io.Writer, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // a type that JSON can't encode
	}
	fmt.Fprintf(out, "%s\n", text)
}

// statusError ends the program with its exit status. With an empty text nothing
// is printed: the command has printed the reason already.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string   { return e.text }
func (e *statusError) ExitStatus() int { return e.status }

// Exit statuses, as `refold --help` lists them.
const (
	statusFailed      = 1   // the command or the run failed
	statusUsage       = 2   // the arguments are wrong
	statusInterrupted = 130 // Ctrl-C
)

const description = `Durable LLM agent sessions on NATS JetStream.

Begin with "refold demo". Then "refold dev" in one terminal and
"refold run hello 'What is here?'" in another.

Exit status: 0 done, 1 it failed (or the run did), 2 the arguments are wrong,
3 everything checked is right, but time ran out before the end (chaos --for),
130 it was stopped by Ctrl-C. "refold dev" ends with 0 then.`

// Run runs one command until it is done or ctx ends; it returns the exit status.
// Without full, refold-full takes this process over if the command needs it.
func Run(ctx context.Context, full *Full, args []string, in io.Reader, out, errOut io.Writer) (status int) {
	defer func() {
		if v := recover(); v != nil {
			exit, ok := v.(exitStatus)
			if !ok {
				panic(v)
			}
			status = int(exit)
		}
	}()
	var c cli
	parser, err := newParser(&c, full, out, errOut)
	if err != nil {
		fmt.Fprintln(errOut, "refold:", err)
		return statusFailed
	}
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "--version": // not a global flag: one command has its own --version
		args = []string{"version"}
	}
	command, err := parser.Parse(args)
	if err == nil {
		err = checkSession(command)
	}
	if err != nil {
		fmt.Fprintf(errOut, "refold: %v; see %s --help\n", err, commandOf(command, err))
		return statusUsage
	}
	if c.Raw {
		out, errOut = settings.Raw(out), settings.Raw(errOut)
	}
	running, end := context.WithCancelCause(ctx)
	defer end(nil)
	command.BindTo(running, (*context.Context)(nil))
	switch {
	case full != nil:
		err = command.Run(streams{in, output{out, end}, errOut}, full.Streams(in, out, errOut), c.connection, parser, full)
	case needsFull(command.Selected()):
		err = becomeProgram(ctx, fullProgram, args, os.Environ(), errOut)
	default:
		err = command.Run(streams{in, output{out, end}, errOut}, c.connection, parser, full)
	}
	if failed, ok := context.Cause(running).(writeError); ok {
		err = failed.error
	}
	return exitOf(ctx, errOut, err)
}

func newParser(c *cli, full *Full, out, errOut io.Writer) (*kong.Kong, error) {
	return kong.New(c, append(full.kit(),
		kong.Name("refold"), kong.Description(description), kong.Writers(out, errOut),
		kong.Vars{"real_models": provider.Kinds(":NAME")},
		kong.ExplicitGroups([]kong.Group{{Key: "NATS", Title: "NATS:"}}),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Exit(func(status int) { panic(exitStatus(status)) }),
	)...)
}

// checkSession returns an error if an argument is not a valid session name.
func checkSession(command *kong.Context) error {
	for _, p := range command.Path {
		if p.Positional == nil || p.Positional.Name != "session" {
			continue
		}
		names, several := p.Positional.Target.Interface().([]string)
		if !several {
			names = []string{p.Positional.Target.String()}
		}
		for _, sid := range names {
			if sid == "" || p.Positional.Tag.Has("archive") && isArchive(sid) {
				continue
			}
			if err := subjects.ValidSession(sid); err != nil {
				return err
			}
		}
	}
	return nil
}

// exitOf prints why a command ended, and returns the exit status.
func exitOf(ctx context.Context, errOut io.Writer, err error) int {
	var own interface { // of this package and of the proof kit
		error
		ExitStatus() int
	}
	status, text := statusFailed, "stopped"
	switch {
	case err == nil:
		return 0
	case errors.As(err, &own):
		status, text = own.ExitStatus(), own.Error()
	case ctx.Err() == nil:
		text = err.Error()
	}
	if errors.Is(err, client.ErrCursor) {
		status = statusUsage
	}
	if ctx.Err() != nil && status == statusFailed {
		status = statusOf(ctx)
	}
	if text != "" {
		fmt.Fprintln(errOut, "refold:", text)
	}
	return status
}

// stoppedBy is the cause of a context that a signal ended.
type stoppedBy syscall.Signal

func (s stoppedBy) Error() string { return syscall.Signal(s).String() }

// Is makes errors.Is treat it as context.Canceled: some libraries return the
// cause of a context where others return its error.
func (stoppedBy) Is(target error) bool { return target == context.Canceled }

// statusOf returns the exit status of a process that the signal killed.
func statusOf(ctx context.Context) int {
	var by stoppedBy
	if errors.As(context.Cause(ctx), &by) {
		return 128 + int(by)
	}
	return statusInterrupted
}

// commandOf returns the command, as far as it was parsed, that err is about.
func commandOf(command *kong.Context, err error) string {
	if command != nil && command.Selected() != nil {
		return command.Selected().FullPath()
	}
	var wrong *kong.ParseError
	if errors.As(err, &wrong) && wrong.Context != nil && wrong.Context.Selected() != nil {
		return wrong.Context.Selected().FullPath()
	}
	return "refold"
}

// exitStatus ends parsing: kong printed help.
type exitStatus int

// versionCommand prints the version.
type versionCommand struct{}

func (versionCommand) Run(s streams) error {
	fmt.Fprintln(s.out, "refold", settings.Version())
	return nil
}
