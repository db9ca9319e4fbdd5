// Package audit compares sessions with their log. It folds a session's events again
// from the first one, and compares the result with what earlier folds stored.
// Session-actors and `refold verify` both use it. It writes nothing.
//
// # Path
//
// Read reads what is stored of one session: its snapshot, its effects and its last
// notice. Session folds the session's events and returns a Result with each
// Difference. All folds all sessions in one pass over the log. It compares effects
// by fingerprints and ignores notices, and it reports only which sessions differ:
// Session then reports how.
//
// # Laws
//
//   - Stored outputs are read before the log, so the log already has the events
//     that they come from. A session that goes on during the audit shows no
//     difference.
//   - Two states cover the same events if their counts and their chains are equal.
//   - A difference is Excused if a power failure explains it by the loss of the
//     log's newest events, or if it is in a snapshot that no load uses: a
//     session-actor goes on from what the log has. All other differences are
//     Damage.
//
// # Limits
//
// All holds the states of all sessions in memory, and eight bytes for each effect.
//
// # Testing
//
// library_test.go is a log in memory. The differences themselves are tested by the
// users: internal/engine/integrity_test.go, client/verify_test.go,
// client/replay_test.go.
package audit
