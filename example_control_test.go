package refold_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/refoldtest"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// waiter is an agent whose first run of a session waits for a person.
func waiter(t *exampleT) *refold.Agent {
	pays := refoldtest.Calls(refoldtest.To("shop_pay", map[string]int{"amount": 5}))
	a, err := refoldtest.Open(t).Agent("shop",
		refold.Model(refoldtest.Model(pays, refoldtest.Say("Done."))),
		refold.Tools(refold.Func("shop.pay", pay, refold.NeedsApproval())))
	check(err)
	return a
}

type bill struct {
	Amount int `json:"amount"`
}

func pay(_ context.Context, in bill) (string, error) { return fmt.Sprintf("paid %d", in.Amount), nil }

// Everything that a page shows of a run, as it happens.
func ExampleUpdate() {
	ctx, t := exampleContext()
	defer t.end()
	s := waiter(t).Session("hello")
	run, err := s.Ask(ctx, "Pay the bill.")
	check(err)
	for u, err := range run.Updates(ctx) {
		check(err)
		switch u := u.(type) {
		case refold.RunQueued:
			fmt.Println("waits for another run")
		case refold.RunStarted:
			fmt.Println("run", u.Run)
		case refold.Text:
			fmt.Println(u.Text) // a piece of the answer: more may follow
		case refold.TextRestarted:
			fmt.Println("forget the text of turn", u.Turn)
		case refold.ToolAsked:
			fmt.Println("calls", u.Call.Tool, u.Call.Arguments)
		case refold.ApprovalAsked:
			fmt.Println("may it?")
			calls, err := s.Approvals(ctx)
			check(err)
			check(s.Approve(ctx, calls[0], refold.Instead(`{"amount":4}`)))
		case refold.ApprovalDecided:
			fmt.Println(u.Decision)
		case refold.ToolEnded:
			fmt.Println(u.Call.Tool, u.Call.Status)
		case refold.Waiting: // such as for a provider that is down
			log.Print(u.For, u.Target, u.Cause)
		case refold.RunPaused, refold.RunResumed:
			fmt.Println("a person, or the budget")
		case refold.Partial: // this user may not read the log
			fmt.Println("some updates may be missing:", u.Missed)
		case refold.RunEnded:
			fmt.Println(u.Lifecycle, "after", u.Turns, "turns")
		}
	}
	// Output:
	// run 1
	// calls shop_pay {"amount":5}
	// may it?
	// approve
	// shop_pay succeeded
	// Done.
	// completed after 2 turns
}

// A person says no, and why. The model is told, and the run goes on.
func ExampleSession_Deny() {
	ctx, t := exampleContext()
	defer t.end()
	s := waiter(t).Session("hello")
	run, err := s.Ask(ctx, "Pay the bill.")
	check(err)
	calls := waiting(ctx, s, run)
	check(s.Deny(ctx, calls[0], refold.Because("it was paid in May")))
	answer, err := run.Wait(ctx)
	check(err)
	fmt.Println(answer.Calls[0].Tool, answer.Calls[0].Status, answer.Calls[0].Code)
	// A decision counts once, and for the arguments that were shown.
	if err := s.Approve(ctx, calls[0]); errors.Is(err, refold.ErrStale) {
		fmt.Println("too late")
	}
	// Output:
	// shop_pay ignored approval_denied
	// too late
}

// waiting returns the calls that wait for a person, once there is one.
func waiting(ctx context.Context, s *refold.Session, run *refold.Run) []refold.Approval {
	for u, err := range run.Updates(ctx) {
		check(err)
		if _, asked := u.(refold.ApprovalAsked); asked {
			break
		}
	}
	calls, err := s.Approvals(ctx)
	check(err)
	return calls
}

// While a run is active, more input steers it, and requests wait in a queue.
func ExampleSession_Steer() {
	ctx, t := exampleContext()
	defer t.end()
	s := waiter(t).Session("hello")
	run, err := s.Ask(ctx, "Pay the bill.")
	check(err)
	waiting(ctx, s, run)

	steered, err := s.Steer(ctx, "Be quick.")
	check(err)
	_, err = s.Ask(ctx, "And the other one.", refold.WhenBusy(refold.Reject))
	fmt.Println(err)
	next, err := s.Ask(ctx, "And the other one.") // the default: it waits its turn
	check(err)
	view, err := s.View(ctx)
	check(err)
	fmt.Println("run", steered.Number(), "waits for", view.WaitsFor, "and", len(view.Queue), "in the queue")

	check(next.Cancel(ctx))     // it never began
	check(s.Pause(ctx))         // nothing begins until Resume
	check(s.Resume(ctx))        //
	check(s.Interrupt(ctx))     // the call that waits is given up, and the run ends
	_, err = s.Run(1).Wait(ctx) // a handle on an earlier run, in any process
	fmt.Println(err)
	check(s.End(ctx)) // the session takes no more requests
	_, err = s.Ask(ctx, "Hello?")
	fmt.Println(err)
	// Output:
	// rejected: run_active: run 1 is active, and when_busy is reject
	// run 1 waits for approval and 1 in the queue
	// run 1 is interrupted
	// rejected: session_closed: the session was closed: open another one
}

