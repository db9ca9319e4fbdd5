// Package prove folds a session's events again, and compares the result with what a
// server says of the session. Its program in WebAssembly (cmd/prove) does so in a page of
// the inspector, from bytes that the server sends: the page then knows that what it shows
// is what the events fold to.
//
// # Path
//
// A server sends the Claims, the install record, and the log in pages (Append writes
// them). Begin takes the first two, Session.Page a page, Session.End returns a Report.
//
// # Laws
//
//   - Each event comes with the chain that the server's fold had after it. An event that
//     was altered, left out, repeated or moved differs in the chain at that event, which
//     the Report names. Nothing after it is folded.
//   - The state is compared after each event for which the Claims have a hash.
//   - Bytes of effects are compared by their SHA-256. An effect that the Claims do not
//     have is not stored any more, which is no difference.
//   - No input panics, and none is believed: it is what a network delivered.
//
// # Limits
//
// A Session holds one state, the Claims, and one page at a time.
package prove
