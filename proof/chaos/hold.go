package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
)

// hold runs the conversation, waits for rest, and gathers the end.
func (t *trial) hold(ctx context.Context) (*End, error) {
	conversation := t.explorer.conversation
	if err := t.begin(ctx); err != nil {
		return nil, err
	}
	t.started(ctx)
	from := uint64(0)
	for i, text := range conversation.Says {
		if conversation.Scheduled {
			if err := t.schedule(ctx, text); err != nil {
				return nil, err
			}
			continue
		}
		// The same id each time: it is one request, however often it is published.
		id := fmt.Sprintf("run-%d", i+1)
		var seq uint64
		err := t.retry(ctx, func(ctx context.Context) (err error) {
			o := client.RunOptions{ID: id, Submission: id, Config: conversation.Config, Operator: conversation.Config != nil}
			seq, err = t.client.Run(ctx, conversation.Session, text, o)
			return err
		})
		switch {
		case err != nil:
		case conversation.Cancelled:
			err = t.cancel(ctx, id)
		case conversation.Adopts && i == 0:
			err = t.adopt(ctx)
		case conversation.Reply != "":
			err = t.reply(ctx, conversation.Reply)
		}
		if err != nil {
			return nil, fmt.Errorf("request run %d: %w", i+1, err)
		}
		if from, err = t.endOf(ctx, seq, from); err != nil {
			return nil, fmt.Errorf("wait for the end of run %d: %w", i+1, err)
		}
	}
	switch {
	case conversation.Cancelled:
		if err := t.running[Bridge].start(); err != nil {
			return nil, err
		}
	case conversation.Adopts:
		if err := t.sync(ctx, "sync-2", client.SyncOptions{}); err != nil {
			return nil, err
		}
	}
	// A session-actor that answers has been started again; its start may cause
	// work.
	if _, err := t.view(ctx); err != nil {
		return nil, err
	}
	if err := t.rest(ctx); err != nil {
		return nil, err
	}
	g := gather{client: t.client, view: t.view, spans: t.spans, cast: t.explorer.cast, dir: t.dir, sid: conversation.Session, counts: conversation.Tokens > 0}
	return g.end(ctx)
}

// retry repeats a request until it is answered, since the server may be down.
func (t *trial) retry(ctx context.Context, request func(context.Context) error) (err error) {
	ended := until(ctx, "no answer", func() bool {
		asking, cancel := context.WithTimeout(ctx, askWithin)
		defer cancel()
		err = request(asking)
		return err == nil
	})
	if ended != nil {
		return errors.Join(ended, err)
	}
	return nil
}

// endOf waits for the end of the run that an event requested, and returns its
// position in the notices. It reads them again if the server was down.
func (t *trial) endOf(ctx context.Context, seq, from uint64) (at uint64, err error) {
	ended := until(ctx, "no end", func() bool {
		at = from
		_, err = t.client.End(ctx, t.explorer.conversation.Session, seq, from+1, func(n client.Notice) { at = n.StreamSeq })
		var rejected *client.RejectedError
		var stopped *client.QuarantinedError
		return err == nil || errors.As(err, &rejected) || errors.As(err, &stopped)
	})
	if err != nil {
		return at, errors.Join(ended, err)
	}
	return at, nil
}

// openTurn waits until a turn is open.
func (t *trial) openTurn(ctx context.Context) error {
	return until(ctx, "no turn is open", func() bool {
		view, err := t.view(ctx)
		return err == nil && slices.ContainsFunc(view.Open, func(e session.ViewEffect) bool { return e.Class == session.ClassLLM })
	})
}

// cancel cancels the run once its turn is open.
func (t *trial) cancel(ctx context.Context, run string) error {
	if err := t.openTurn(ctx); err != nil {
		return err
	}
	return t.retry(ctx, func(ctx context.Context) error {
		_, err := t.client.Cancel(ctx, t.explorer.conversation.Session, client.ControlOptions{ID: "cancel-" + run})
		return err
	})
}

// startWithin bounds the wait for kills at messages that a session-actor sends
// because it starts. A process that is killed repeatedly may send something else.
const startWithin = 20 * time.Second

// started waits until the free kills are done that need no conversation. With a
// conversation each of them would be a kill over the same event, and the session
// would be quarantined for that.
func (t *trial) started(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	_ = until(ctx, "kills are left", func() bool { // others are done later, or reported as missed
		return !slices.ContainsFunc(t.aim.left(), func(s Kill) bool {
			return s.Free && s.At.Part == SessionActor && t.explorer.startsUp(s.At)
		})
	})
}
