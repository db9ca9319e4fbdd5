// Package client is for programs that use sessions: it asks for runs, follows
// what is said about them, reads views, and folds histories again.
//
// # Path
//
// Connect, then Run to ask for a run: it returns the event's sequence in the
// log, and from then on nothing can lose the run. End waits for its end. A
// Follower, made before Run, does all of it with the rights of a client: it
// waits for the end, and shows text and tools while they come, without reading
// a stream (Options.CoreOnly). Notices reports its progress (RunStarted,
// RunFinished, …), a Viewer shows the models' text while it arrives, and View
// returns the session as it is now. Replay folds a session's events from the
// first on and compares the result with everything that was stored on the way;
// Export writes them as a test.
//
// Index lists sessions from their notices, however many there are. Read yields a
// range of a session's events and ends; Events goes on with those to come.
//
// Steer, Cancel, Interrupt, Pause, Resume, EditRun, CompleteRun, FailRun and
// CloseSession say what is to become of runs; Approvals, Approve and Deny are
// about calls that wait for a person. Each publishes an event and returns its
// sequence. Taken tells what the session made of it: the view as the event left
// it, or the rejection.
//
// Sync, Apply and Detach give a session content that people keep in files: SyncEnd
// waits for what was read, and Spaces returns the manifests that a session holds.
//
// A program that carries calls out by itself, a host loop, finds them in the
// view's batch, where its calls have the status open. When to look it hears by
// the notice CallsPlanned, and how they ended it says with SettleCall, or
// SettleBatch for the whole batch. Nothing keeps two such programs from carrying
// out the same call: the first settlement counts.
//
// # Laws
//
//   - Publishing is safe to repeat under the same id: the log takes it once.
//   - The same submission is one run, for as long as the session lives, and
//     whoever asks by it gets that run's outcome.
//   - A decision over a call is one over the arguments that were seen.
//   - Stopping to follow never stops a run.
//   - Following goes on after a lost connection, where it was.
//   - What a Viewer has shown of a turn is the beginning of what the log will
//     say, or it says that the turn began again: no gap, nothing twice. The log
//     decides (shown.go); deltas only make it sooner.
//   - Taken, RunOf, Replay, SyncEnd, Spaces and a Viewer read the log and fold it on
//     this side: they write nothing, and need no session-actor. What a session does meanwhile is no
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
