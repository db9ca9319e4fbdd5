package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/transcript"
)

// runCommand starts a run.
type runCommand struct {
	Session  string `arg:"" help:"The session; it opens with its first run. 1 to 64 of A-Za-z0-9_-."`
	Text     string `arg:"" optional:"" help:"The user's text; - or nothing reads standard input."`
	Provider string `help:"Provider of the model, with --model, instead of the session's config."`
	Model    string `help:"Model, with --provider."`
	System   string `help:"System text, with --provider and --model."`
	Config   string `placeholder:"JSON" help:"The whole run config as JSON; it goes through the door ctl."`

	withFiles
	NoFollow bool `help:"Print the run's number and the request's sequence in the log, and don't wait for the end."`

	Submission string   `placeholder:"ID" help:"A name for the request. A repeat with the same text and options starts no other run: it follows the first one, or prints how it ended."`
	WhenBusy   string   `enum:"queue,steer,interrupt,reject" default:"queue" help:"While another run is active: queue (wait for its end), steer (add the text to it), interrupt (end it soon, and run next), reject."`
	Role       []string `placeholder:"ROLE" help:"Roles of the run, for step rules; with --operator unless the install policy lets clients set them."`
	Operator   bool     `help:"Publish through the door ctl, as operators do, instead of in."`
	JSON       bool     `name:"json" help:"With --no-follow: print an object, and nothing else on standard output."`
}

func (r runCommand) Run(ctx context.Context, s streams, conn connection) error {
	if r.JSON && !r.NoFollow {
		return &statusError{statusUsage, "run: --json goes with --no-follow; refold log and refold transcript print a run as JSON"}
	}
	options, err := r.options()
	if err != nil {
		return err
	}
	var text string
	if text, options.Files, err = r.input(s.in, r.Text, "run", `run: give the text, as in: refold run hello "What is here?"`); err != nil {
		return err
	}
	c, err := conn.connectCore(ctx, s.err)
	if err != nil {
		return err
	}
	defer c.Close()
	if r.NoFollow {
		return r.request(ctx, s, c, text, options)
	}
	return r.follow(ctx, s, c, text, options)
}

