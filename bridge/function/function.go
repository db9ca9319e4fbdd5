package function

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/planner"
)

// Limits.
const (
	tryWaitMin   = 200 * time.Millisecond // between tries of a function that fails with a *RetryableError
	tryWaitMax   = 5 * time.Second
	triesDefault = 3
	triesMax     = 10
)

// Codes of failed calls.
const (
	codeToolNotServed    = "tool_not_served"
	codeTryAgain         = "try_again"
	codeResultUnreadable = "result_unreadable"
)

// Function is a Go function as a tool: its description and schema, the properties
// of its calls, and their Executor. New makes one. It is immutable, and several
// goroutines and bridges may share it.
type Function struct {
	spec     planner.ToolSpec
	registry *planner.Registry // of only this tool: it checks arguments as a session does
	run      func(ctx context.Context, arguments []byte) (executor.Result, error)
	tries    int
	placed   bool // the option Target was given
	err      error
}

// Option is an option of New.
type Option func(*Function)

// New makes a tool of fn. toolID names it in registries: dotted, such as
// weather.get. Its first part is the target that a bridge serves (see Target),
// and the model calls it weather_get (see ToolName).
//
// In is a struct, or a map with string keys. New derives a JSON Schema from how
// encoding/json decodes it: a field is required, unless it is a pointer or has
// omitempty or omitzero; no other members are allowed. These tags add to it:
//
//	City string   `json:"city" description:"Name of the city." minLength:"1" pattern:"^[A-Z]"`
//	Unit string   `json:"unit,omitempty" enum:"celsius,fahrenheit"`
//	Days int      `json:"days,omitempty" minimum:"1" maximum:"10"`
//	Tags []string `json:"tags,omitempty" maxItems:"5"`
//
// A type with its own UnmarshalJSON needs a method ArgsSchema that returns its
// schema; the option ArgsSchema replaces the whole schema. Numbers in a field of
// type any are float64, as in encoding/json: beyond 2^53 an integer needs a field
// of int64, uint64 or json.Number.
//
// Arguments that don't fit fail the call with `invalid_arguments`, which the
// model is shown, and fn is not called. The model is shown the result of fn: a
// string or a Result unchanged, nothing for an empty struct, a []byte as text, or
// as a file if it is not text; anything else as JSON.
//
// An error of fn settles the call as documented at Executor; a text or a Result
// returned with it is shown too. *RetryableError and *UnknownOutcomeError have
// their own meaning. ctx ends when the session withdraws the call, when its run
// time is over, and when the bridge stops; CallOf(ctx) returns the Call, with its
// idempotency key, session and effect.
//
// Err reports the problems of the tool, as does every function that accepts it.
func New[In, Out any](toolID string, fn func(ctx context.Context, in In) (Out, error), options ...Option) *Function {
	target, _, _ := strings.Cut(toolID, ".")
	f := &Function{tries: triesDefault, spec: planner.ToolSpec{
		ToolID: toolID, ToolName: strings.ReplaceAll(toolID, ".", "_"),
		Executor: planner.Executor{Kind: planner.ExecutorEffect, Target: target},
	}}
	f.run = func(ctx context.Context, arguments []byte) (executor.Result, error) {
		in, err := decodeArguments[In](arguments)
		if err != nil {
			return executor.Result{Error: &executor.Error{Code: string(planner.InvalidArguments), Detail: err.Error()}}, nil
		}
		out, err := fn(ctx, in)
		return f.resultOf(out, err)
	}
	for _, option := range options {
		if option != nil {
			option(f)
		}
	}
	if fn == nil {
		f.fail("the function is nil")
	}
	f.derive(reflect.TypeFor[In]())
	if err := presentable[Out](); err != nil {
		f.fail("its result: %w", err)
	}
	f.check()
	return f
}

func (f *Function) fail(format string, args ...any) {
	f.err = errors.Join(f.err, fmt.Errorf("tool "+f.spec.ToolID+": "+format, args...))
}

// derive sets the schema of the arguments, unless it was given.
func (f *Function) derive(in reflect.Type) {
	if f.spec.ArgsSchema != nil || f.err != nil {
		return
	}
	schema, err := schemaOf(in)
	if err == nil {
		f.spec.ArgsSchema, err = rawSchema(schema)
	}
	if err != nil {
		f.fail("its arguments: %w", err)
	}
}

// check checks the tool as a session does.
func (f *Function) check() {
	if f.err != nil {
		return
	}
	alone := f.spec
	alone.Approval = "" // it may name tools that are not known here
	alone.Needs = nil   // only tools of packs have them
	registry, err := registryOf([]planner.ToolSpec{alone})
	if err != nil {
		f.fail("%s", strings.TrimPrefix(err.Error(), "tools[0]."))
		return
	}
	f.registry = registry
	switch f.spec.Approval {
	case "", planner.ApprovalNever, planner.ApprovalAlways:
		return
	}
	rule := planner.ApprovalRule{Decision: planner.Ask, When: f.spec.Approval}
	if _, bad := planner.CompileApprovals(registry, []planner.ApprovalRule{rule}); bad != nil && !bad.Unknown {
		f.fail("approval: is never, always, or a condition: it %s", bad.Detail)
	}
}

// Err returns the problems of the tool, nil if there are none.
func (f *Function) Err() error { return f.err }

// ToolID returns the registry's key of the tool.
func (f *Function) ToolID() string { return f.spec.ToolID }

