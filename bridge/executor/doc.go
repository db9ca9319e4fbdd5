// Package executor has the interfaces of code that carries out what sessions ask for,
// and the types that they are called with: an [Executor] for tool calls, a
// [Model] for generations, a [StepHook] that chooses what turns offer, a
// [SpaceReader] for workspaces and packs, and an [Observer] for metrics and
// traces. It imports no NATS. Package bridge serves them:
//
//	type forecasts struct{}
//
//	func (forecasts) Execute(ctx context.Context, call executor.Call) (executor.Result, error) {
//		return executor.Result{Output: "rain"}, nil
//	}
//	…
//	err = b.Tool("weather", forecasts{})
//
// Where a type has methods that ask its bridge something ([Call.Secret],
// [Request.Tried], [StepRequest.Messages]), a field holds the bridge's side of
// it. It is nil where no bridge is, and may be a test's own.
//
// # Ends
//
// A tool call ends so, by what became of its executor:
//
//	                        retry-safe                 not retry-safe
//	returned in time        as it says                 as it says
//	had a time-out itself   failed deadline_exceeded   outcome_unknown
//	panicked                failed executor_panic      outcome_unknown
//	run time over           failed deadline_exceeded   outcome_unknown
//	withdrawn in progress   cancelled                  outcome_unknown
//	bridge stopped it       given back, runs again     outcome_unknown
//	bridge died             runs again                 outcome_unknown
//
// A step ends as a retry-safe call does, but for its codes: a hook that fails or
// panics is `hook_failed`, and a choice that no session takes `bad_settlement`.
// Steps are not claimed: two bridges may ask their hooks for one step, and the
// session takes the first answer.
//
// A generation that a bridge drops is taken over by another. One that fails
// and may be retried is asked again until its start_by.
//
// # Results
//
// Text up to 256 KiB stands in the event, more goes to a blob, and a model is
// shown the beginning and the end of it. What is not UTF-8 is replaced by
// U+FFFD. Files become blobs, and a model is shown a line for each. An executor
// that returns after it was given up changes nothing: its call is settled. One
// that outlives a lease keeps it: leases are extended for as long as it runs.
package executor
