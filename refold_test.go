package refold_test

// Sessions of an agent on an embedded runtime: what its methods do, and what readers
// are told.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/embedded"
	"github.com/refold/refold/refoldtest"
)

type order struct {
	Item string `json:"item"`
}

// shop is a tool of which every call waits for a person.
func shop() *refold.Tool {
	return refold.Func("shop.buy", func(_ context.Context, in order) (string, error) { return "bought " + in.Item, nil }, refold.NeedsApproval())
}

// agent serves an agent of a new runtime.
func agent(t *testing.T, o ...refold.AgentOption) (ctx context.Context, rt *refold.Runtime, a *refold.Agent) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	rt = refoldtest.Open(t)
	a, err := rt.Agent("helper", o...)
	ok(t, err)
	return ctx, rt, a
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// line returns an update in one line.
func line(u refold.Update) string {
	switch u := u.(type) {
	case refold.Text:
		return fmt.Sprintf("text %d.%d %s", u.Run, u.Turn, u.Text)
	case refold.TextRestarted:
		return fmt.Sprintf("restarted %d.%d", u.Run, u.Turn)
	case refold.ToolAsked:
		return fmt.Sprintf("asked %s %s%s", u.Call.Name, u.Call.Tool, u.Call.Arguments)
	case refold.ToolEnded:
		return fmt.Sprintf("ended %s %s %s", u.Call.Name, u.Call.Status, u.Call.Code)
	case refold.ApprovalAsked:
		return "waits " + u.Call.Name
	case refold.ApprovalDecided:
		return fmt.Sprintf("decided %s %s %s", u.Call.Name, u.Decision, u.Reason)
	case refold.RunEnded:
		return fmt.Sprintf("end %d %s %s after %d", u.Run, u.Lifecycle, u.Code, u.Turns)
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", u), "refold.Run")
}

// joined returns the lines of updates, texts of one turn as one line.
func joined(all []refold.Update) (lines []string) {
	before := refold.Text{}
	for _, u := range all {
		text, isText := u.(refold.Text)
		if last := len(lines) - 1; isText && before.Turn == text.Turn && before.Run == text.Run && last >= 0 {
			lines[last] += text.Text
		} else {
			lines = append(lines, line(u))
		}
		before = text
	}
	return lines
}

func TestUpdatesOfARun(t *testing.T) {
	t.Parallel()
	ctx, _, a := agent(t, refold.Tools(shop()), refold.Model(refoldtest.Model(
		refoldtest.Calls(refoldtest.To("shop_buy", order{"tea"}), refoldtest.To("shop_sell", nil)), refoldtest.Say("I have it."))))
	s := a.Session("hello")
	run, err := s.Ask(ctx, "Buy tea.")
	ok(t, err)
	var all []refold.Update
	for u, err := range run.Updates(ctx) {
		ok(t, err)
		all = append(all, u)
		if _, waits := u.(refold.ApprovalAsked); waits {
			waiting, err := s.Approvals(ctx)
			if err != nil || len(waiting) != 1 {
				t.Fatalf("approvals: got %+v (%v), want one", waiting, err)
			}
			ok(t, s.Approve(ctx, waiting[0]))
			if err := s.Deny(ctx, waiting[0]); !errors.Is(err, refold.ErrStale) {
				t.Errorf("decided twice: got %v, want %v", err, refold.ErrStale)
			}
		}
	}
	want := []string{
		"Started", `asked r1t1c0 shop_buy{"item":"tea"}`, "asked r1t1c1 shop_sell", "ended r1t1c1 ignored tool_unknown", "waits r1t1c0",
		"decided r1t1c0 approve ", "ended r1t1c0 succeeded ", "text 1.2 I have it.", "end 1 completed  after 2",
	}
	if got := joined(all); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	answer, err := run.Wait(ctx)
	if err != nil || answer.Text != "I have it." || answer.Run != 1 || answer.Turns != 2 || len(answer.Calls) != 2 || answer.Calls[1].Arguments != `{"item":"tea"}` {
		t.Errorf("got %+v (%v)", answer, err)
	}

	// A reader that begins again after any update gets the others, each once.
	for i, u := range all[:len(all)-1] {
		var rest []refold.Update
		for u, err := range s.Updates(ctx, u.Position()) {
			ok(t, err)
			if rest = append(rest, u); line(u) == want[len(want)-1] {
				break
			}
			if len(rest) > len(all) {
				t.Fatalf("after %s: got %q", line(all[i]), joined(rest))
			}
		}
		if got, want := joined(rest), joined(all[i+1:]); !slices.Equal(got, want) {
			t.Errorf("after %q: got\n%s\nwant\n%s", line(all[i]), strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	for _, bad := range []string{"x", "0-0", "1", "1-2-3", "-1-2"} {
		for _, err := range s.Updates(ctx, bad) {
			if err == nil {
				t.Errorf("after %q: got an update", bad)
			}
		}
	}
}

// gate is a model that answers when the test lets it.
type gate struct {
	open  chan struct{}
	asked chan executor.Request
}

func newGate() *gate {
	return &gate{open: make(chan struct{}), asked: make(chan executor.Request, 16)}
}

func (g *gate) Generate(ctx context.Context, r executor.Request, delta func(string)) (executor.Answer, error) {
	delta("so")
	g.asked <- r
	select {
	case <-g.open:
		return executor.Answer{Text: "so it is"}, nil
	case <-ctx.Done():
		return executor.Answer{}, ctx.Err()
	}
}

func (g *gate) ref() refold.ModelRef {
	return refold.ModelRef{Provider: "gate", Model: "gate", Open: func() (executor.Model, error) { return g, nil }}
}

func TestControlsOfRuns(t *testing.T) {
	t.Parallel()
	g := newGate()
	ctx, rt, a := agent(t, refold.Model(g.ref()))
	s := a.Session("hello")
	first, err := s.Ask(ctx, "one")
	ok(t, err)
	<-g.asked
	second, err := s.Ask(ctx, "two")
	ok(t, err)
	if _, err := s.Ask(ctx, "three", refold.WhenBusy(refold.Reject)); !isRejected(err, session.RejectRunActive) {
		t.Errorf("while busy: got %v, want run_active", err)
	}
	steered, err := s.Steer(ctx, "more")
	if err != nil || steered.Number() != 1 {
		t.Errorf("steered: got %+v (%v), want run 1", steered, err)
	}
	ok(t, s.Pause(ctx))
	if err := s.Pause(ctx); !isRejected(err, session.RejectIllegalTransition) {
		t.Errorf("paused twice: got %v, want illegal_transition", err)
	}
	ok(t, s.Resume(ctx))
	ok(t, second.Cancel(ctx))
	var ended *refold.RunError
	if _, err := second.Wait(ctx); !errors.As(err, &ended) || ended.Lifecycle != session.Cancelled || ended.Answer.Run != 2 {
		t.Errorf("cancelled: got %v", err)
	}
	ok(t, s.Interrupt(ctx))
	close(g.open)
	if _, err := first.Wait(ctx); !errors.As(err, &ended) || ended.Lifecycle != session.Interrupted || ended.Answer.Text != "so it is" {
		t.Errorf("interrupted: got %v, want its text", err)
	}
	ok(t, s.SetFacts(ctx, map[string]string{"plan": "gold", "name": "Ann"}))
	ok(t, s.SetFacts(ctx, nil, "name"))
	if v, err := s.View(ctx); err != nil || len(v.Facts) != 1 || v.Facts[0].Value != "gold" {
		t.Errorf("facts: got %+v (%v)", v.Facts, err)
	}
	if _, err := s.Run(7).Wait(ctx); !errors.Is(err, refold.ErrNoRun) {
		t.Errorf("run 7: got %v, want %v", err, refold.ErrNoRun)
	}
	if _, err := rt.Session("hello").Ask(ctx, "hi"); err == nil {
		t.Error("a session without an agent takes requests")
	}
	listed := 0
	for info, err := range rt.Sessions(ctx, refold.Named("hel")) {
		ok(t, err)
		if listed++; info.Session != "hello" {
			t.Errorf("listed %+v", info)
		}
	}
	if listed != 1 {
		t.Errorf("listed %d sessions, want 1", listed)
	}
	ok(t, s.End(ctx))
	if _, err := s.Ask(ctx, "after"); !isRejected(err, session.RejectSessionClosed) {
		t.Errorf("closed: got %v, want session_closed", err)
	}
}

func isRejected(err error, code session.Rejection) bool {
	var refused *refold.RejectedError
	return errors.As(err, &refused) && refused.Code == code
}

// The stream of a session goes on over the end of a run, and in the middle of a text.
func TestReaderJoinsInTheMiddleOfATurn(t *testing.T) {
	t.Parallel()
	g := newGate()
	ctx, rt, a := agent(t, refold.Model(g.ref()))
	s := a.Session("hello")
	run, err := s.Ask(ctx, "one")
	ok(t, err)
	var position string
	for u, err := range run.Updates(ctx) {
		ok(t, err)
		if _, text := u.(refold.Text); text {
			position = u.Position()
			break
		}
	}
	close(g.open)
	var got []string
	for u, err := range rt.Session("hello").Updates(ctx, position) {
		ok(t, err)
		got = append(got, line(u))
		if _, ended := u.(refold.RunEnded); ended {
			break
		}
	}
	if want := []string{"text 1.1  it is", "end 1 completed  after 1"}; !slices.Equal(got, want) {
		t.Errorf("after %q: got %q, want %q", position, got, want)
	}
}

// An option may be left out as nil.
func TestNilOptionsAreLeftOut(t *testing.T) {
	t.Parallel()
	ctx, rt, a := agent(t, nil, repeating, refold.Tools(nothing("a.b"), refold.Func("a.c", func(context.Context, struct{}) (string, error) { return "", nil }, nil)))
	if got := ask(ctx, t, a.Session("s"), nil); got != " a_b a_c" {
		t.Errorf("got %q", got)
	}
	for _, err := range rt.Sessions(ctx, nil) {
		ok(t, err)
	}
	if err := a.Session("s").Approve(ctx, refold.Approval{}, nil); err == nil {
		t.Error("the zero approval is one of the session")
	}
	if again, err := refold.Open(ctx, embedded.Dir(t.TempDir(), embedded.Option{}), nil); err != nil {
		t.Error(err)
	} else {
		ok(t, again.Close())
	}
}
