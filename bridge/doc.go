// Package bridge executes the effects of sessions: tool calls, generations, steps
// and syncs. A Go program serves its own tools, models and step hooks with it:
//
//	b, err := bridge.Connect(ctx, bridge.Options{Name: "weather"})
//	…
//	err = b.Tool("weather", forecasts{})                 // an executor.Executor
//	err = b.Functions(tools)                             // of package function
//	err = b.Step("router", executor.PrepareStep(choose)) // an executor.StepHook
//	…
//	err = b.Run(ctx)
//
// Package executor has the interfaces to implement, and documents how calls end;
// package function makes Go functions tools. Users test with package bridgetest.
//
// A Bridge connects, and publishes heartbeats with its targets. internal/worker
// processes an effect from its delivery to its settlement; its documentation has
// the rules.
//
// # Load
//
// Limit limits the rate of a provider's generations, Breaker pauses a provider
// that is down, Fair gives slots to sessions in turn, and Priority orders targets
// that share Options.Slots. An effect that may not start now is given back before
// it is claimed, so any bridge may execute it; none fails for lack of a slot
// before its start_by.
//
// # Testing
//
// bridge_test.go runs whole bridges against a server. The rules are tested in
// internal/worker.
package bridge
