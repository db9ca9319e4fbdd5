package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/transcript"
)

// blobsCommand has the commands about blobs.
type blobsCommand struct {
	Sweep blobsSweepCommand `cmd:"" help:"Delete blobs that nothing names any more: files and long texts of deleted sessions, and uploads that no run used."`
}

// blobsSweepCommand deletes blobs that nothing names.
type blobsSweepCommand struct {
	Grace  time.Duration `default:"24h" placeholder:"TIME" help:"How long a blob stays that was marked, and one that was just stored. At least 1h. Default: 24h."`
	DryRun bool          `help:"Count, and change nothing."`
	asJSON
}

// Help returns the help text above the flags.
func (blobsSweepCommand) Help() string {
	return `Deleting takes two sweeps. The first one marks the blobs that nothing names: no event,
install record, pack, snapshot, effect or imported conversation. One that runs a day later
(--grace) deletes those that nothing names still. A blob that somebody stores again loses
its mark. Run it daily or weekly, as with cron: each sweep does both.

A sweep reads the whole log. It may be stopped or killed at any moment, and run again, and
daemons may run beside it. It needs the rights of an eraser. Before the first sweep, update
all programs that store blobs.`
}

// Run sweeps once.
func (b blobsSweepCommand) Run(ctx context.Context, s streams, conn connection) error {
	if b.Grace < client.SweepGraceMin {
		return &statusError{statusUsage, fmt.Sprintf("blobs sweep: --grace %v is too short: what stores a blob may take an hour until it names it; give at least %v", b.Grace, client.SweepGraceMin)}
	}
	c, err := conn.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	swept, err := c.SweepBlobs(ctx, client.SweepOptions{Grace: b.Grace, DryRun: b.DryRun})
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("stopped; the same command again goes on: %w", err)
	}
	if err != nil {
		return fmt.Errorf("blobs sweep: %w", err)
	}
	if b.JSON {
		printJSON(s.out, swept)
		return nil
	}
	b.print(s, &swept)
	return nil
}

// print says what a sweep has found and done, and what comes next.
func (b blobsSweepCommand) print(s streams, swept *client.Swept) {
	would := ""
	if b.DryRun {
		would = "would be "
	}
	fmt.Fprintf(s.out, "%s: %d named, %d descriptors of tools, %d too new\n", counted(swept.All), swept.Named.Blobs, swept.Descriptors.Blobs, swept.New.Blobs)
	fmt.Fprintf(s.out, "%sdeleted: %s\n", would, counted(swept.Deleted))
	fmt.Fprintf(s.out, "%smarked: %s\n", would, counted(swept.Marked))
	if swept.Waiting.Blobs > 0 {
		fmt.Fprintf(s.out, "marked before, for less than %v: %s\n", b.Grace, counted(swept.Waiting))
	}
	if swept.Unmarked.Blobs > 0 {
		fmt.Fprintf(s.out, "%snamed again, and not marked any more: %s\n", would, counted(swept.Unmarked))
	}
	if swept.Next > 0 && !b.DryRun {
		fmt.Fprintf(s.out, "a sweep after %s deletes those marked blobs that nothing names then\n", time.UnixMilli(swept.Next).UTC().Format(time.RFC3339))
	}
}

func counted(c client.BlobCount) string {
	return fmt.Sprintf("%s of %s", transcript.Count(c.Blobs, "blob"), transcript.Count(int(c.Bytes), "byte"))
}
