package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/planner"
)

// Function is a Go function as a tool: what a model is shown of it, what may
// happen to its calls, and the Executor that carries them out. Func makes one.
// It is immutable and may be used from several goroutines, by several bridges.
type Function struct {
	spec     planner.ToolSpec
	registry *planner.Registry // of this tool alone: it checks arguments as a session does
	run      func(ctx context.Context, arguments []byte) (executor.Result, error)
	tries    int
	err      error
}

// FunctionOption changes what Func makes.
type FunctionOption func(*Function)

// Func makes fn a tool. toolID names it in registries: dotted, such as
// weather.get. Its first part is the target that a bridge serves (see Target),
// and the model calls it weather_get (see ToolName).
//
// In is a struct, or a map with texts as keys. Its JSON Schema is derived, as
// encoding/json reads it: a field is required, unless it is a pointer or has
// omitempty or omitzero; no other members are allowed. These tags say more:
//
//	City string   `json:"city" description:"Name of the city." minLength:"1" pattern:"^[A-Z]"`
//	Unit string   `json:"unit,omitempty" enum:"celsius,fahrenheit"`
//	Days int      `json:"days,omitempty" minimum:"1" maximum:"10"`
//	Tags []string `json:"tags,omitempty" maxItems:"5"`
//
// A type that reads JSON its own way says what it takes by a method ArgsSchema;
// a whole schema is given by the option ArgsSchema. Numbers in a field of type any
// are float64, as encoding/json has them: beyond 2^53 an integer wants a field of
// int64, uint64 or json.Number.
//
// Arguments that don't fit are told to the model, code `invalid_arguments`, and
// fn is not called. What fn returns is shown to the model: a string as it is, a
// Result as it is, nothing of an empty struct, a []byte as text, or as a file
// if it is not text; anything else as JSON.
//
// An error of fn settles the call as Executor says; a text or a Result beside it
// is shown too. Two kinds say more: *RetryableError and *UnknownOutcomeError. ctx ends when the session withdraws
// the call, when its run time is over, and when the bridge stops; CallOf(ctx)
// returns the Call, with its idempotency key, session and effect.
//
// What is wrong with the tool is reported by Err, and by all that takes it.
func Func[In, Out any](toolID string, fn func(ctx context.Context, in In) (Out, error), options ...FunctionOption) *Function {
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
		option(f)
	}
	if fn == nil {
		f.fail("there is no function")
	}
	f.derive(reflect.TypeFor[In]())
	if err := presentable[Out](); err != nil {
		f.fail("its result: %w", err)
	}
	f.check()
	return f
}

// fail adds to what is wrong with f.
func (f *Function) fail(format string, args ...any) {
	f.err = errors.Join(f.err, fmt.Errorf("tool "+f.spec.ToolID+": "+format, args...))
}

// derive fills in the schema of the arguments, unless it was given.
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

// check has the tool checked as a session checks it.
func (f *Function) check() {
	if f.err != nil {
		return
	}
	alone := f.spec
	alone.Approval = "" // it may name tools that are not known here
	alone.Needs = nil   // packs have them alone
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

// Err returns what is wrong with the tool, nil if nothing is.
func (f *Function) Err() error { return f.err }

// ToolID returns the registry's key of the tool.
func (f *Function) ToolID() string { return f.spec.ToolID }

// ToolName returns what a model calls.
func (f *Function) ToolName() string { return f.spec.ToolName }

// Target returns who carries the tool out: what a bridge serves.
func (f *Function) Target() string { return f.spec.Executor.Target }

// RetrySafe reports whether a call may be carried out more than once.
func (f *Function) RetrySafe() bool { return f.spec.RetrySafe }

// Weight returns about how many bytes of memory the tool takes, its schema
// compiled; 0 if something is wrong with it.
func (f *Function) Weight() int {
	if f.registry == nil {
		return 0
	}
	return f.registry.Weight()
}

// Deadline returns what one start may take; 0: the session's default.
func (f *Function) Deadline() time.Duration {
	return time.Duration(f.spec.DeadlineMS) * time.Millisecond
}

// Execute carries out one call. It checks the arguments itself: the session's
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
		if !pause(ctx.Done(), wait) {
			return result, nil
		}
		wait = min(2*wait, tryWaitMax)
	}
}

// callKey is the key of a Call in the context of a function.
type callKey struct{}

// CallOf returns the call that a Function carries out under ctx; false in any
// other context.
func CallOf(ctx context.Context) (executor.Call, bool) {
	call, ok := ctx.Value(callKey{}).(executor.Call)
	return call, ok
}

// Functions makes this bridge carry out the calls of tools. Those of one target
// are served together: an option such as Concurrency is of the target. It must
// come before Run, and no other tool of these targets may be served.
//
// The tools must be in the registry of a session too: see InstallRecord and
// Specs. A call of a tool that is in the registry, of one of these targets, and
// not among them ends `tool_not_served`.
func (b *Bridge) Functions(tools []*Function, options ...ServeOption) error {
	if err := checkFunctions(tools); err != nil {
		return err
	}
	var targets []string
	served := map[string]functions{}
	for _, f := range tools {
		target := f.Target()
		if served[target] == nil {
			targets = append(targets, target)
			served[target] = functions{}
		}
		served[target][f.ToolID()] = f
	}
	for _, target := range targets {
		if err := b.Tool(target, served[target], options...); err != nil {
			return err
		}
	}
	return nil
}

