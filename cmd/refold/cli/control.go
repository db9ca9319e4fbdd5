package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/transcript"
)

// aboutRun has the arguments and flags of commands about a run.
type aboutRun struct {
	Session  string `arg:"" help:"The session."`
	Number   uint32 `name:"run" placeholder:"N" help:"The run's number. Default: the active one."`
	Operator bool   `help:"Publish through the door ctl, as operators do, instead of in."`
}

func (a aboutRun) options(reason string) client.ControlOptions {
	return client.ControlOptions{Run: a.Number, Operator: a.Operator, Reason: reason}
}

// withReason is aboutRun for commands that take a reason.
type withReason struct {
	aboutRun
	Reason string `placeholder:"TEXT" help:"The reason, for people."`
}

// ask publishes a request about the run, and prints its outcome.
func (r withReason) ask(
	ctx context.Context, out io.Writer, conn connection, request func(*client.Client, context.Context, string, client.ControlOptions) (uint64, error),
) error {
	return ask(ctx, out, conn, r.Session, func(c *client.Client) (uint64, error) { return request(c, ctx, r.Session, r.options(r.Reason)) })
}

// steerCommand gives a run more input.
type steerCommand struct {
	aboutRun
	withFiles
	Text string `arg:"" optional:"" help:"The user's text; - or nothing reads standard input."`
	New  bool   `help:"Open the session if there is none of this name. Without it, a name with a typo is refused."`
}

func (s steerCommand) Run(ctx context.Context, std streams, conn connection) error {
	text, files, err := s.input(std.in, s.Text, "steer", `steer: give the text, as in: refold steer hello "Use the other file."`)
	if err != nil {
		return err
	}
	c, err := conn.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := exists(ctx, c, s.Session); err != nil && (!s.New || !errors.Is(err, client.ErrNoSession)) {
		return err
	}
	before, unknown := c.View(ctx, s.Session)
	o := s.options("")
	o.Files = files
	var seq uint64
	v, err := taken(ctx, c, s.Session, func(c *client.Client) (uint64, error) {
		seq, err = c.Steer(ctx, s.Session, text, o)
		return seq, err
	})
	if err != nil {
		return err
	}
	if unknown != nil {
		before.Run = new(session.ViewRun) // whether a run was active is not known
	}
	if run := startedBy(seq, &before, &v); run != 0 {
		fmt.Fprintf(std.out, "no run was active: the steer started run %d; refold run starts a run and follows it\n", run)
	}
	fmt.Fprintln(std.out, standing(&v))
	return nil
}

// startedBy returns the run that the steer at seq started because none was
// active. It returns 0 if an active run took the steer, or if that is not known.
func startedBy(seq uint64, before, after *session.View) uint32 {
	switch {
	case after.Run != nil && after.Run.Seq == seq:
		return after.Run.Number
	case before.Run != nil || after.Run != nil || after.Last == nil:
		return 0
	case before.Last == nil && after.Last.Number == 1, before.Last != nil && after.Last.Number == before.Last.Number+1:
		return after.Last.Number // it has ended already
	}
	return 0
}

// cancelCommand ends a run at once.
type cancelCommand struct{ withReason }

func (r cancelCommand) Run(ctx context.Context, s streams, conn connection) error {
	return r.ask(ctx, s.out, conn, (*client.Client).Cancel)
}

// interruptCommand ends a run when its open effects are settled.
type interruptCommand struct{ withReason }

func (r interruptCommand) Run(ctx context.Context, s streams, conn connection) error {
	return r.ask(ctx, s.out, conn, (*client.Client).Interrupt)
}

// pauseCommand keeps a run from opening new effects.
type pauseCommand struct{ withReason }

func (r pauseCommand) Run(ctx context.Context, s streams, conn connection) error {
	return r.ask(ctx, s.out, conn, (*client.Client).Pause)
}

// resumeCommand resumes a paused run.
type resumeCommand struct {
	withReason
	Budget string `placeholder:"JSON" help:"The budget from now on, as in '{\"tokens\":20000}'; through the door ctl."`
}

func (r resumeCommand) Run(ctx context.Context, s streams, conn connection) error {
	var budget *session.Budget
	if r.Budget != "" {
		if err := json.Unmarshal([]byte(r.Budget), &budget); err != nil {
			return &statusError{statusUsage, "--budget: " + err.Error()}
		}
	}
	return ask(ctx, s.out, conn, r.Session, func(c *client.Client) (uint64, error) {
		return c.Resume(ctx, r.Session, budget, r.options(r.Reason))
	})
}

// compactCommand requests a summary of a conversation.
type compactCommand struct {
	Session      string `arg:"" help:"The session."`
	Instructions string `placeholder:"TEXT" help:"What the summary is to have, as in \"keep all names of tables\"."`
	KeepTurns    *int   `placeholder:"N" help:"The latest turns that stay as they are. Default: none."`
}

func (r compactCommand) Run(ctx context.Context, s streams, conn connection) error {
	err := ask(ctx, s.out, conn, r.Session, func(c *client.Client) (uint64, error) {
		return c.Compact(ctx, r.Session, session.CompactRequested{Instructions: r.Instructions, KeepTurns: r.KeepTurns})
	})
	if err == nil {
		fmt.Fprintln(s.out, "the next turn begins with a summary of what was said before")
	}
	return err
}

