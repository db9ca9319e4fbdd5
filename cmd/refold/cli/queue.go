package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/transcript"
)

// queueCommand lists, edits or removes queued runs.
type queueCommand struct {
	Session string `arg:"" help:"The session."`
	Text    string `arg:"" optional:"" help:"With --edit: the new text; - or nothing reads standard input."`
	Edit    uint32 `placeholder:"N" xor:"what" help:"Replace the input of the queued run N, its text and its files."`
	withFiles
	Remove   uint32 `placeholder:"N" xor:"what" help:"Remove the queued run N."`
	Operator bool   `help:"Publish through the door ctl, as operators do, instead of in."`
	asJSON
}

// Run changes the queue if a flag says how, and prints it.
func (q queueCommand) Run(ctx context.Context, s streams, conn connection) error {
	if (q.Text != "" || len(q.Files) > 0) && q.Edit == 0 {
		return &statusError{statusUsage, "queue: a text and files go with --edit N; to queue a run: refold run " + q.Session + " TEXT"}
	}
	text, files := "", []client.File(nil)
	if q.Edit != 0 {
		var err error
		if text, files, err = q.input(s.in, q.Text, "queue", `queue: give the new text, as in: refold queue hello --edit 2 "Use the other file."`); err != nil {
			return err
		}
	}
	c, err := conn.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	v, err := viewSoon(ctx, c, q.Session)
	if err != nil {
		return err
	}
	if n := max(q.Edit, q.Remove); n != 0 {
		if !slices.ContainsFunc(v.Queue, func(r session.ViewRun) bool { return r.Number == n }) {
			return fmt.Errorf("run %d is not queued: %s", n, standing(&v))
		}
		v, err = taken(ctx, c, q.Session, func(c *client.Client) (uint64, error) {
			o := client.ControlOptions{Run: n, Operator: q.Operator, Files: files}
			if q.Edit != 0 {
				return c.EditRun(ctx, q.Session, text, o)
			}
			return c.Cancel(ctx, q.Session, o)
		})
		if err != nil {
			return err
		}
	}
	return q.print(ctx, s, c, &v)
}

// print prints the queue in its order.
func (q queueCommand) print(ctx context.Context, s streams, c *client.Client, v *session.View) error {
	if q.JSON {
		for i := range v.Queue {
			printJSON(s.out, &v.Queue[i])
		}
		return nil
	}
	fmt.Fprintln(s.out, standing(v))
	if len(v.Queue) == 0 {
		return nil
	}
	fmt.Fprintln(s.out)
	table := newWholeTable(s.out, "RUN", "SUBMISSION", "MODEL", "TEXT")
	for _, r := range v.Queue {
		text := ""
		if input, err := c.Input(ctx, r.Seq); err != nil {
			return err
		} else if input != nil {
			text = transcript.Briefly(input)
		}
		table.texts(fmt.Sprint(r.Number), transcript.OrDash(r.Submission), r.Provider+"/"+r.Model, text)
	}
	table.flush()
	return nil
}
