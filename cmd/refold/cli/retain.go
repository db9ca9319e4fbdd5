package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/retain"
	"github.com/refold/refold/internal/transcript"
)

// retainCommand archives and deletes old sessions.
type retainCommand struct {
	Policy    string        `required:"" type:"existingfile" placeholder:"FILE" help:"Which sessions, and when: YAML. It is read again before each pass."`
	Every     time.Duration `placeholder:"TIME" help:"Go on with a pass so often, such as 24h, until Ctrl-C or SIGTERM. Default: one pass."`
	DryRun    bool          `help:"Say what would be archived and deleted, and change nothing."`
	HTTP      string        `name:"http" placeholder:"HOST:PORT" help:"With --every, address to serve /metrics, /healthz and /readyz on. Default: none."`
	HTTPHosts []string      `name:"http-host" placeholder:"NAME" help:"Name by which clients may address --http; IP addresses and localhost always may. May be repeated."`
	asJSON
}

// Help returns the help text above the flags.
func (retainCommand) Help() string {
	return `A rule of the policy:

  archive_to: /archives
  rules:
    - prefix: acme-        # of the sessions' names; the longest prefix counts
      closed_after: 30d    # a closed session is due 30 days after its last event
      idle_after: 180d     # an open one that has nothing to do after 180 days
      delete_after: 60d    # archived when it is due, and deleted 60 days later

A session is deleted only after its archive was read back from the disk, and only if it got
no event meanwhile. Deletes don't overwrite: bytes leave the server's files when half of
their block is dead. refold delete erases. A held session is not deleted. Deletions of
sessions that were erased over HTTP, or got text after their deletion, are completed. A pass
may be stopped or killed at any moment, and run again. It needs a session-actor and the
rights of an eraser. Exit status 1 if a session can't be archived or deleted.`
}

// Run makes one pass, or passes until ctx ends.
func (r retainCommand) Run(ctx context.Context, s streams, conn connection, full *Full) error {
	if r.Every < 0 || r.Every > 0 && (r.DryRun || r.JSON) || r.Every == 0 && (r.HTTP != "" || len(r.HTTPHosts) > 0) {
		return &statusError{statusUsage, "retain: --every is a time such as 24h; it goes without --dry-run and --json, and --http goes with it"}
	}
	policy, err := retain.Read(r.Policy)
	if err != nil {
		return fmt.Errorf("retain: --policy: %w", err)
	}
	if r.Every > 0 {
		return r.serve(ctx, s.unguarded(), conn, full)
	}
	c, err := conn.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	sum, err := policy.Pass(ctx, c, retain.Options{Now: c.Clock(ctx), DryRun: r.DryRun, Each: func(o retain.Outcome) { r.print(s, &o) }})
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("stopped; the same command again goes on: %w", err)
	}
	if err != nil {
		return fmt.Errorf("retain: %w", err)
	}
	if r.JSON {
		printJSON(s.out, sum)
	} else {
		fmt.Fprintln(s.out, r.sum(&sum))
	}
	if sum.Failed > 0 {
		return &statusError{statusFailed, ""}
	}
	return nil
}

// serve makes passes until ctx ends.
func (r retainCommand) serve(ctx context.Context, s streams, conn connection, full *Full) (err error) {
	log := slog.New(slog.NewTextHandler(s.err, nil))
	telemetry, err := startTelemetry(ctx, full, r.HTTP, r.HTTPHosts, "refold-retain", conn.Prefix, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, telemetry.Close()) }()
	c, err := conn.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	o := retain.Options{Now: c.Clock(ctx)}
	if telemetry.Registry != nil {
		o.Meters = retain.Register(telemetry.Registry)
	}
	telemetry.Reads(nil, func(ctx context.Context) []string {
		if _, err := c.LastEvent(ctx); err != nil {
			return []string{"the log can't be read: " + err.Error()}
		}
		return nil
	})
	if telemetry.Address != "" {
		fmt.Fprintf(s.out, "Metrics: http://%s/metrics\n", telemetry.Address)
	}
	retain.Run(ctx, c, r.Policy, r.Every, o, log)
	return nil
}

// print prints what was done with a session, or would be.
func (r retainCommand) print(s streams, o *retain.Outcome) {
	if r.JSON {
		printJSON(s.out, o)
		return
	}
	at := "last event " + time.UnixMilli(o.Last).UTC().Format(time.DateOnly)
	if o.Last == 0 {
		at = "erased before"
	}
	line := func(out io.Writer, what string) { fmt.Fprintf(out, "session %s  %s  %s\n", o.Session, at, what) }
	if o.Archive && (r.DryRun || o.Archived != nil) {
		line(s.out, r.would("archived")+archiveOf(o.Archived))
	}
	switch {
	case o.Error != "":
		line(s.err, "failed: "+o.Error)
	case o.Held:
		line(s.out, "kept: it is held; refold hold "+o.Session+" --release ends the hold")
	case o.Children != nil:
		line(s.out, "kept until its children are deleted: "+strings.Join(o.Children, ", "))
	case o.Changed:
		line(s.out, "kept: it got an event meanwhile")
	case o.Delete && r.DryRun:
		line(s.out, r.would("deleted"))
	case o.Delete:
		line(s.out, "deleted: "+transcript.Count(o.Deleted, "message"))
	}
}

func (r retainCommand) would(what string) string {
	if r.DryRun {
		return "would be " + what
	}
	return what
}

func archiveOf(a *client.Archived) string {
	if a == nil {
		return ""
	}
	return ": " + a.File
}

// sum describes a pass.
func (r retainCommand) sum(sum *retain.Sum) string {
	line := fmt.Sprintf("%s looked at: %d %s, %d %s, %d held, %d failed", transcript.Count(sum.Sessions, "session"), sum.Archived, r.would("archived"), sum.Deleted, r.would("deleted"), sum.Held, sum.Failed)
	if r.DryRun {
		return line
	}
	return line + fmt.Sprintf("; %s deleted, %s of archives written, in %v", transcript.Count(sum.Messages, "message"), transcript.Count(int(sum.Bytes), "byte"), rounded(time.Duration(sum.TookMS)*time.Millisecond))
}
