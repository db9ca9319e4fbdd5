// Ask-person owns an agent that asks a person, and waits. Between the question and the
// answer no process runs.
//
//	ask-person ask            # asks, prints the question, and ends
//	ask-person answer Blue    # answers it, also days later, and prints how the run ends
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/embedded"
)

func main() {
	if err := run(context.Background(), "data", os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run does what the arguments say with the log in the folder dir.
func run(ctx context.Context, dir string, args []string, out io.Writer) error {
	rt, err := refold.Open(ctx, embedded.Dir(dir))
	if err != nil {
		return err
	}
	defer rt.Close()
	painter, err := rt.Agent("painter", refold.Model(model), refold.ToolsFrom(refold.AskPerson(), refold.Sleep()))
	if err != nil {
		return err
	}
	fence := painter.Session("fence")
	switch {
	case len(args) == 1 && args[0] == "ask":
		return ask(ctx, fence, out)
	case len(args) > 1 && args[0] == "answer":
		return answer(ctx, fence, strings.Join(args[1:], " "), out)
	}
	return errors.New("usage: ask-person ask | ask-person answer TEXT")
}

// ask requests a run, and ends when it waits for a reply.
func ask(ctx context.Context, fence *refold.Session, out io.Writer) error {
	run, err := fence.Ask(ctx, "Paint the fence.")
	if err != nil {
		return err
	}
	for u, err := range run.Updates(ctx) {
		if err != nil {
			return err
		}
		if asked, ok := u.(refold.ReplyAsked); ok {
			_, err := fmt.Fprintln(out, asked.Call.Tool, asked.Call.Arguments)
			return err
		}
	}
	return errors.New("the run ended without a question")
}

// answer answers the question, and follows the run to its end.
func answer(ctx context.Context, fence *refold.Session, text string, out io.Writer) error {
	questions, err := fence.Questions(ctx)
	if err != nil {
		return err
	}
	if len(questions) == 0 {
		return errors.New("nothing waits for an answer: ask-person ask")
	}
	question := questions[0]
	if err := fence.Reply(ctx, question, text); err != nil {
		return err
	}
	end, err := fence.Run(question.Run).Wait(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, end.Text)
	return err
}

// model is a stand-in for a real one: it asks for the colour, waits a second for the paint
// to dry, and tells what it did.
var model = refold.ModelRef{Provider: "stand-in", Model: "painter", Open: func() (executor.Model, error) { return painter{}, nil }}

type painter struct{}

// Generate implements executor.Model.
func (painter) Generate(_ context.Context, req executor.Request, _ func(string)) (executor.Answer, error) {
	var results []string
	for _, m := range req.Messages {
		if m.Role == string(session.RoleTool) {
			results = append(results, m.Text)
		}
	}
	call := func(name, arguments string) (executor.Answer, error) {
		return executor.Answer{Calls: []executor.AnswerCall{{ID: name, Name: name, Arguments: arguments}}}, nil
	}
	switch len(results) {
	case 0:
		return call("ask_person", `{"question":"Which colour?","options":["Blue","Green"]}`)
	case 1:
		return call("sleep", `{"seconds":1}`)
	}
	return executor.Answer{Text: "The fence is painted: " + results[0]}, nil
}
