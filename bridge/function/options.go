package function

import (
	"encoding/json"
	"time"

	"github.com/refold/refold/planner"
)

// Description is what the model is told of the tool, at most 16 KiB.
func Description(text string) Option {
	return func(f *Function) { f.spec.Description = text }
}

// ToolName is what the model calls: 1 to 64 of A-Za-z0-9_-.
func ToolName(name string) Option {
	return func(f *Function) { f.spec.ToolName = name }
}

// Target is who carries the tool out, where the first part of its tool_id is
// not: what bridges serve and NATS permissions name.
func Target(name string) Option {
	return func(f *Function) { f.spec.Executor.Target = name }
}

// ArgsSchema is the schema of the arguments, in place of the derived one: JSON
// Schema 2020-12, self-contained, an object.
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

// RetrySafe says that a call may be carried out more than once, with the same
// idempotency key: it is not claimed, and runs again if its bridge dies.
// Without it a call is started at most once, and one of which nobody knows what
// became is settled `outcome_unknown`.
func RetrySafe() Option { return func(f *Function) { f.spec.RetrySafe = true } }

// ParallelSafe says that calls may run concurrently with others of a batch, as far as
// ResourceKey allows. Without it a call runs alone.
func ParallelSafe() Option { return func(f *Function) { f.spec.ParallelSafe = true } }

// ReadOnly says that calls change nothing: those with the same resource key
// may run concurrently, if they are ParallelSafe.
func ReadOnly() Option { return func(f *Function) { f.spec.Access = planner.AccessRead } }

// ResourceKey is what a call works on: orders:{id}, where {id} is an argument.
// Calls whose keys overlap run one after the other, in the order of the model's.
func ResourceKey(template string) Option {
	return func(f *Function) { f.spec.ResourceKey = template }
}

// ResourceKind says what ResourceKey has behind its colon: text, the default,
// or path, a path in the host session's working directory. All spellings of one
// path are one key.
func ResourceKind(kind string) Option {
	return func(f *Function) { f.spec.ResourceKind = planner.ResourceKind(kind) }
}

// Requires names capabilities that the install record must grant: the tool is
// neither offered nor run without them.
func Requires(capabilities ...string) Option {
	return func(f *Function) { f.spec.Requires = append(f.spec.Requires, capabilities...) }
}

// Needs names what the tool of a pack requires of the machine: secret:NAME,
// env:NAME, bin:a|b (one of several programs), os:linux|darwin; with ? at the end
// it is optional. Where one that is not optional is missing, the tool is not
// offered. Tools that are in no pack have none.
func Needs(needs ...string) Option {
	return func(f *Function) { f.spec.Needs = append(f.spec.Needs, needs...) }
}

// Approval says which calls wait for a person: always, never, or a condition
// (CEL) over the call, such as args.amount > 100.
func Approval(when string) Option { return func(f *Function) { f.spec.Approval = when } }

// Deadline is what one start may take, a multiple of a millisecond. Without it
// the session's holds, five minutes by default.
func Deadline(d time.Duration) Option {
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
func Tries(n int) Option {
	return func(f *Function) {
		if n < 1 || n > triesMax {
			f.fail("it is tried %d times: 1 to %d", n, triesMax)
			return
		}
		f.tries = n
	}
}
