package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/refold/refold/client"
)

// verifyCommand folds sessions again and reports differences from what is stored.
type verifyCommand struct {
	Session    string `arg:"" optional:"" archive:"" help:"The session, or the file of its archive: a name with a dot or a slash."`
	All        bool   `help:"All sessions, in one pass over the log."`
	Jobs       int    `default:"1" placeholder:"N" help:"How many sessions to fold at a time."`
	Quarantine bool   `help:"Quarantine the sessions that differ, until they are released."`
	JSON       bool   `name:"json" help:"Print a JSON object for each difference, and one for the sum."`
}

// Run folds one session or all, and fails if one differs.
func (v verifyCommand) Run(ctx context.Context, s streams, conn connection) error {
	switch {
	case v.All == (v.Session != ""):
		return &statusError{statusUsage, "verify: name one session, or give --all"}
	case v.Quarantine && isArchive(v.Session):
		return &statusError{statusUsage, "verify: --quarantine stops sessions of a server: an archive can't go on"}
	case v.Jobs < 1:
		return &statusError{statusUsage, "verify: --jobs is at least 1"}
	}
	c, sid, err := conn.reader(ctx, v.Session)
	if err != nil {
		return err
	}
	defer c.Close()
	differs := func(r *client.Replayed) error { return v.differs(ctx, s, c, r) }
	var sum *client.Verified
	if v.All {
		sum, err = c.Verify(ctx, client.VerifyOptions{Jobs: v.Jobs, Differs: differs})
	} else {
		sum, err = v.one(ctx, c, sid, differs)
	}
	if err != nil {
		return err
	}
	v.sum(s.out, sum)
	if !sum.Identical() {
		return &statusError{statusFailed, ""}
	}
	return nil
}

// one folds one session.
func (v verifyCommand) one(ctx context.Context, c *client.Client, sid string, differs func(*client.Replayed) error) (*client.Verified, error) {
	begun := time.Now()
	r, err := c.VerifySession(ctx, sid)
	if err != nil {
		return nil, err
	}
	sum := &client.Verified{Took: time.Since(begun)}
	sum.Add(r)
	if r.Identical() {
		return sum, nil
	}
	return sum, differs(r)
}

// differs prints a session's differences, and quarantines it with --quarantine.
func (v verifyCommand) differs(ctx context.Context, s streams, c *client.Client, r *client.Replayed) error {
	for _, d := range r.Details() {
		v.difference(s.out, r.Session, d)
	}
	if !v.Quarantine {
		return nil
	}
	stopped, err := c.Quarantine(ctx, r)
	if err == nil && stopped {
		_, err = fmt.Fprintf(s.err, "session %s  quarantined from %d on\n", r.Session, r.Seq+1)
	}
	return err
}

func (v verifyCommand) difference(out io.Writer, sid string, d client.Difference) {
	if v.JSON {
		printJSON(out, struct {
			Session string `json:"session"`
			client.Difference
		}{sid, d})
		return
	}
	at := "-"
	if d.Seq != 0 {
		at = fmt.Sprint(d.Seq)
	}
	fmt.Fprintf(out, "session %s  seq %s  %s\n", sid, at, d.Text)
}

// sum prints what the log itself has lost, and the summary.
func (v verifyCommand) sum(out io.Writer, sum *client.Verified) {
	if v.JSON {
		printJSON(out, sum)
		return
	}
	for _, h := range sum.Holes {
		fmt.Fprintln(out, holeLine(h))
	}
	verdict := "identical"
	if !sum.Identical() {
		verdict = "DIFFERENT"
	}
	fmt.Fprintf(out, "verify: %s  %d sessions, %d differ  %d events  %d effects compared, %d not stored any more  %d snapshots compared  %s\n",
		verdict, sum.Sessions, sum.Differ, sum.Events, sum.Effects, sum.Gone, sum.Snapshots, pace(sum))
}

// holeLine describes events that the log has lost.
func holeLine(h client.Hole) string {
	return fmt.Sprintf("log  seq %d  the log has no event from %d to %d: expected %d, found none", h.First, h.First, h.Last, h.Last-h.First+1)
}

// pace formats the speed of a pass, and its memory a session.
func pace(sum *client.Verified) string {
	text := fmt.Sprintf("%.2f s, %.0f events/s", sum.Took.Seconds(), float64(sum.Events)/max(sum.Took.Seconds(), 1e-9))
	if sum.SessionBytes > 0 {
		text += fmt.Sprintf(", %d bytes of memory a session", sum.SessionBytes)
	}
	return text
}
