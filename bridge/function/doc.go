// Package function makes Go functions tools: [New] derives what a model is shown
// of one from its type, checks arguments before it is called, and shows what it
// returns. A [Function] is an executor.Executor; Bridge.Functions of package
// bridge serves several, and [InstallRecord] and [Specs] tell sessions of them.
// It imports no NATS.
//
//	weather := function.New("weather.get", get, function.Description("The weather of a city."), function.ReadOnly())
package function
