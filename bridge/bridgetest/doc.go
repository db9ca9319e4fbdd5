// Package bridgetest runs the tools of package bridge in tests: one call, or a
// whole session with a scripted model, with nothing to install.
//
// # Usage
//
// One call, and what the model would be shown of it:
//
//	r := bridgetest.Call(t, weather, forecastArguments{City: "Bergen"})
//	if r.Shown != "rain" { … }
//
// A session, whose model says what the test says:
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
// A bridge that dies while a tool runs, and another one that goes on:
//
//	weather := function.New("weather.get", func(ctx context.Context, in arguments) (string, error) {
//		pay(in)
//		s.Crash(ctx) // only the first time: here the process is gone
//		return "paid", nil
//	})
//
// # Guarantees
//
//  1. Call runs the code that a bridge runs: run time, panics, withdrawal, what
//     becomes of large and of invalid results. It needs no server, and runs in
//     virtual time inside testing/synctest.
//  2. New starts a NATS server with JetStream, a session-actor and a bridge in
//     this process: what `refold dev` runs. Claims, leases, deadlines and
//     replays are those of production, with their times.
//  3. KillBridge and Crash cut the bridge's connection: from then on the server
//     hears nothing of it, as after kill -9. Another bridge starts at once. What
//     the dead one had is offered to it when its lease ends, ten seconds later.
//  4. All of it ends when the test does. The server listens on a free port of
//     127.0.0.1, and keeps its files in the test's directory; it does not sync
//     them.
//
// What it can't do: end a goroutine. A function that runs when its bridge is
// killed goes on; its context ends, and what it returns is heard by nobody.
//
// # Concurrency
//
// Any number of sessions may run side by side, in parallel tests: each has a
// server of its own. The methods of a Session may be called from several
// goroutines; those that may fail the test, from that of the test only. Crash
// is for the goroutines of tools.
package bridgetest