// closeCommand closes a session.
type closeCommand struct {
	Session string `arg:"" help:"The session."`
}

func (r closeCommand) Run(ctx context.Context, s streams, conn connection) error {
	return ask(ctx, s.out, conn, r.Session, func(c *client.Client) (uint64, error) {
		return c.CloseSession(ctx, r.Session, "")
	})
}

// ask connects, publishes an event, and prints the session's state after it.
func ask(ctx context.Context, out io.Writer, conn connection, sid string, publish func(*client.Client) (uint64, error)) error {
	c, err := conn.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := exists(ctx, c, sid); err != nil {
		return err
	}
	v, err := taken(ctx, c, sid, publish)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, standing(&v))
	return nil
}

// exists returns an ErrNoSession if the log holds no event of a session. Every event
// opens the session that it names, a rejected one too, and nothing deletes it: a
// name with a typo would stay.
func exists(ctx context.Context, c *client.Client, sid string) error {
	for _, err := range c.Read(ctx, sid, 0, 0) {
		return err
	}
	return fmt.Errorf("session %s: %w\n  refold sessions lists all; the first run opens one: refold run %s TEXT", sid, client.ErrNoSession, sid)
}

// taken publishes an event and returns the session's view after it. A rejection
// becomes an error with advice.
func taken(ctx context.Context, c *client.Client, sid string, publish func(*client.Client) (uint64, error)) (session.View, error) {
	seq, err := publish(c)
	if err != nil {
		return session.View{}, err
	}
	v, err := c.Taken(ctx, sid, seq)
	return v, withAdvice(err, sid)
}

// standing describes the state of a session on one line.
func standing(v *session.View) string {
	text := "session " + v.Session + ": "
	switch {
	case v.Run != nil:
		text += fmt.Sprintf("run %d is %s", v.Run.Number, v.Lifecycle)
	case v.Last != nil:
		text += fmt.Sprintf("run %d %s, no run is active", v.Last.Number, v.Last.Lifecycle)
	default:
		text += "no run yet"
	}
	if v.Run != nil && v.WaitsFor != "nobody" {
		text += ", waits for " + v.WaitsFor
	}
	if v.Run != nil && len(v.Run.Steers) > 0 {
		text += fmt.Sprintf(", %s for its next turn", transcript.Count(len(v.Run.Steers), "steer"))
	}
	if len(v.Queue) > 0 {
		text += fmt.Sprintf(", %d queued", len(v.Queue))
	}
	if v.Status == "closed" {
		text += "; it is closed"
	}
	return text
}

// tellNew prints that a session will be opened, for commands that may prepare one
// before its first run.
func tellNew(ctx context.Context, errOut io.Writer, c *client.Client, sid string) error {
	err := exists(ctx, c, sid)
	if !errors.Is(err, client.ErrNoSession) {
		return err
	}
	fmt.Fprintf(errOut, "session %s is new: this opens it\n", sid)
	return nil
}

// withAdvice adds advice to a rejection.
func withAdvice(err error, sid string) error {
	var refused *client.RejectedError
	if !errors.As(err, &refused) {
		return err
	}
	text := refused.Error()
	if do := advice(refused.Code, sid); do != "" {
		text += "\n  " + do
	}
	return &statusError{statusFailed, text}
}

// advice returns what to do about a rejection, or "".
func advice(code session.Rejection, sid string) string {
	switch code {
	case session.RejectIllegalTransition:
		return "refold view " + sid + " shows the run's state (lifecycle, waits_for); refold queue " + sid + " lists the queued runs"
	case session.RejectStale:
		return "that run has ended, or never was: leave --run out for the active one; refold queue " + sid + " lists the queued runs"
	case session.RejectRunNotActive:
		return "start a run: refold run " + sid + " TEXT"
	case session.RejectApprovalStale:
		return "it was decided, ended, or waits with other arguments by now: refold approvals " + sid
	case session.RejectNotPermitted:
		return "clients may not do that through the door in: the install policy lists under ingress what they may; with the rights of an operator, use the door ctl: --operator"
	case session.RejectWrongDoor:
		return "that event belongs to another door: docs/protocol.md lists the events of each"
	case session.RejectSessionClosed:
		return "nothing reopens a session: use another one"
	case session.RejectSessionErased:
		return "nothing brings a deleted session back: use another one, under another name"
	case session.RejectSessionHeld:
		return "somebody holds it; refold transcript " + sid + " has the reason. refold hold " + sid + " --release ends the hold"
	case session.RejectQueueFull:
		return "refold queue " + sid + " lists the queue; --remove N takes a run out"
	case session.RejectRunActive:
		return "leave out --when-busy reject and the run is queued; steer or interrupt don't wait"
	case session.RejectDuplicateSubmission:
		return "the same --submission was used with another text or other options: repeat it as it was, or choose another"
	case session.RejectUnknownSpace:
		return "refold view " + sid + " shows what the session has; a grant comes with the install record (refold install --space) or with a sync: docs/workspaces.md"
	case session.RejectNothingStaged:
		return "read it first: refold space sync " + sid + " SPACE"
	case session.RejectWorkspaceInvalid:
		return "what is applied and staged stays as it is: refold space diff " + sid + " and refold view " + sid + " show both"
	case session.RejectMissingProvider, session.RejectMissingModel:
		return "the install record has no default config: give --provider and --model"
	}
	return ""
}
