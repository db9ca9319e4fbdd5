package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/refold/refold/client"
)

// releaseCommand ends a quarantine.
type releaseCommand struct {
	Session string `arg:"" help:"The session."`
	Yes     bool   `help:"Don't ask."`
}

// Run prints why the session is stopped and what a release does, asks, and
// releases.
func (r releaseCommand) Run(ctx context.Context, s streams, conn connection) error {
	c, err := conn.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	seen, err := c.Quarantined(ctx, r.Session)
	if err != nil {
		return err
	}
	after, err := r.tell(ctx, s.out, c, seen)
	if err != nil {
		return err
	}
	if !r.Yes {
		if yes, err := confirmed(ctx, s, "Release it?"); err != nil || !yes {
			return cmp.Or(err, error(&statusError{statusFailed, "not released: answer y, or give --yes"}))
		}
	}
	if err := c.Release(ctx, r.Session, seen); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "session %s  released: %s\n", r.Session, after)
	return nil
}

// replyBytesMax bounds a typed reply.
const replyBytesMax = 1 << 10

// confirmed asks a question and reports whether the answer is yes. When ctx ends it
// returns at once, and drops input that is typed after that.
func confirmed(ctx context.Context, s streams, question string) (bool, error) {
	fmt.Fprint(s.out, question+" [y/N] ")
	type reply struct {
		line string
		err  error
	}
	replies := make(chan reply, 1)
	go func() {
		line, err := bufio.NewReader(io.LimitReader(s.in, replyBytesMax)).ReadString('\n')
		replies <- reply{line, err}
	}()
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case r := <-replies:
		if r.err != nil && !errors.Is(r.err, io.EOF) {
			return false, r.err
		}
		answer := strings.ToLower(strings.TrimSpace(r.line))
		return answer == "y" || answer == "yes", nil
	}
}

// tell prints why the session is stopped, how this build folds it, and what a
// release would do. It returns the text to print after the release.
func (r releaseCommand) tell(ctx context.Context, out io.Writer, c *client.Client, seen *client.Quarantined) (after string, err error) {
	folded, err := c.VerifySession(ctx, r.Session)
	bare := errors.Is(err, client.ErrNoSession)
	if err != nil && !bare {
		return "", err
	}
	fmt.Fprintf(out, "session %s  quarantined from %d on: %s\n", r.Session, seen.Seq, seen.Reason)
	if bare {
		fmt.Fprintln(out, "Nothing else is stored of it: after a release, a session of that name starts anew.")
		return "it begins with its next event", nil
	}
	for _, d := range folded.Differences {
		if strings.HasPrefix(d, "the session is quarantined") {
			continue // the line above reports it
		}
		fmt.Fprintf(out, "session %s  DIFFERENT for this build: %s\n", r.Session, d)
	}
	fmt.Fprintf(out, "After a release it is loaded up to the event before %d, and continues from there: its open effects are carried out.\n"+
		"Its events are %d, up to %d; none of them is lost or done twice. If the cause is still there, it stops again.\n", seen.Seq, folded.Events, folded.Seq)
	return fmt.Sprintf("it continues with %d within 15 s, if a session-actor runs", seen.Seq), nil
}
