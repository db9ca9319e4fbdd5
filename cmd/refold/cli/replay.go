package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/transcript"
)

// replayCommand folds sessions again.
type replayCommand struct {
	Session string `arg:"" optional:"" archive:"" help:"The session, or the file of its archive: a name with a dot or a slash."`
	All     bool   `help:"All sessions, in one pass over the log."`
	Verify  bool   `help:"Compare each session with its effects and its snapshot, and exit 1 if one differs."`
	To      uint64 `placeholder:"SEQ" help:"Fold up to this sequence of the log only."`
	Export  bool   `help:"Print the session as a scenario: a test that the project's own runner reads."`
	Events  bool   `help:"Print each event."`
	JSON    bool   `name:"json" help:"Print a JSON object a session."`
}

func (r replayCommand) Run(ctx context.Context, s streams, conn connection) error {
	switch {
	case r.All == (r.Session != ""):
		return &statusError{statusUsage, "replay: name one session, or give --all"}
	case r.JSON && (r.Export || r.Events):
		return &statusError{statusUsage, "replay: --json goes with neither --export nor --events: refold log --json prints events"}
	case r.All && (r.To != 0 || r.Export || r.Events):
		return &statusError{statusUsage, "replay: --to, --export and --events are for one session"}
	}
	c, sid, err := conn.reader(ctx, r.Session)
	if err != nil {
		return err
	}
	defer c.Close()
	if r.All {
		return r.all(ctx, s, c)
	}
	if r.Export {
		text, err := c.Export(ctx, sid, r.To)
		if err != nil {
			return err
		}
		fmt.Fprint(s.out, text)
		return nil
	}
	var each func(session.Event, []session.Notice, *session.State)
	if r.Events {
		each = transcript.NewReader(transcript.Briefly, (&transcript.Lines{Out: s.out}).Entry).Read
	}
	replayed, err := c.Replay(ctx, sid, r.To, each)
	if err != nil {
		return err
	}
	r.print(s.out, replayed)
	if r.Verify && !replayed.Identical() {
		return &statusError{statusFailed, ""}
	}
	return nil
}

// all folds every session.
func (r replayCommand) all(ctx context.Context, s streams, c *client.Client) error {
	v, err := c.Verify(ctx, client.VerifyOptions{Each: func(replayed *client.Replayed) error {
		r.print(s.out, replayed)
		return nil
	}})
	if err != nil {
		return err
	}
	fmt.Fprintf(s.err, "%d sessions, %d events, %d messages skipped, %d sessions differ\n", v.Sessions, v.Events, v.Skipped, v.Differ)
	for _, h := range v.Holes {
		fmt.Fprintln(s.err, holeLine(h))
	}
	if r.Verify && !v.Identical() {
		return &statusError{statusFailed, ""}
	}
	return nil
}

// print prints the result for one session.
func (r replayCommand) print(out io.Writer, replayed *client.Replayed) {
	switch {
	case r.JSON:
		printJSON(out, replayed)
	case r.Verify:
		fmt.Fprintln(out, verdictLine(replayed))
	default:
		fmt.Fprintf(out, "%s  %s  %d events\n", replayed.Hash, replayed.Session, replayed.Events)
	}
}

// verdictLine reports whether a replay was identical, and to what.
func verdictLine(r *client.Replayed) string {
	compared := fmt.Sprintf("%d effects compared", r.EffectsSame)
	if r.EffectsGone > 0 {
		compared += fmt.Sprintf(", %d not stored any more", r.EffectsGone)
	}
	if r.SnapshotAt != 0 {
		compared += fmt.Sprintf(", snapshot at %d", r.SnapshotAt)
	}
	verdict := "identical"
	if !r.Identical() {
		verdict = "DIFFERENT"
	}
	line := fmt.Sprintf("replay: %s  session %s  %d events  %s  state %s", verdict, r.Session, r.Events, compared, r.Hash)
	for _, d := range r.Differences {
		line += "\n  " + d
	}
	return line
}
