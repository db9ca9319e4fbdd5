// Package retain applies a policy of retention: which sessions are archived and deleted,
// and when (docs/adr/0111).
//
// Path. Policy.Pass lists the sessions of the log that may be due, by the time of their
// last notice or event. Of each it then reads the state, and archives it, and deletes it
// plainly: package erase has the mechanism. It also completes deletions of sessions that
// were erased and still have messages: text that was published later, and erasures over
// HTTP. Run repeats passes.
//
// Laws.
//
//   - A session is deleted only after its archive, if it is to have one, was read back
//     from the disk, and only if no event came after the last one that the pass has read.
//   - A pass keeps nothing: it may end anywhere, and the next one begins anew. What is
//     archived or deleted already it passes over.
//   - A held session is not deleted, and counted.
//
// Limits. A pass lists the sessions twice: first it only counts those that may be due, for
// the metrics. It holds the names of one partition of the log, and of erasedMax sessions.
package retain
