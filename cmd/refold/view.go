package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/refold/refold/actors/session"
)

// viewCommand shows a session.
type viewCommand struct {
	Session string `arg:"" help:"The session."`
	asJSON
}

// viewWithin bounds the wait for an answer.
const viewWithin = 5 * time.Second

// Run prints the session's View as JSON: for people a member a line.
func (v viewCommand) Run(ctx context.Context, s streams, conn connection) error {
	view, err := conn.viewOf(ctx, v.Session)
	if err != nil {
		return err
	}
	if v.JSON {
		return printJSON(s.out, view)
	}
	text, err := json.MarshalIndent(view, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.out, "%s\n", text)
	return err
}

// viewOf asks for the view of a session, for at most viewWithin.
func (conn connection) viewOf(ctx context.Context, sid string) (session.View, error) {
	c, err := conn.connectCore(ctx)
	if err != nil {
		return session.View{}, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, viewWithin)
	defer cancel()
	return c.View(ctx, sid)
}
