// Package account finds out what a NATS account gives its users, and what that means
// for Refold. It assumes no system account and no access to the servers' configuration.
//
// # Path
//
// Diagnose asks the connected server and JetStream for versions, limits, streams and
// the user's permissions, and compares the answers with streams.conf and with the roles
// of package roles. Each comparison is a Check with a Code; check.go says what a code
// means and what to ask the operator for.
//
// # Laws
//
//   - Diagnose stores nothing: it makes requests, and sends one message to an inbox that
//     nobody has. With Options.Try it creates the streams of streams.conf under a prefix of
//     its own, one after the other, and deletes each again.
//   - An answer that is refused, or does not come, makes a Check Unknown, never OK.
package account