// Sessions of an agent, the latest first.
func ExampleRuntime_Sessions() {
	ctx, t := exampleContext()
	defer t.end()
	rt := refoldtest.Open(t)
	helper, err := rt.Agent("helper", refold.Model(refoldtest.Model(refoldtest.Say("It rains."))))
	check(err)
	for _, id := range []string{"acme-1", "acme-2", "bolt-1"} {
		s := helper.Session(id)
		run, err := s.Ask(ctx, "Weather in Bergen?")
		check(err)
		_, err = run.Wait(ctx)
		check(err)
		fmt.Println(helper.Name(), "answered", s.ID())
	}
	for info, err := range rt.Sessions(ctx, refold.Named("acme-"), refold.In("completed")) {
		check(err)
		fmt.Println(info.Session, info.State)
	}
	// Output:
	// helper answered acme-1
	// helper answered acme-2
	// helper answered bolt-1
	// acme-2 completed
	// acme-1 completed
}

// Facts of a session decide which tools a turn has: here by a function, which is asked
// before each turn.
func ExamplePrepareStep() {
	ctx, t := exampleContext()
	defer t.end()
	helper, err := refoldtest.Open(t).Agent("helper",
		refold.Model(refoldtest.Model(refoldtest.Calls(refoldtest.To("shop_pay", bill{5})), refoldtest.Say("Done."))),
		refold.Tools(refold.Func("weather.get", weather), refold.Func("shop.pay", pay)),
		refold.PrepareStep(func(_ context.Context, step refold.Step) (refold.StepChoice, error) {
			if step.Facts["customer"] == "gold" {
				return refold.StepChoice{}, nil // all tools
			}
			return refold.StepChoice{ActiveTools: []string{"weather.get"}}, nil
		}))
	check(err)
	for _, customer := range []string{"new", "gold"} {
		s := helper.Session("of-a-customer-" + customer)
		check(s.SetFacts(ctx, map[string]string{"customer": customer}))
		run, err := s.Ask(ctx, "Pay the bill.")
		check(err)
		answer, err := run.Wait(ctx)
		check(err)
		fmt.Println(customer, answer.Calls[0].Status, answer.Calls[0].Code)
	}
	// Output:
	// new ignored tool_disabled
	// gold succeeded
}

// Two agents with one model and two keys: each has its own name of the provider, so that
// neither's turns are paid by the other's key.
func ExampleModelRef_As() {
	ctx, t := exampleContext()
	defer t.end()
	rt := refoldtest.Open(t)
	for name, model := range map[string]refold.ModelRef{
		"ours":   refoldtest.Model(refoldtest.Say("paid by us")),
		"theirs": refoldtest.Model(refoldtest.Say("paid by them")).As("their-account"),
	} {
		a, err := rt.Agent(name, refold.Model(model))
		check(err)
		run, err := a.Session(name).Ask(ctx, "Who pays?")
		check(err)
		answer, err := run.Wait(ctx)
		check(err)
		fmt.Println(answer.Text)
	}
	// Unordered output:
	// paid by us
	// paid by them
}

// If the model is down, another one answers, and the run stays with it.
func ExampleFallback() {
	ctx, t := exampleContext()
	defer t.end()
	helper, err := refoldtest.Open(t).Agent("helper",
		refold.Model(refoldtest.Model(refoldtest.Fail("overloaded", "come back later"))),
		refold.Fallback(refoldtest.Model(refoldtest.Say("It rains.")).As("spare")),
		refold.Config(refold.RunConfig{Fallback: []session.FallbackModel{{Provider: "spare", Model: "turns", On: []string{"overloaded"}}}}))
	check(err)
	run, err := helper.Session("hello").Ask(ctx, "Weather in Bergen?")
	check(err)
	answer, err := run.Wait(ctx)
	check(err)
	fmt.Println(answer.Text)
	// Output: It rains.
}

// A transcript in the forms of providers' APIs.
func ExampleTranscript_Markdown() {
	ctx, t := exampleContext()
	defer t.end()
	helper, err := refoldtest.Open(t).Agent("helper", refold.Model(refoldtest.Model(refoldtest.Say("It rains."))))
	check(err)
	s := helper.Session("hello")
	run, err := s.Ask(ctx, "Weather in Bergen?")
	check(err)
	_, err = run.Wait(ctx)
	check(err)
	transcript, err := s.Transcript(ctx)
	check(err)
	fmt.Println(strings.Contains(transcript.Markdown(), "Weather in Bergen?"))
	fmt.Print(string(transcript.Anthropic()))
	// Output:
	// true
	// [
	// {"role":"user","content":[{"type":"text","text":"Weather in Bergen?"}]},
	// {"role":"assistant","content":[{"type":"text","text":"It rains."}]}
	// ]
}
