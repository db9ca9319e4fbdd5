package planner_test

// The specification: every file in testdata is a sequence of directives, each
// with its expected result. Run with -rewrite to write the actual results, then
// read the difference.

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// TestSpecification runs the files in testdata.
func TestSpecification(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &spec{reg: builtin(t)}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			run, ok := directives[d.Cmd]
			if !ok {
				t.Fatalf("%s: no directive %q; there are %v", d.Pos, d.Cmd, slices.Sorted(maps.Keys(directives)))
			}
			return strings.TrimRight(run(s, t, d), "\n") + "\n"
		})
	})
}

// spec is what one file has set so far.
type spec struct {
	reg     *planner.Registry
	facts   planner.Facts
	root    string // the host session's working directory
	request planner.Request
	toolset planner.Toolset
	plan    planner.Plan
	steps   *planner.Steps
	moment  planner.StepFacts
}

var directives = map[string]func(*spec, *testing.T, *datadriven.TestData) string{
	"builtin":   (*spec).runBuiltin,
	"profiles":  (*spec).runProfiles,
	"registry":  (*spec).runRegistry,
	"tool":      (*spec).runTool,
	"schema":    (*spec).runSchema,
	"arguments": (*spec).runArguments,
	"facts":     (*spec).runFacts,
	"select":    (*spec).runSelect,
	"resolve":   (*spec).runResolve,
	"call":      (*spec).runCall,
	"recheck":   (*spec).runRecheck,
	"plan":      (*spec).runPlan,
	"batch":     (*spec).runBatch,
	"wire":      (*spec).runWire,
	"steps":     (*spec).runSteps,
	"moment":    (*spec).runMoment,
	"match":     (*spec).runMatch,
	"when":      (*spec).runWhen,
}

func builtin(t testing.TB) *planner.Registry {
	t.Helper()
	reg, err := planner.Builtin().Registry()
	if err != nil {
		t.Fatalf("the built-in registry: %v", err)
	}
	return reg
}

// decode reads JSON into v in the way of an install record.
func decode(t testing.TB, text string, v any) {
	t.Helper()
	raw, err := codec.FromJSON([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if err := codec.Unmarshal(raw, v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// raw returns JSON text as canonical bytes.
func raw(t testing.TB, text string) codec.Raw {
	t.Helper()
	out, err := codec.FromJSON([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out
}

// minimal returns a tool with no more than it needs.
func minimal(t testing.TB) planner.ToolSpec {
	t.Helper()
	return planner.ToolSpec{
		ToolID: "x.tool", ToolName: "tool", ArgsSchema: raw(t, `{"type":"object"}`),
		Executor: planner.Executor{Kind: planner.ExecutorEffect, Target: "host"},
	}
}

// outcome shows a registry that was accepted, or the fault.
func outcome(reg *planner.Registry, err error) string {
	if err != nil {
		return err.Error()
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%d tools\n", reg.Len())
	for _, p := range reg.Profiles() {
		fmt.Fprintf(&out, "profile %s: %s\n", p.Profile, strings.Join(p.Tools, " "))
	}
	for _, entry := range reg.ProfileByProvider() {
		fmt.Fprintf(&out, "provider %s: %s\n", entry.Key, entry.Value[1:])
	}
	if name := reg.DefaultProfile(); name != "" {
		fmt.Fprintf(&out, "default: %s\n", name)
	}
	return out.String()
}

// runBuiltin shows the built-in tools as a table.
func (s *spec) runBuiltin(t *testing.T, _ *datadriven.TestData) string {
	s.reg = builtin(t)
	var out strings.Builder
	for _, spec := range s.reg.Tools() {
		rules := make([]string, len(spec.Availability))
		for i, rule := range spec.Availability {
			rules[i] = rule.String()
		}
		fmt.Fprintf(&out, "%s | %s | parallel_safe %t | %s | %s | retry_safe %t | %s | %s %s | %s\n",
			spec.ToolID, spec.ToolName, spec.ParallelSafe, or(spec.ResourceKey, "-"), spec.Access, spec.RetrySafe,
			strings.Join(rules, ", "), spec.Executor.Kind, spec.Executor.Target, spec.Approval)
	}
	return out.String()
}

// runProfiles shows the profiles, their tools by name.
func (s *spec) runProfiles(_ *testing.T, _ *datadriven.TestData) string { return outcome(s.reg, nil) }

// runRegistry makes the input the registry.
func (s *spec) runRegistry(t *testing.T, d *datadriven.TestData) string {
	var def planner.Defaults
	decode(t, repeated(d.Input), &def)
	reg, err := def.Registry()
	if err == nil {
		s.reg = reg
	}
	return outcome(reg, err)
}

// runTool lays the input over a minimal tool.
func (s *spec) runTool(t *testing.T, d *datadriven.TestData) string {
	spec := overlay(t, d.Input)
	reg, err := planner.NewRegistry([]planner.ToolSpec{spec}, nil, "", nil)
	if err == nil {
		s.reg = reg
	}
	return outcome(reg, err)
}

// overlay returns a minimal tool with some fields replaced.
func overlay(t testing.TB, text string) planner.ToolSpec {
	t.Helper()
	base, err := codec.Marshal(minimal(t))
	if err != nil {
		t.Fatal(err)
	}
	var fields, more map[string]codec.Raw
	if err := codec.Unmarshal(base, &fields); err != nil {
		t.Fatal(err)
	}
	decode(t, text, &more)
	maps.Copy(fields, more)
	merged, err := codec.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	var spec planner.ToolSpec
	if err := codec.Unmarshal(merged, &spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

// runSchema makes the input the args_schema of the only tool.
func (s *spec) runSchema(t *testing.T, d *datadriven.TestData) string {
	spec := minimal(t)
	spec.ArgsSchema = raw(t, d.Input)
	reg, err := planner.NewRegistry([]planner.ToolSpec{spec}, nil, "", nil)
	if err != nil {
		return err.Error()
	}
	s.reg = reg
	return "ok"
}

// runArguments checks each line of the input as arguments of the only tool. A
// line may end in `× n`: its text that often.
func (s *spec) runArguments(_ *testing.T, d *datadriven.TestData) string {
	ts := planner.Select(s.reg, planner.Request{}, planner.Facts{})
	var out strings.Builder
	for _, line := range strings.Split(d.Input, "\n") {
		_, why := planner.Check(s.reg, &ts, planner.ObservedCall{ToolName: "tool", Arguments: repeated(line)})
		fmt.Fprintf(&out, "%s\n", verdict(why))
	}
	return out.String()
}

// repeated writes out every `<text>×n` of a line.
func repeated(line string) string {
	for {
		head, rest, ok := strings.Cut(line, "<")
		text, rest, closed := strings.Cut(rest, ">×")
		if !ok || !closed {
			return line
		}
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		n, err := strconv.Atoi(rest[:digits])
		if err != nil {
			return line
		}
		line = head + strings.Repeat(text, n) + rest[digits:]
	}
}

func verdict(why planner.Rejection) string {
	if why.OK() {
		return "runs"
	}
	return fmt.Sprintf("%s %s: %s", why.Status(), why.Code, why.Detail)
}

func or(text, empty string) string {
	if text == "" {
		return empty
	}
	return text
}
