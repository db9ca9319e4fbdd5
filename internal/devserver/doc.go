// Package devserver is all of Refold in one process: a NATS server with
// JetStream on disk, a session-actor and a bridge. `refold demo` and
// `refold dev` are it, and so are tests that need the whole.
//
// # Path
//
// Start brings up the server (each publish is synced, on loopback only),
// provisions the streams, publishes an install record if the log has none, and
// runs host and bridge until Stop, which ends them in the reverse order, so
// that whatever was taken is settled or given back. The directory can be
// started again and goes on where it was. Lock keeps it to one server at a time.
package devserver
