// Package roles defines the permissions of users on NATS: one table, and the
// server configuration computed from it.
//
// # Path
//
// A File names users by their roles. Rights expands the table for one user, Plan
// spreads all users over accounts, Config prints the accounts as the NATS server
// reads them, and Keys and Write keep the users' keys and the files by which
// programs connect. Package trial tries the table against a server that runs.
//
// # Laws
//
//   - Every user has an account, so that a reply subject reaches nothing but that
//     account: a server checks no reply subject. The streams' account has the
//     session-actors and the administrator, and nobody else.
//   - The table gives every right of a user. The accounts' exports and imports,
//     the users' permissions, the matrix and the table of the documentation are
//     computed from it.
//   - Only session-actors and operators create consumers, since a consumer
//     delivers to any subject that its creator names, doors included.
//   - A key is made once. It changes only when its user is rotated.
//
// # Glossary
//
//   - home: the account that has the streams.
//   - right: what one user may do with the subjects of one row.
//   - pattern: a subject with wildcards.
//
// # Limits
//
// A file has 1 MiB at most, and names 512 users: each of them is an account.
//
// # Testing
//
// The tests run a server on a generated configuration and try every cell.
package roles
