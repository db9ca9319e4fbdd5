// Package roles defines the permissions of users on NATS: one table, and the
// server configuration computed from it.
//
// # Path
//
// A File names users by their roles. Rights expands the table for one user. Plan
// assigns all users to accounts, and Config prints the accounts as the NATS server
// reads them. Write writes them, the users' keys, and the files by which programs
// connect. Package trial tries the table against a running server.
//
// # Laws
//
//   - Every user has an account of its own, which bounds what its reply
//     subjects reach: a server does not check reply subjects. Only
//     session-actors and administrators are in the streams' account.
//   - Every right of a user is in the table. The accounts' exports and imports,
//     the users' permissions, the matrix and the documentation's table are
//     computed from it.
//   - Only session-actors and operators create consumers, since a consumer
//     delivers to any subject that its creator names, doors included.
//   - A key is made once. It changes only when its user is rotated.
//
// # Glossary
//
//   - home: the account of the streams.
//   - right: what one user may do with the subjects of one row.
//   - pattern: a subject with wildcards.
//
// # Limits
//
// A file has at most 1 MiB and 512 users: each of them has an account.
//
// # Testing
//
// The tests run a server with a generated configuration and try every cell.
package roles
