package refold_test

import (
	"fmt"

	"github.com/refold/refold"
	"github.com/refold/refold/refoldtest"
)

// asker is an agent whose model asks, sleeps, and waits for a payment.
func asker(rt *refold.Runtime) *refold.Agent {
	a, err := rt.Agent("desk",
		refold.Model(refoldtest.Model(
			refoldtest.Calls(refoldtest.To("ask_person", map[string]string{"question": "Which colour?"})),
			refoldtest.Calls(refoldtest.To("sleep", map[string]int{"seconds": 1})),
			refoldtest.Calls(refoldtest.To("wait_for", map[string]string{"name": "payment 7"})),
			refoldtest.Say("Done."))),
		refold.ToolsFrom(refold.AskPerson(), refold.Sleep(), refold.WaitFor()))
	check(err)
	return a
}

// A model asks a person, waits a second, and then for a payment that never comes.
func ExampleAskPerson() {
	ctx, t := exampleContext()
	defer t.end()
	s := asker(refoldtest.Open(t)).Session("fence")
	run, err := s.Ask(ctx, "Paint the fence.")
	check(err)
	for u, err := range run.Updates(ctx) {
		check(err)
		asked, ok := u.(refold.ReplyAsked)
		if !ok {
			continue
		}
		fmt.Println(asked.Call.Tool, asked.Call.Arguments)
		questions, err := s.Questions(ctx)
		check(err)
		for _, q := range questions {
			if q.ToolName == "ask_person" {
				check(s.Reply(ctx, q, "Blue.")) // from any process, days later
			} else {
				check(s.Decline(ctx, q, "the customer has left"))
			}
		}
	}
	answer, err := run.Wait(ctx)
	check(err)
	fmt.Println(answer.Text)
	// Output:
	// ask_person {"question":"Which colour?"}
	// wait_for {"name":"payment 7"}
	// Done.
}

// A question that waits, as another process finds it.
func ExampleQuestion() {
	ctx, t := exampleContext()
	defer t.end()
	rt := refoldtest.Open(t)
	_, err := asker(rt).Session("fence").Ask(ctx, "Paint the fence.")
	check(err)
	var questions []refold.Question
	for len(questions) == 0 {
		questions, err = rt.Questions(ctx) // of all sessions
		check(err)
	}
	fmt.Println(questions[0].Session, questions[0].Call, questions[0].ToolName, questions[0].Arguments)
	// Output: fence r1t1c0 ask_person {"question":"Which colour?"}
}
