// Package executor has the interfaces of code that executes effects, and the
// types that it is called with: an [Executor] for tool calls, a [Model] for
// generations, a [StepHook] that chooses what turns offer, a [SpaceReader] for
// workspaces and packs, and an [Observer] for metrics and traces. It imports no
// NATS. Package bridge serves them:
//
//	type forecasts struct{}
//
//	func (forecasts) Execute(ctx context.Context, call executor.Call) (executor.Result, error) {
//		return executor.Result{Output: "rain"}, nil
//	}
//	…
//	err = b.Tool("weather", forecasts{})
//
// Where a type has methods that call its bridge ([Call.Secret], [Request.Tried],
// [StepRequest.Messages]), a field holds the bridge's side. It is nil without a
// bridge, and tests may set their own.
//
// # Ends
//
// The end of a tool call depends on its executor:
//
//	                        retry-safe                 not retry-safe
//	returned in time        as returned                as returned
//	had a time-out itself   failed deadline_exceeded   outcome_unknown
//	panicked                failed executor_panic      outcome_unknown
//	run time over           failed deadline_exceeded   outcome_unknown
//	withdrawn in progress   cancelled                  outcome_unknown
//	bridge stopped it       given back, runs again     outcome_unknown
//	bridge stops its wait   given back, runs again     as returned
//	bridge died             runs again, at the third   outcome_unknown
//	                        death failed bridge_lost
//
// A wait before another try is one of [Wait]: it ends as soon as the bridge begins to
// stop, while what runs has the grace time.
//
// A step ends as a retry-safe call does, with other codes: `hook_failed` for a
// hook that fails or panics, and `bad_settlement` for a choice that no session
// accepts. Steps are not claimed: two bridges may call their hooks for one step,
// and the session accepts the first answer.
//
// If a bridge drops a generation, another bridge takes it over. A generation that
// fails and may be retried starts again until its start_by.
//
// # Results
//
// Text up to 256 KiB is stored in the event. Longer text goes to a blob, and the
// model is shown its beginning and end. Invalid UTF-8 is replaced by U+FFFD.
// Files become blobs, and the model is shown a line for each. The result of an
// executor that returns after it was abandoned is ignored: its call is settled.
// The lease of a running executor is extended for as long as it runs.
package executor
