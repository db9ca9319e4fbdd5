package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/transcript"
)

// viewCommand shows a session.
type viewCommand struct {
	Session string `arg:"" help:"The session."`
	asJSON
}

// viewWithin is the time limit of a view request.
const viewWithin = 5 * time.Second

// Run prints the session's View as JSON, by default a member a line and then its warnings.
func (v viewCommand) Run(ctx context.Context, s streams, conn connection) error {
	view, err := conn.viewOf(ctx, v.Session)
	if err != nil {
		return err
	}
	if v.JSON {
		printJSON(s.out, view)
		return nil
	}
	text, err := json.MarshalIndent(view, "", "  ")
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s\n", text)
	for i := range view.Warnings {
		fmt.Fprintln(s.err, transcript.NearLimit(v.Session, &view.Warnings[i]))
	}
	return nil
}

// viewOf requests the view of a session, for at most viewWithin.
func (conn connection) viewOf(ctx context.Context, sid string) (session.View, error) {
	c, err := conn.connectCore(ctx, io.Discard)
	if err != nil {
		return session.View{}, err
	}
	defer c.Close()
	return viewSoon(ctx, c, sid)
}

// viewSoon returns a session's view, or an error within viewWithin.
func viewSoon(ctx context.Context, c *client.Client, sid string) (session.View, error) {
	ctx, cancel := context.WithTimeout(ctx, viewWithin)
	defer cancel()
	return c.View(ctx, sid)
}
