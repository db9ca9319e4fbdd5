package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
)

// placedWithin is how long run --no-follow waits until a session-actor has placed
// its request. A stored request is not lost if none runs.
const placedWithin = 2 * time.Second

// requested is what run --no-follow prints.
type requested struct {
	Session string `json:"session"`
	Seq     uint64 `json:"seq"`              // of the request in the log
	Run     uint32 `json:"run,omitempty"`    // 0: no session-actor has placed the request yet
	Queued  bool   `json:"queued,omitempty"` // another run is active
}

// request starts the run and prints its number, without waiting for its end.
func (r runCommand) request(ctx context.Context, s streams, c *client.Client, text string, options client.RunOptions) error {
	follower, seq, err := r.start(ctx, c, text, options)
	if err != nil {
		return err
	}
	defer follower.Close()
	placed, told := requested{Session: r.Session, Seq: seq}, false
	waiting, stop := context.WithTimeout(ctx, placedWithin)
	defer stop()
	_, err = follower.End(waiting, seq, r.Submission, client.Watch{
		Run: func(run uint32) { placed.Run = run; stop() },
		Notice: func(n client.Notice) {
			if d, ok := n.Body().(session.RunPlaced); ok && d.Seq == seq {
				placed.Queued, told = n.Type == session.NoticeRunQueued, true
			}
		},
	})
	if placed.Run != 0 && !told { // a view was faster than the notice
		placed.Queued = isQueued(ctx, c, r.Session, placed.Run)
	}
	switch {
	case err == nil, waiting.Err() != nil && errors.Is(err, waiting.Err()):
		placed.print(s, r.JSON)
		return nil
	case errors.Is(err, client.ErrEndedBefore):
		placed.print(s, r.JSON)
		return err
	}
	return withAdvice(err, r.Session)
}

// isQueued reports whether the view of a session has a run in its queue.
func isQueued(ctx context.Context, c *client.Client, sid string, run uint32) bool {
	v, err := viewSoon(ctx, c, sid)
	return err == nil && slices.ContainsFunc(v.Queue, func(r session.ViewRun) bool { return r.Number == run })
}

func (p requested) print(s streams, asJSON bool) {
	switch {
	case asJSON:
		printJSON(s.out, p)
	case p.Run == 0:
		fmt.Fprintf(s.out, "session %s: event %d of the log requests the run; no session-actor has placed it yet\n", p.Session, p.Seq)
	case p.Queued:
		fmt.Fprintf(s.out, "session %s: run %d is queued (event %d of the log)\n", p.Session, p.Run, p.Seq)
	default:
		fmt.Fprintf(s.out, "session %s: run %d (event %d of the log)\n", p.Session, p.Run, p.Seq)
	}
}
