package bridge_test

// A step hook reads a run's earlier calls from the log: whole arguments, whole
// results and the input, by the sequences in its request.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/refold/refold/bridge/executor"
)

// caller is a model that makes calls in its first turn.
type caller struct{ calls []executor.AnswerCall }

func (c caller) Generate(_ context.Context, r executor.Request, _ func(string)) (executor.Answer, error) {
	if len(r.Messages) == 1 {
		return executor.Answer{Text: "I look.", Calls: c.calls}, nil
	}
	return executor.Answer{Text: "done"}, nil
}

// answers is a tool whose results follow from its arguments.
type answers struct{ long, picture string }

func (a answers) Execute(_ context.Context, call executor.Call) (executor.Result, error) {
	switch {
	case strings.Contains(string(call.Arguments), "long"):
		return executor.Result{Output: a.long}, nil
	case strings.Contains(string(call.Arguments), "picture"):
		return executor.Result{Output: "A map.", Files: []executor.File{{MediaType: "image/png", Data: []byte(a.picture)}}}, nil
	case strings.Contains(string(call.Arguments), "fail"):
		return executor.Result{Output: "half of it"}, &executor.Error{Code: "broken", Detail: "try later"}
	}
	return executor.Result{Output: "found"}, nil
}

func TestStepReadsWhatItIsShown(t *testing.T) {
	t.Parallel()
	long := `{"text":"` + strings.Repeat("é", 1500) + `"}`
	huge := `{"text":"` + strings.Repeat("x", 300<<10) + `"}`
	a := answers{long: strings.Repeat("y", 300<<10), picture: "\x89PNG"}
	model := caller{}
	for _, arguments := range []string{`{"query":"x"}`, `{"of":"long"}`, `{"of":"picture"}`, `{"of":"fail"}`, long, huge} {
		model.calls = append(model.calls, executor.AnswerCall{Name: "find_order", Arguments: arguments})
	}
	model.calls = append(model.calls, executor.AnswerCall{Name: "nosuch", Arguments: `{"a":1}`})
	wrong := make(chan string, 64)
	check := func(what string, got, want any) {
		if fmt.Sprint(got) != fmt.Sprint(want) {
			wrong <- fmt.Sprintf("%s: got %.200v, want %.200v", what, got, want)
		}
	}
	hook := func(ctx context.Context, s executor.StepRequest) (executor.StepChoice, error) {
		input, err := s.Input(ctx)
		check("the input", fmt.Sprint(input.Role, input.Text, err), "userTake notes.<nil>")
		check("the tools", s.Tools, []executor.StepTool{{ToolID: "shop.find_order", ToolName: "find_order"}, {ToolID: "shop.refund", ToolName: "refund"}})
		messages, err := s.Messages(ctx)
		check("the error of reading the messages", err, nil)
		if s.Step == 0 {
			check("the messages of the first step", fmt.Sprint(len(messages), s.Cut), "1 false")
			return executor.StepChoice{}, nil
		}
		check("the calls", len(s.Calls), 7)
		if check("the messages", len(messages), 9); len(messages) == 9 {
			check("what the model said", fmt.Sprint(messages[1].Role, messages[1].Text, len(messages[1].Calls)), "assistantI look.7")
			check("its first result", fmt.Sprint(messages[2].Role, messages[2].Text, messages[2].CallID), fmt.Sprint("toolfound", s.Calls[0].Effect))
		}
		for i, c := range s.Calls {
			arguments, err := s.Arguments(ctx, c)
			check("the arguments of "+c.Effect, arguments, model.calls[i].Arguments)
			check("their error", err, nil)
			check("whether they were cut", c.ArgumentsCut, i == 4 || i == 5)
			check("what is shown of them", strings.HasPrefix(arguments, c.Arguments) && len(c.Arguments) <= 1<<10, true)
			check("the effect", c.Effect, fmt.Sprint("r1t1c", i))
		}
		for i, want := range []executor.StepResult{
			{Text: "found"}, {Text: a.long}, {}, {Text: "half of it", Error: &executor.Error{Code: "broken", Detail: "try later"}},
			{Text: "found"}, {Error: &executor.Error{Code: "invalid_arguments"}}, {Error: &executor.Error{Code: "tool_unknown"}},
		} {
			got, err := s.Result(ctx, s.Calls[i])
			check("the error of reading", err, nil)
			if i == 2 {
				check("the picture", fmt.Sprint(len(got.Parts), strings.HasPrefix(got.Text, "A map.\n[image/png, 4 bytes"), string(got.Parts[1].Data)), "2 true"+a.picture)
				continue
			}
			check(fmt.Sprint("the text of ", i), got.Text, want.Text)
			if want.Error != nil && (got.Error == nil || *got.Error != *want.Error) || want.Error == nil && got.Error != nil {
				wrong <- fmt.Sprintf("the error of %d: got %v, want %v", i, got.Error, want.Error)
			}
		}
		// Another event's sequence reads nothing, and says so.
		for _, seq := range []uint64{s.InputSeq, s.Calls[1].Seq, 1 << 40} {
			var fault *executor.Error
			if _, err := s.Result(ctx, executor.StepCall{Effect: "r1t1c0", Seq: seq}); !errors.As(err, &fault) {
				wrong <- fmt.Sprintf("event %d as a result: got %v", seq, err)
			}
			if _, err := s.Arguments(ctx, executor.StepCall{Effect: "r1t1c0", CallsSeq: seq, ArgumentsCut: true}); !errors.As(err, &fault) {
				wrong <- fmt.Sprintf("event %d as calls: got %v", seq, err)
			}
		}
		return executor.StepChoice{}, nil
	}
	end := endOfClerk(t, desk, hook, a, model)
	close(wrong)
	for text := range wrong {
		t.Error(text)
	}
	if string(end.Lifecycle) != "completed" {
		t.Errorf("the run ended %s %s %s", end.Lifecycle, end.Code, end.Detail)
	}
	if _, err := (executor.StepRequest{}).Messages(t.Context()); err == nil {
		t.Error("a request that no bridge made has messages")
	}
	if _, err := (executor.StepRequest{}).Input(t.Context()); err == nil {
		t.Error("a request that no bridge made has an input")
	}
}
