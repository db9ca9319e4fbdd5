// Package bridge carries out what sessions ask of the world: tool calls,
// generations, and the choice of what a step offers. A Go program serves its
// own tools, models and step hooks with it:
//
//	b, err := bridge.Connect(ctx, bridge.Options{Name: "weather"})
//	…
//	err = b.Tool("weather", forecasts{})                 // an executor.Executor
//	err = b.Functions(tools)                             // of package function
//	err = b.Step("router", executor.PrepareStep(choose)) // an executor.StepHook
//	…
//	err = b.Run(ctx)
//
// Package executor has the interfaces to implement, and says how calls end;
// package function makes Go functions tools. Users test with package bridgetest.
//
// A Bridge connects, and tells others that it lives and what it serves. What
// becomes of an effect, from its delivery to its settlement, is the business of
// internal/worker, whose documentation has the rules.
//
// # Much asked at once
//
// Limit holds the generations of a provider to rates, Breaker leaves one alone
// that is down, Fair gives slots to sessions by turns, and Priority orders targets
// that share Options.Slots. What may not start now is given back before it is
// claimed, so any bridge may have it; nothing is failed for want of a turn before
// its start_by.
//
// # Testing
//
// bridge_test.go runs whole bridges against a server. The rules are tested in
// internal/worker.
package bridge
