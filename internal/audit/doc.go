// Package audit compares sessions with their log: it folds a session's events again,
// from the first one on, and compares with what was stored when they were folded
// before. Session-actors and `refold verify` use it alike. It writes nothing.
//
// # Path
//
// Read reads what is stored of one session: its snapshot, its effects and its last
// notice. Session folds its events and returns a Result with each Difference. All
// does it for all sessions in one pass over the log; it compares effects by
// fingerprints, and no notices, and tells which sessions differ. Session says how.
//
// # Laws
//
//   - What is stored is read before the log: the events that it comes from are in the
//     log then. So a session that goes on meanwhile differs in nothing.
//   - Two states are of the same events if their counts and their chains are the same.
//   - A difference that the loss of the log's newest events explains, in a power
//     failure, is Excused, and so is a snapshot that no load uses: a session-actor goes
//     on from what the log has. Damage is what is left.
//
// # Limits
//
// All holds the states of all sessions in memory, and eight bytes for each effect.
//
// # Testing
//
// library_test.go is a log in memory. What sessions differ in is tested where an audit
// is used: internal/engine/integrity_test.go, client/verify_test.go, client/replay_test.go.
package audit
