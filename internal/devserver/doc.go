// Package devserver runs all of Refold in one process: a NATS server with
// JetStream on disk, a session-actor and a bridge. `refold demo`, `refold dev`
// and tests of the whole system use it.
//
// # Path
//
// Start starts the server (on loopback only; it syncs each publish), provisions
// the streams, publishes an install record if the log has none, and runs
// session-actor and bridge until Stop. Stop ends them in reverse order, so that
// every delivered effect is settled or given back. A later Start on the same
// directory resumes its sessions. Lock permits one server at a time.
package devserver
