// Package bridgetest runs the tools of package bridge in tests: one call, or a
// whole session with a scripted model, with nothing to install.
//
// # Usage
//
// One call, and its result as the model would be shown it:
//
//	r := bridgetest.Call(t, weather, forecastArguments{City: "Bergen"})
//	if r.Shown != "rain" { … }
//
// A session whose model answers as the test says:
//
//	s := bridgetest.New(t, bridgetest.Options{
//		Tools: []*function.Function{weather},
//		Turns: []bridgetest.Turn{
//			bridgetest.Calls(bridgetest.To("weather_get", `{"city":"Bergen"}`)),
//			bridgetest.Say("It rains."),
//		},
//	})
//	run := s.Run("What's the weather?")
//	s.Replay() // fails the test unless the log folds to the same bytes again
//
// A bridge that dies while a tool runs, and another one that continues:
//
//	weather := function.New("weather.get", func(ctx context.Context, in arguments) (string, error) {
//		pay(in)
//		s.Crash(ctx) // only the first time: here the process is gone
//		return "paid", nil
//	})
//
// # Guarantees
//
//  1. Call runs the code that a bridge runs, including run time, panics,
//     withdrawal, and large and invalid results. It needs no server, and runs in
//     virtual time inside testing/synctest.
//  2. New starts a NATS server with JetStream, a session-actor and a bridge in
//     this process, as `refold dev` does. Claims, leases, deadlines and replays
//     are those of production, with their times.
//  3. KillBridge and Crash cut the bridge's connection: from then on the server
//     receives nothing from it, as after kill -9. Another bridge starts at once.
//     It receives the effects of the dead one when their lease ends, ten seconds
//     later.
//  4. All of it ends with the test. The server listens on a free port of 127.0.0.1,
//     and keeps its files in the test's directory; it does not sync them.
//
// It can't end a goroutine: a function that runs when its bridge is killed
// continues; its context ends, and its result is lost.
//
// # Concurrency
//
// Any number of sessions may run concurrently, in parallel tests: each has a
// server of its own. The methods of a Session are safe for concurrent use, but
// methods that may fail the test must be called from the test's goroutine. Crash
// must be called from the goroutine of a tool.
package bridgetest
