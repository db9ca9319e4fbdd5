// Package client is for programs that use sessions: it asks for runs, follows
// what is said about them, reads views, and folds histories again.
//
// # Path
//
// Connect, then Run to ask for a run: it returns the event's sequence
// in the log, and from then on nothing can lose the run. End waits for its end.
// Notices tells how it goes (RunStarted, RunFinished, …), Live gives the
// model's words while they come, View what the session looks like now. Replay
// folds a session's events from the first on and compares the result with
// everything that was stored on the way; Export writes them as a test.
//
// # Laws
//
//   - Publishing is safe to repeat under the same id: the log takes it once.
//   - Stopping to follow never stops a run.
//   - Following goes on after a lost connection, where it was.
//   - Replay writes nothing, and what a session does meanwhile is no
//     difference.
//
// # Limits
//
// An event is at most session.EventBytesMax bytes; Run stores larger input as
// a blob first. ReplayAll holds the states of all sessions in memory.
//
// # Testing
//
// The tests run against a server inside the test, and play the bridges.
package client