// checkFunctions reports everything that is wrong with tools, alone and
// together.
func checkFunctions(tools []*Function) error {
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
		specs[i].Approval = "" // see check
	}
	_, err := registryOf(specs)
	return err
}

// functions are the functions of one target, by tool_id.
type functions map[string]*Function

// Execute carries out one call.
func (fs functions) Execute(ctx context.Context, call executor.Call) (executor.Result, error) {
	f := fs[call.ToolID]
	if f == nil {
		var known []string
		for id := range fs {
			known = append(known, id)
		}
		slices.Sort(known)
		return executor.Result{Error: &executor.Error{
			Code:   codeToolNotServed,
			Detail: "the program that serves this target has " + strings.Join(known, ", ") + ", and not " + call.ToolID,
		}}, nil
	}
	return f.Execute(ctx, call)
}

// Description is what the model is told of the tool, at most 16 KiB.
func Description(text string) FunctionOption {
	return func(f *Function) { f.spec.Description = text }
}

// ToolName is what the model calls: 1 to 64 of A-Za-z0-9_-.
func ToolName(name string) FunctionOption {
	return func(f *Function) { f.spec.ToolName = name }
}

// Target is who carries the tool out, where the first part of its tool_id is
// not: what bridges serve and NATS permissions name.
func Target(name string) FunctionOption {
	return func(f *Function) { f.spec.Executor.Target = name }
}

// ArgsSchema is the schema of the arguments, in place of the derived one: JSON
// Schema 2020-12, self-contained, an object.
func ArgsSchema(schema json.RawMessage) FunctionOption {
	return func(f *Function) {
		raw, err := rawSchemaOf(schema)
		if err != nil {
			f.fail("its schema: %w", err)
			return
		}
		f.spec.ArgsSchema = raw
	}
}

// RetrySafe says that a call may be carried out more than once, with the same
// idempotency key: it is not claimed, and runs again if its bridge dies.
// Without it a call is started at most once, and one of which nobody knows what
// became is settled `outcome_unknown`.
func RetrySafe() FunctionOption { return func(f *Function) { f.spec.RetrySafe = true } }

// ParallelSafe says that calls may run beside others of a batch, as far as
// ResourceKey allows. Without it a call runs alone.
func ParallelSafe() FunctionOption { return func(f *Function) { f.spec.ParallelSafe = true } }

// ReadOnly says that calls change nothing: those with the same resource key
// may run side by side, if they are ParallelSafe.
func ReadOnly() FunctionOption { return func(f *Function) { f.spec.Access = planner.AccessRead } }

// ResourceKey is what a call works on: orders:{id}, where {id} is an argument.
// Calls whose keys overlap run one after the other, in the order of the model's.
func ResourceKey(template string) FunctionOption {
	return func(f *Function) { f.spec.ResourceKey = template }
}

// ResourceKind says what ResourceKey has behind its colon: text, the default,
// or path, a path in the host session's working directory. All spellings of one
// path are one key.
func ResourceKind(kind string) FunctionOption {
	return func(f *Function) { f.spec.ResourceKind = planner.ResourceKind(kind) }
}

// Requires names capabilities that the install record must grant: the tool is
// neither offered nor run without them.
func Requires(capabilities ...string) FunctionOption {
	return func(f *Function) { f.spec.Requires = append(f.spec.Requires, capabilities...) }
}

// Needs names what the tool of a pack requires of the machine: secret:NAME,
// env:NAME, bin:a|b (one of several programs), os:linux|darwin; with ? at the end
// it is optional. Where one that is not optional is missing, the tool is not
// offered. Tools that are in no pack have none.
func Needs(needs ...string) FunctionOption {
	return func(f *Function) { f.spec.Needs = append(f.spec.Needs, needs...) }
}

// Approval says which calls wait for a person: always, never, or a condition
// (CEL) over the call, such as args.amount > 100.
func Approval(when string) FunctionOption { return func(f *Function) { f.spec.Approval = when } }

// Deadline is what one start may take, a multiple of a millisecond. Without it
// the session's holds, five minutes by default.
func Deadline(d time.Duration) FunctionOption {
	return func(f *Function) {
		if d <= 0 || d%time.Millisecond != 0 {
			f.fail("its deadline is %v: more than 0, in whole milliseconds", d)
			return
		}
		f.spec.DeadlineMS = d.Milliseconds()
	}
}

// Tries is how often one call is tried at most while it fails with a
// *RetryableError: 1 to 10, 3 without it. Between two tries it waits 200 ms,
// then twice as long, and so on up to 5 s, within the call's run time.
func Tries(n int) FunctionOption {
	return func(f *Function) {
		if n < 1 || n > triesMax {
			f.fail("it is tried %d times: 1 to %d", n, triesMax)
			return
		}
		f.tries = n
	}
}
