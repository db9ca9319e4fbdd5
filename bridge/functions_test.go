package bridge

import (
	"context"
	"slices"
	"testing"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/bridge/function"
)

// Go functions, served by target.

// A registry may have tools that this program lacks, being older or newer.
func TestToolNotServed(t *testing.T) {
	t.Parallel()
	b := &Bridge{}
	says := func(id, text string) *function.Function {
		return function.New(id, func(context.Context, struct{}) (string, error) { return text, nil })
	}
	one, two, elsewhere := says("x.answer", "one"), says("x.other", "two"), says("y.answer", "three")
	if err := b.Functions([]*function.Function{one, two, elsewhere}, Concurrency(3)); err != nil {
		t.Fatal(err)
	}
	if got, want := b.Targets(), []string{"tool/x", "tool/y"}; !slices.Equal(got, want) {
		t.Errorf("targets: got %q, want %q", got, want)
	}
	x := b.served[0]
	for id, want := range map[string]string{
		"x.answer": "one", "x.other": "two",
		"x.third":  "error: tool_not_served: the program that serves this target has x.answer, x.other, and not x.third",
		"y.answer": "error: tool_not_served: the program that serves this target has x.answer, x.other, and not y.answer",
	} {
		if r := Rehearse(t.Context(), x.Executor, executor.Call{ToolID: id, Session: "s1", Effect: "r1t1c0"}, Rehearsal{}); r.Shown != want {
			t.Errorf("%s: shown %q, want %q", id, r.Shown, want)
		}
	}
	if x.Concurrency != 3 {
		t.Errorf("concurrency: got %d, want 3", x.Concurrency)
	}
}
