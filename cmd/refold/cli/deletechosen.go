package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/refold/refold/client"
)

// choose returns the sessions that the flags choose.
func (d deleteCommand) choose(ctx context.Context, c *client.Client) (sids []string, err error) {
	var before time.Time
	if d.ClosedBefore != "" {
		before, _ = since("--closed-before", d.ClosedBefore, c.Clock(ctx)())
	}
	for row, err := range c.Index(ctx, client.IndexOptions{Name: d.Names, All: !d.Erased}) {
		if err != nil {
			return nil, err
		}
		if d.Erased && !row.Erased {
			continue
		}
		if before.IsZero() {
			sids = append(sids, row.Session)
			continue
		}
		closed, at := row.Closed, row.At
		if row.State == client.StateSilent {
			r, err := c.Replay(ctx, row.Session, 0, nil)
			if err != nil {
				return nil, err
			}
			closed, at = r.State.Closed, r.State.Clock
		}
		if closed && time.UnixMilli(at).Before(before) {
			sids = append(sids, row.Session)
		}
	}
	slices.Sort(sids)
	return sids, nil
}

// deletedLine is a line of a ledger that printLedger has printed.
type deletedLine struct {
	Session string `json:"session"`
}

func printLedger(ctx context.Context, out io.Writer, c *client.Client) error {
	sids, err := c.DeletedSessions(ctx)
	for _, sid := range sids {
		printJSON(out, deletedLine{sid})
	}
	return err
}

// restored returns the sessions of a printed ledger that the log has.
func (d deleteCommand) restored(ctx context.Context, c *client.Client) (sids []string, err error) {
	file, err := os.Open(d.FromLedger)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := json.NewDecoder(file)
	for n := 1; ; n++ {
		var line deletedLine
		err := lines.Decode(&line)
		if errors.Is(err, io.EOF) {
			return sids, nil
		}
		if err == nil && line.Session == "" {
			err = errors.New("it names no session")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: object %d: %w; want what refold delete --ledger prints", d.FromLedger, n, err)
		}
		err = exists(ctx, c, line.Session)
		if err == nil {
			sids = append(sids, line.Session)
		} else if !errors.Is(err, client.ErrNoSession) {
			return nil, err
		}
	}
}

// holdCommand holds a session.
type holdCommand struct {
	Session string `arg:"" help:"The session."`
	Release bool   `help:"End the hold."`
	Reason  string `placeholder:"TEXT" help:"The reason, for people. It stays in the log."`
}

func (h holdCommand) Run(ctx context.Context, s streams, conn connection) error {
	c, err := conn.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := exists(ctx, c, h.Session); err != nil {
		return err
	}
	_, err = taken(ctx, c, h.Session, func(c *client.Client) (uint64, error) {
		return c.Hold(ctx, h.Session, !h.Release, h.Reason, "")
	})
	if err != nil {
		return err
	}
	if h.Release {
		fmt.Fprintf(s.out, "session %s is not held any more\n", h.Session)
	} else {
		fmt.Fprintf(s.out, "session %s is held: it can't be deleted until refold hold %s --release\n", h.Session, h.Session)
	}
	return nil
}
