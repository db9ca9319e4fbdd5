// Package journal stores and reads Refold's messages: events, effects and claims,
// wakes, notices, snapshots, quarantines, blobs, packs and install records.
//
// # Path
//
// Publish appends an event. Store stores the effects, withdrawals, wakes and notices of
// sessions. Claim decides which bridge starts an effect. ReadSession reads a session,
// EventsAt single events, ReadAll the whole log; CountEvents counts a session's events.
// PutSnapshot stores snapshots, PutBlob large content.
//
// # Append
//
// Each stream has one committer, which is one goroutine. It sends waiting messages as
// one atomic batch, which costs one sync, until single messages prove fast, as they
// are where the server does not sync each (docs/adr/0091). While it waits, the
// committer of effects sends the notices that it held back.
//
//   - An unknown outcome is never a failure: a message that timed out is sent again
//     under the same name until ctx ends. Only then the call fails, and its error wraps
//     ErrUnknownOutcome. Repeating the call with the same arguments is safe.
//   - A conflict is resolved by a comparison. The loser reads the stored bytes from the
//     stream's leader: equal bytes are success, different bytes are a result (claims) or
//     a *ViolationError (effects).
//   - A name that is taken but unreadable is an *UnreadableError after three tries.
//   - The notices of a session are stored in order, after the effects that they mention:
//     Store queues both at once, and the committer of notices holds these back.
//
// # Read
//
//   - A read is complete and in order, or ends with an error.
//   - Any replica answers a direct read, and may lag. A read on which a decision depends
//     is from the leader, or checked against it.
//   - An event that names another log is skipped by every read of the log.
//   - Publishers may write any header. A direct read trusts the server's headers only if
//     the headers account for all bytes of the message.
//
// # Glossary
//
//   - leader: the one server of a stream's replicas that has all acknowledged messages.
//   - direct read: a read that any replica answers.
//   - fence: the condition that a subject is empty, or has a given last message.
//
// # Limits
//
// Package session has the limits of events and effects. A snapshot over 512 KiB is a
// blob. A committer holds 8,192 messages or 64 MiB; beyond that callers wait.
//
// # Concurrency
//
// Journal is safe for concurrent use.
package journal
