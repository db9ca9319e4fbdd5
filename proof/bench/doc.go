// Package bench measures Refold on this machine, for `refold bench`.
//
// # Path
//
// Runs measures rows: one durability, one number of runs in flight. A row has
// two sides, one after the other, each on fresh servers in this process. The
// first side is the ceiling (ceiling.go): plain publishes and pulls that store
// the same payloads as Refold, through the same streams, consumers and fences,
// without interpreting them. The second is Refold (refold.go): a session-actor
// and a bridge as the daemons run them, with a model and tools that take no
// time. The same load (load.go) plays the clients of both.
//
// Then the messages of all streams are counted (census.go). The ceiling stores
// the payloads of one run of Refold. At the end of each row both sides must
// have stored the same kinds and numbers of messages a run.
//
// The smaller measurements (fold.go, wake.go, long.go) use one server and no
// ceiling; prefix.go and window.go fold recordings in memory.
//
// # Laws
//
//   - A run counts when its end was read from the notices, and every started
//     run has ended.
//   - The ceiling shares no code with Refold except connecting and provisioning.
//   - Both sides use a connection for the session-actor, one for the bridge and
//     one for the clients.
//
// # Glossary
//
//   - in flight: requested, and its end not read yet.
//   - commit: a single publish or an atomic batch.
//
// # Limits
//
// Everything is in memory: the latencies of a row, and the messages of its servers.
//
// # Testing
//
// The tests run small rows and check kinds, counts and ends, but no times.
package bench
