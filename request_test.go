package refold_test

// Files of a request, and a larger budget for a run that is paused.

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/refoldtest"
)

// shown is a model that keeps what it is shown.
type shown struct{ asked chan executor.Request }

func (m shown) Generate(_ context.Context, r executor.Request, _ func(string)) (executor.Answer, error) {
	m.asked <- r
	return executor.Answer{Text: "seen", Usage: executor.Usage{InputTokens: 60, OutputTokens: 60}}, nil
}

func TestFilesAreShownToTheModel(t *testing.T) {
	t.Parallel()
	m := shown{make(chan executor.Request, 1)}
	ctx, _, a := agent(t, refold.Model(refold.ModelRef{Provider: "shown", Model: "shown", Open: func() (executor.Model, error) { return m, nil }}))
	dot, err := os.Open("internal/media/testdata/dot.png")
	ok(t, err)
	defer dot.Close()
	image, err := refold.NewFile(dot, "dot.png", "image/png")
	ok(t, err)
	long := strings.Repeat("a line of a long text\n", 20_000) // 440 KB: more than an event holds
	text, err := refold.NewFile(strings.NewReader(long), "long.txt", "text/markdown")
	ok(t, err)
	if _, err := refold.NewFile(strings.NewReader("no image"), "dot.png", "image/png"); err == nil {
		t.Error("a text is an image")
	}
	run, err := a.Session("s").Ask(ctx, "What is it?", refold.Files(image, text))
	ok(t, err)
	if answer, err := run.Wait(ctx); err != nil || answer.Text != "seen" {
		t.Fatalf("got %+v (%v)", answer, err)
	}
	r := <-m.asked
	last := r.Messages[len(r.Messages)-1]
	images, words := 0, last.Text
	for _, p := range last.Parts {
		if words += p.Text; p.MediaType == "image/png" && len(p.Data) > 0 {
			images++
		}
	}
	if images != 1 || !strings.Contains(words, "What is it?") || strings.Count(words, "a line of a long text") < 20_000 {
		t.Errorf("the model was shown %d images, and %d bytes of text: %.200s", images, len(words), words)
	}
}

func TestResumeWithALargerBudget(t *testing.T) {
	t.Parallel()
	ctx, _, a := agent(t, refold.Config(refold.RunConfig{Budget: &refold.Budget{Tokens: 1}}), refold.Model(refoldtest.Model(refoldtest.Say("done"))))
	s := a.Session("s")
	run, err := s.Ask(ctx, "hi")
	ok(t, err)
	paused := 0
	for u, err := range run.Updates(ctx) {
		ok(t, err)
		if _, is := u.(refold.RunPaused); !is {
			continue
		}
		paused++
		if err := s.Resume(ctx); !isRejected(err, session.RejectIllegalTransition) {
			t.Errorf("resumed with the same budget: got %v, want illegal_transition", err)
		}
		ok(t, s.Resume(ctx, nil, refold.WithBudget(refold.Budget{Tokens: 1_000_000})))
	}
	answer, err := run.Wait(ctx)
	if err != nil || answer.Text != "done" || paused != 1 {
		t.Errorf("got %+v (%v) after %d pauses, want done after 1", answer, err, paused)
	}
}