// options returns the optional parts of the request.
func (r runCommand) options() (client.RunOptions, error) {
	o := client.RunOptions{Submission: r.Submission, WhenBusy: r.WhenBusy, Roles: r.Role, Operator: r.Operator}
	if r.Config != "" {
		o.Config, o.Operator = json.RawMessage(r.Config), true
		if raw, err := codec.FromJSON(o.Config); err != nil {
			return o, &statusError{statusUsage, "run: --config: " + err.Error()}
		} else if err := codec.Decode(raw, &session.RunConfig{}); err != nil {
			return o, &statusError{statusUsage, "run: --config: " + err.Error()}
		}
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

// start requests the run, and returns a follower that hears all of it.
func (r runCommand) start(ctx context.Context, c *client.Client, text string, options client.RunOptions) (*client.Follower, uint64, error) {
	follower, err := c.Follow(ctx, r.Session)
	if err != nil {
		return nil, 0, err
	}
	seq, err := c.Run(ctx, r.Session, text, options)
	if err != nil {
		follower.Close()
	}
	return follower, seq, err
}

// follow starts the run and prints the model's text; calls go to standard error.
func (r runCommand) follow(ctx context.Context, s streams, c *client.Client, text string, options client.RunOptions) error {
	follower, seq, err := r.start(ctx, c, text, options)
	if err != nil {
		return err
	}
	defer follower.Close()
	shown := newDisplay(s)
	f := &following{out: shown, sid: r.Session}
	watched := newWatcher(shown, c.View, c.Clock(ctx), lookSoon)
	watched.hears = true
	watched.add(r.Session)
	stop := watched.begin(ctx)
	end, err := follower.End(ctx, seq, r.Submission, client.Watch{
		Run: func(run uint32) {
			f.run = run
			if r.Submission != "" || r.WhenBusy == session.BusySteer {
				f.waiting(ctx, c) // the run may have begun before, and requested approvals then
			}
		},
		Notice: func(n client.Notice) {
			watched.heard(r.Session)
			f.note(n)
		},
		Shown: func(s client.Shown) {
			if s.Kind == client.ShownText {
				f.tally.turns = max(f.tally.turns, s.Turn)
				watched.speaks(r.Session)
			}
			shown.shown(s)
		},
	})
	stop()
	shown.show("")
	if err != nil {
		shown.end("")
		if ctx.Err() != nil {
			return &statusError{statusFailed, r.goesOn(f.run)}
		}
		return withAdvice(err, r.Session)
	}
	answer, err := c.Text(ctx, end.Output)
	if err != nil {
		fmt.Fprintln(shown, "the answer is a blob that can't be read:", err)
	}
	shown.end(answer)
	if end.FinishReason != "" {
		fmt.Fprintln(shown, transcript.AnswerEnded(end.FinishReason))
	}
	if end.OverBudget != nil {
		fmt.Fprintln(shown, overBudget(end.OverBudget))
	}
	f.tally.last(ctx, c, r.Session, end.Run)
	if line := f.tally.line(end); line != "" {
		fmt.Fprintln(shown, line)
	}
	if end.Lifecycle != session.Completed {
		return &statusError{statusFailed, outcome(end)}
	}
	return nil
}

// goesOn returns what to do when following was stopped.
func (r runCommand) goesOn(run uint32) string {
	text := "stopped; the run continues: refold tail " + r.Session
	if r.Submission != "" {
		text += ", or the same command again"
	}
	if run != 0 {
		text += fmt.Sprintf("; to end it: refold cancel %s --run %d", r.Session, run)
	}
	return text
}

// outcome describes the end of a run that did not complete.
func outcome(end client.RunEnd) string {
	return transcript.Ended(end.Run, end.Lifecycle, end.Code, end.Detail)
}

// overBudget describes a run that ended over its budget.
func overBudget(o *session.OverBudget) string {
	return fmt.Sprintf("over its budget: %d used of %d %s", o.Used, o.Limit, o.Budget)
}

// following prints what happens in a run, except for the model's text.
type following struct {
	out     io.Writer
	sid     string
	run     uint32
	asked   []string // calls whose approval was printed
	refused []string // calls that were printed as refused
	tally   tallied
}

// note prints a notice that names the run, or a turn or call of it.
func (f *following) note(n client.Notice) {
	var names transcript.Mentions
	_ = json.Unmarshal(n.Data, &names) // other content has no names
	effect := cmp.Or(names.Effect, names.Call)
	if !isEffectOf(effect, f.run) && (names.Run == 0 || names.Run != f.run) {
		return
	}
	body := n.Body()
	switch body.(type) {
	case session.RunPlaced:
		if n.Type == session.NoticeRunStarted {
			f.tally.began = n.At
		}
	case session.RunFinished: // it is printed with the answer
		f.tally.end = n.At
		return
	case session.TurnSettled:
		f.tally.at(effect)
	case session.CallSettled:
		f.tally.calls++
		f.tally.at(effect)
		if slices.Contains(f.refused, effect) {
			return
		}
	case session.ToolRejected:
		f.refused = append(f.refused, effect)
	case session.ApprovalRequested, session.ReplyRequested:
		if slices.Contains(f.asked, effect) {
			return
		}
		f.asked = append(f.asked, effect)
	}
	for _, it := range transcript.Noticed(f.sid, n.Type, body) {
		if it.Line != "" {
			fmt.Fprintln(f.out, it.OneLine()+transcript.Prefixed("\n  ", it.Todo))
		}
	}
}

// waiting prints the calls that wait for a person according to the view.
func (f *following) waiting(ctx context.Context, c *client.Client) {
	waiting, err := approvals(ctx, c, f.sid)
	if err != nil {
		return
	}
	for _, a := range waiting {
		data, err := json.Marshal(session.ApprovalRequested{Call: a.Call, ToolID: a.ToolID, ToolName: a.ToolName, Arguments: a.Arguments, Deadline: a.Deadline})
		if err == nil {
			f.note(client.Notice{Type: session.NoticeApprovalRequested, Data: data})
		}
	}
}
