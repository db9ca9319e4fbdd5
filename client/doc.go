// Package client is for programs that use sessions: it asks for runs, follows
// what is said about them, reads views, and folds histories again.
//
// # Path
//
// Connect, then Run to ask for a run: it returns the event's sequence
// in the log, and from then on nothing can lose the run. Notices tells how it
// goes (RunStarted, RunFinished, …), Live gives the model's words while they
// come, View what the session looks like now. Replay folds a session's events
// from the first on and compares the result with everything that was stored
// on the way.
//
// # Laws
//
//   - Publishing is safe to repeat under the same id: the log takes it once.
//   - Stopping to follow never stops a run.
//   - Replay writes nothing.
//
// # Limits
//
// An event is at most session.EventBytesMax bytes; Run stores larger input as
// a blob first.
package client