// ToolName returns the name that a model calls.
func (f *Function) ToolName() string { return f.spec.ToolName }

// Target returns the target that a bridge serves.
func (f *Function) Target() string { return f.spec.Executor.Target }

// RetrySafe reports whether a call may be executed more than once.
func (f *Function) RetrySafe() bool { return f.spec.RetrySafe }

// Weight returns about how many bytes of memory the tool takes, with its compiled
// schema; 0 if Err is not nil.
func (f *Function) Weight() int {
	if f.registry == nil {
		return 0
	}
	return f.registry.Weight()
}

// Deadline returns the limit of one start; 0: the session's default.
func (f *Function) Deadline() time.Duration {
	return time.Duration(f.spec.DeadlineMS) * time.Millisecond
}

// Execute executes one call. It checks the arguments itself, since the session's
// registry may be of another release of the program.
func (f *Function) Execute(ctx context.Context, call executor.Call) (executor.Result, error) {
	if f.err != nil {
		return executor.Result{}, f.err
	}
	arguments := string(call.Arguments)
	if bad := planner.CheckArguments(f.registry, &planner.Toolset{}, 0, arguments); !bad.OK() {
		return executor.Result{Error: &executor.Error{Code: string(bad.Code), Detail: bad.Detail}}, nil
	}
	if arguments == "" {
		arguments = "{}"
	}
	ctx = context.WithValue(ctx, callKey{}, call)
	wait := tryWaitMin
	for try := 1; ; try++ {
		result, err := f.run(ctx, []byte(arguments))
		if result.Error == nil || !result.Error.Retryable || result.Unknown || err != nil || try >= f.tries {
			return result, err
		}
		if err := executor.Wait(ctx, wait); err != nil {
			return result, err
		}
		wait = min(2*wait, tryWaitMax)
	}
}

// Accepts reports whether arguments fit the tool's schema.
func (f *Function) Accepts(arguments json.RawMessage) bool {
	return f.err == nil && planner.CheckArguments(f.registry, &planner.Toolset{}, 0, string(arguments)).OK()
}

// ServedBy returns the tool with another target, unless the option Target gave it one:
// then the tool itself.
func (f *Function) ServedBy(target string) *Function {
	if f.placed {
		return f
	}
	moved := *f
	moved.spec.Executor.Target = target
	return &moved
}

type callKey struct{}

// CallOf returns the call that a Function executes under ctx; ok is false in any
// other context.
func CallOf(ctx context.Context) (executor.Call, bool) {
	call, ok := ctx.Value(callKey{}).(executor.Call)
	return call, ok
}

// checkAll reports every problem of tools, alone and together.
func checkAll(tools []*Function) error {
	var all []error
	for i, f := range tools {
		if f == nil {
			all = append(all, fmt.Errorf("tools[%d]: is nil", i))
			continue
		}
		all = append(all, f.Err())
	}
	if err := errors.Join(all...); err != nil {
		return err
	}
	if len(tools) == 0 {
		return errors.New("no tools are given")
	}
	specs := make([]planner.ToolSpec, len(tools))
	for i, f := range tools {
		specs[i] = f.spec
		specs[i].Approval = "" // see Function.check
	}
	_, err := registryOf(specs)
	return err
}

// SetsOf returns tools by target. The error reports every problem of them, alone
// and together.
func SetsOf(tools []*Function) (map[string]Set, error) {
	if err := checkAll(tools); err != nil {
		return nil, err
	}
	all := map[string]Set{}
	for _, f := range tools {
		target := f.Target()
		if all[target] == nil {
			all[target] = Set{}
		}
		all[target][f.ToolID()] = f
	}
	return all, nil
}

// Set holds the functions of one target, by tool_id. It is an Executor of their
// calls.
type Set map[string]*Function

// ToolIDs returns the ids of the tools, sorted.
func (fs Set) ToolIDs() []string { return slices.Sorted(maps.Keys(fs)) }

// Tries returns the option Tries of a tool: so many bridges may die of one of its
// calls. It returns 0 for a tool that the set lacks.
func (fs Set) Tries(toolID string) int {
	if f := fs[toolID]; f != nil {
		return f.tries
	}
	return 0
}

// Execute executes one call.
func (fs Set) Execute(ctx context.Context, call executor.Call) (executor.Result, error) {
	f := fs[call.ToolID]
	if f == nil {
		return executor.Result{Error: &executor.Error{
			Code:   codeToolNotServed,
			Detail: "the program that serves this target has " + strings.Join(fs.ToolIDs(), ", ") + ", and not " + call.ToolID,
		}}, nil
	}
	return f.Execute(ctx, call)
}

// InPack returns the tool as a pack's tool with this target.
func (f *Function) InPack(pack, target string) (*Function, error) {
	prefix, _, _ := strings.Cut(f.spec.ToolID, ".")
	switch {
	case f.err != nil:
		return nil, f.err
	case !strings.HasPrefix(f.spec.ToolID, pack+"."):
		return nil, fmt.Errorf("tool %s: its tool_id must begin with %s", f.spec.ToolID, pack+".")
	case f.spec.Executor.Target != prefix && f.spec.Executor.Target != target:
		return nil, fmt.Errorf("tool %s: its target is %s, and this pack's target is %s: leave Target out", f.spec.ToolID, f.spec.Executor.Target, target)
	}
	moved := *f
	moved.spec.Executor.Target = target
	moved.spec.Needs = slices.Sorted(slices.Values(f.spec.Needs))
	return &moved, nil
}
