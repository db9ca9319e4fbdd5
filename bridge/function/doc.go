// Package function makes tools of Go functions: [New] derives a tool's schema
// from the function's type, checks arguments before each call, and encodes the
// result for the model. A [Function] is an executor.Executor; Bridge.Functions of
// package bridge serves several, and [InstallRecord] and [Specs] add them to the
// registries of sessions. It imports no NATS.
//
//	weather := function.New("weather.get", get, function.Description("The weather of a city."), function.ReadOnly())
package function
