// Package bench measures what this machine does with Refold, and what it could
// do at most: `refold bench`.
//
// # Path
//
// Runs measures rows: one durability, one number of runs in flight. A row has
// two sides, one after the other, each on fresh servers in this process. The
// first side is the ceiling (ceiling.go): plain publishes and pulls that store
// what Refold stores, through the same streams, consumers and fences, and
// understand nothing of it. The second is Refold (refold.go): a session-actor
// and a bridge as the daemons run them, with a model and tools that take no
// time. The same load (load.go) plays the clients of both.
//
// Then all that the streams hold is counted (census.go). What the ceiling
// stores are the payloads of one run of Refold, and at the end of each row both
// must have stored the same kinds and numbers of messages a run.
//
// # Laws
//
//   - A run counts when its end was read from the notices, and every run that
//     was begun has ended.
//   - The ceiling shares no code with what it is compared with, but for
//     connecting and provisioning.
//   - Both sides use a connection for the session-actor, one for the bridge and
//     one for the clients.
//
// # Glossary
//
//   - in flight: asked for, and its end not read yet.
//   - commit: what is stored at once, a single publish or an atomic batch.
//
// # Limits
//
// All in memory: the latencies of a row, and what its servers keep.
//
// # Testing
//
// Small rows, of which kinds, counts and ends are checked, and no time.
package bench
