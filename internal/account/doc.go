// Package account finds out what a NATS account gives its users, and what that means
// for Refold. It assumes no system account and no access to the servers' configuration.
//
// # Path
//
// Diagnose asks the connected server and JetStream for versions, limits, streams and
// the user's permissions, and compares the answers with streams.conf and with the roles
// of package roles. Each comparison is a Check with a Code; texts.go says what a code
// means and what to ask the operator for.
//
// # Laws
//
//   - Diagnose stores nothing: it makes requests, and sends one message to an inbox that
//     nobody has. With Options.Try it creates each stream of streams.conf
//     under a prefix of its own, with one copy after the other, and deletes it again.
//   - An answer that is refused, or does not come, makes a Check Unknown, never OK.
package account
