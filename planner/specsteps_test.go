package planner_test

// The directives about step rules.

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// runSteps compiles the input, a list of step rules.
func (s *spec) runSteps(t *testing.T, d *datadriven.TestData) string {
	var list struct {
		Steps []planner.StepRule `msgpack:"steps,omitempty"`
	}
	decode(t, `{"steps":`+repeated(d.Input)+`}`, &list)
	steps, bad := planner.CompileSteps(s.reg, list.Steps)
	if bad != nil {
		return ruleFault(bad)
	}
	s.steps = steps
	return fmt.Sprintf("%d rules", steps.Len())
}

// ruleFault shows a fault with what an event's sender is told.
func ruleFault(bad *planner.RuleError) string {
	switch {
	case bad.Unknown:
		return "unknown_tool: " + bad.Error()
	case bad.TooLarge:
		return "limit_exceeded: " + bad.Error()
	}
	return "invalid_rule: " + bad.Error()
}

// runMoment sets what a when sees; what is left out is empty.
func (s *spec) runMoment(t *testing.T, d *datadriven.TestData) string {
	s.moment = moment(t, d.Input)
	return "ok"
}

func moment(t testing.TB, text string) planner.StepFacts {
	t.Helper()
	var given struct {
		Context codec.Raw          `msgpack:"context,omitempty"`
		Facts   []planner.Fact     `msgpack:"facts,omitempty"`
		Calls   []planner.LastCall `msgpack:"calls,omitempty"`
		Last    []string           `msgpack:"last,omitempty"`
		Roles   []string           `msgpack:"roles,omitempty"`
		Step    int                `msgpack:"step,omitempty"`
		Usage   struct {
			Cached    int64 `msgpack:"cached_tokens,omitempty"`
			Input     int64 `msgpack:"input_tokens,omitempty"`
			Output    int64 `msgpack:"output_tokens,omitempty"`
			Reasoning int64 `msgpack:"reasoning_tokens,omitempty"`
		} `msgpack:"usage,omitempty"`
		Used []string `msgpack:"used,omitempty"`
	}
	decode(t, text, &given)
	slices.Sort(given.Used)
	return planner.StepFacts{
		Step: given.Step, Used: given.Used, Last: given.Last, Calls: given.Calls, Facts: given.Facts, Roles: given.Roles, Context: given.Context,
		Usage: planner.StepUsage{
			InputTokens: given.Usage.Input, OutputTokens: given.Usage.Output,
			CachedTokens: given.Usage.Cached, ReasoningTokens: given.Usage.Reasoning,
		},
	}
}

// runMatch matches the rules at the moment, or at one for each line of input.
func (s *spec) runMatch(t *testing.T, d *datadriven.TestData) string {
	if d.Input == "" {
		return matched(s.steps.Match(s.moment))
	}
	var out strings.Builder
	for _, line := range strings.Split(d.Input, "\n") {
		fmt.Fprintf(&out, "%s\n", matched(s.steps.Match(moment(t, line))))
	}
	return out.String()
}

func matched(m planner.StepMatch) string {
	out := "none"
	if m.Rule >= 0 {
		out = fmt.Sprintf("rule %d", m.Rule)
	}
	for _, f := range m.Failed {
		out += fmt.Sprintf(", %d %s", f.Rule, f.Code)
	}
	return out
}

// runWhen evaluates each line of the input by itself at the moment, and shows
// it with its result. `\n` in a line is a new line.
func (s *spec) runWhen(_ *testing.T, d *datadriven.TestData) string {
	var out strings.Builder
	for _, line := range strings.Split(d.Input, "\n") {
		text := strings.ReplaceAll(repeated(line), `\n`, "\n")
		steps, bad := planner.CompileSteps(s.reg, []planner.StepRule{{When: text}})
		if bad != nil {
			fmt.Fprintf(&out, "%s => %s\n", line, ruleFault(bad))
			continue
		}
		m := steps.Match(s.moment)
		answer := fmt.Sprint(m.Rule == 0)
		if len(m.Failed) > 0 {
			answer = m.Failed[0].Code
		}
		fmt.Fprintf(&out, "%s => %s\n", line, answer)
	}
	return out.String()
}
