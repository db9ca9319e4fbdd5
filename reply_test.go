package refold_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/refoldtest"
)

type forecast struct {
	City string `json:"city"`
	Rain int    `json:"rain" minimum:"0" maximum:"100"`
}

// The session has a faulty answer repaired, and the program gets a value.
func TestReplyOfAType(t *testing.T) {
	t.Parallel()
	var asked []executor.Request
	turn := func(text string) refoldtest.Turn {
		return func(r executor.Request) (executor.Answer, error) {
			asked = append(asked, r)
			return executor.Answer{Text: text}, nil
		}
	}
	ctx, _, a := agent(t, refold.System("You know the weather."), refold.Model(refoldtest.Model(
		turn(`{"city":"Bergen","rain":120}`), turn(`{"city":"Bergen","rain":90}`), turn("plain"))))
	s := a.Session("s")
	run, err := s.Ask(ctx, "Bergen?", refold.ReplyAs[forecast](), refold.Submission("once"))
	ok(t, err)
	answer, err := run.Wait(ctx)
	ok(t, err)
	if got, err := refold.Decode[forecast](answer); err != nil || got != (forecast{"Bergen", 90}) || answer.Turns != 2 {
		t.Errorf("got %+v after %d turns (%v)", got, answer.Turns, err)
	}
	if f := asked[0].Format; f == nil || !strings.Contains(string(f.Schema), `"maximum":100`) || asked[0].System != "You know the weather." {
		t.Errorf("the model is asked for %+v under %q", f, asked[0].System)
	}
	again, err := s.Ask(ctx, "Bergen?", refold.ReplyAs[forecast](), refold.Submission("once"))
	if err != nil || again.Number() != 1 {
		t.Errorf("asked again: got %+v (%v), want run 1", again, err)
	}
	if _, err := s.Ask(ctx, "Bergen?", refold.Submission("once")); !isRejected(err, session.RejectDuplicateSubmission) {
		t.Errorf("in another form: got %v, want duplicate_submission", err)
	}
	// The next request has the agent's own form.
	next, err := s.Ask(ctx, "And now?")
	ok(t, err)
	plain, err := next.Wait(ctx)
	var fault *refold.DecodeError
	if _, bad := refold.Decode[forecast](plain); err != nil || !errors.As(bad, &fault) || fault.Text != "plain" {
		t.Errorf("got %v (%v), want a *DecodeError with the text", bad, err)
	}
}

func TestDecodeIsStrict(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "null x", `{"city":"a","rain":1,"wind":2}`, `{"city":1}`, `{"city":"a","rain":1} {}`} {
		if got, err := refold.Decode[forecast](&refold.Answer{Text: text}); err == nil {
			t.Errorf("%q: got %+v", text, got)
		}
	}
}

func TestReplyOfATypeThatIsNoObjectIsRefused(t *testing.T) {
	t.Parallel()
	ctx, _, a := agent(t, repeating)
	if _, err := a.Session("s").Ask(ctx, "hi", refold.ReplyAs[int]()); err == nil || !strings.Contains(err.Error(), "not a JSON object") {
		t.Errorf("got %v", err)
	}
}
