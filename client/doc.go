// Package client is for programs that use sessions. It requests runs, follows
// their notices, reads views, and replays histories.
//
// # Path
//
// Connect, then call Run to request a run. It returns the event's sequence in
// the log; from then on nothing can lose the run. End waits for its end. A
// Follower, made before Run, needs only the rights of a client
// (Options.CoreOnly): it waits for the end and shows text and tools while they
// arrive, without reading a stream. Notices reports its progress (RunStarted,
// RunFinished, …), a Viewer shows the models' text while it arrives, and View
// returns the session as it is now. Replay folds a session's events from the
// first on and compares the result with everything that was stored; Export
// writes them as a test.
//
// Index lists sessions from their notices, however many there are. Read yields
// a range of a session's events and ends; Events continues with later ones.
//
// Steer, Cancel, Interrupt, Pause, Resume, EditRun, CompleteRun, FailRun and
// CloseSession control runs; Approvals, Approve and Deny are for calls that
// wait for a person. Each publishes an event and returns its sequence. Taken
// returns the outcome: the view after the event, or the rejection.
//
// Sync, Apply and Detach give a session content from files. SyncEnd waits until
// it is read, and Spaces returns the manifests that a session holds.
//
// A host loop is a program that carries out calls itself. Its calls are those
// with the status open in the view's batch; the notice CallsPlanned announces
// them. The program settles them with SettleCall, or with SettleBatch for the
// whole batch. Two such programs may carry out the same call; the first
// settlement counts.
//
// # Laws
//
//   - Publishing again under the same id is safe: the log stores it once.
//   - The same submission is one run, while the session remembers it: at least
//     until session.SubmissionsMax newer ones came. Every request with it gets
//     that run's outcome.
//   - A decision over a call counts only for the arguments that were shown.
//   - Stopping to follow never stops a run.
//   - After a lost connection, following continues at the same event.
//   - A Viewer shows the text of a turn without gap or repetition, or reports
//     that the turn began again. The log decides (shown.go); deltas only make
//     it sooner.
//   - Taken, RunOf, Replay, SyncEnd, Spaces and a Viewer read the log and fold
//     it here: they write nothing and need no session-actor. Events that arrive
//     meanwhile do no harm.
//
// # Limits
//
// An event is at most session.EventBytesMax bytes; Run stores larger input as
// a blob first. Verify holds the states of all sessions in memory.
//
// # Testing
//
// The tests run against a server inside the test, and play the bridges.
package client
