package function

import (
	"encoding/json"
	"time"

	"github.com/refold/refold/planner"
)

// Description sets the tool's description for the model, at most 16 KiB.
func Description(text string) Option {
	return func(f *Function) { f.spec.Description = text }
}

// ToolName sets the name that the model calls: 1 to 64 of A-Za-z0-9_-.
func ToolName(name string) Option {
	return func(f *Function) { f.spec.ToolName = name }
}

// Target sets the target that bridges serve and NATS permissions name, if it is
// not the first part of the tool_id.
func Target(name string) Option {
	return func(f *Function) { f.spec.Executor.Target, f.placed = name, true }
}

// ArgsSchema sets the schema of the arguments, in place of the derived one: JSON
// Schema 2020-12, self-contained, for an object.
func ArgsSchema(schema json.RawMessage) Option {
	return func(f *Function) {
		raw, err := rawSchemaOf(schema)
		if err != nil {
			f.fail("its schema: %w", err)
			return
		}
		f.spec.ArgsSchema = raw
	}
}

// RetrySafe declares that a call may be executed more than once, with the same
// idempotency key: it is not claimed, and runs again if its bridge dies. Without
// it a call is started at most once, and is settled `outcome_unknown` if its
// bridge dies.
func RetrySafe() Option { return func(f *Function) { f.spec.RetrySafe = true } }

// ParallelSafe declares that calls may run concurrently with others of a batch,
// as far as ResourceKey allows. Without it a call runs alone.
func ParallelSafe() Option { return func(f *Function) { f.spec.ParallelSafe = true } }

// ReadOnly declares that calls change nothing: those with the same resource key
// may run concurrently, if they are ParallelSafe.
func ReadOnly() Option { return func(f *Function) { f.spec.Access = planner.AccessRead } }

// ResourceKey names the resource of a call: orders:{id}, where {id} is an argument.
// Calls whose keys overlap run one after another, in the model's order.
func ResourceKey(template string) Option {
	return func(f *Function) { f.spec.ResourceKey = template }
}

// ResourceKind sets the kind of the part of ResourceKey after its colon: text,
// the default, or path, a path in the host session's working directory. All
// spellings of one path are one key.
func ResourceKind(kind string) Option {
	return func(f *Function) { f.spec.ResourceKind = planner.ResourceKind(kind) }
}

// Requires names capabilities that the install record must grant: the tool is
// neither offered nor run without them.
func Requires(capabilities ...string) Option {
	return func(f *Function) { f.spec.Requires = append(f.spec.Requires, capabilities...) }
}

// Needs names what a pack's tool requires of the machine: secret:NAME, env:NAME,
// bin:a|b (one of several programs), os:linux|darwin; a need with ? at its end is
// optional. If a need that is not optional is missing, the tool is not offered.
// Only tools of packs have needs.
func Needs(needs ...string) Option {
	return func(f *Function) { f.spec.Needs = append(f.spec.Needs, needs...) }
}

// Approval sets which calls wait for a person: always, never, or a condition
// (CEL) over the call, such as args.amount > 100.
func Approval(when string) Option { return func(f *Function) { f.spec.Approval = when } }

// Deadline limits the time of one start, in whole milliseconds. The default is the
// session's, or five minutes.
func Deadline(d time.Duration) Option {
	return func(f *Function) {
		if d <= 0 || d%time.Millisecond != 0 {
			f.fail("its deadline is %v: want a positive number of whole milliseconds", d)
			return
		}
		f.spec.DeadlineMS = d.Milliseconds()
	}
}

// Tries limits the tries of one call that fails with a *RetryableError: 1 to 10,
// 3 by default. Between two tries it waits 200 ms, then twice as long each time,
// up to 5 s, within the call's run time. It also limits the starts of a RetrySafe
// call whose programs die while they run it: two are granted in any case, then the
// call fails with the code bridge_lost.
func Tries(n int) Option {
	return func(f *Function) {
		if n < 1 || n > triesMax {
			f.fail("it is tried %d times: want 1 to %d", n, triesMax)
			return
		}
		f.tries = n
	}
}
