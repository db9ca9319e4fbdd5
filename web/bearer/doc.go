// Package bearer says who sends a request by its bearer token: one of a file, or a JWT of
// an issuer that the file names.
//
//	tokens:
//	- name: ann
//	  hash: sha256:…            # of the token: refold serve token prints both
//	  rights: [read, ask]
//	  scope: acme-
//	issuers:
//	- issuer: https://login.example.com
//	  audience: refold
//	  algorithms: [RS256]
//	  rights: [read, ask]
//	  claims: {scope: org}
//
// # Laws
//
//   - The file holds hashes: who reads it can't use a token.
//   - A JWT counts only with a signature of the issuer's keys, by an algorithm of the list,
//     which has no none and no shared secrets; for the audience; and in its time.
//   - A token of an issuer has a scope, unless the file says all_sessions.
//   - A faulty file changes nothing: Reload keeps what was before.
package bearer
