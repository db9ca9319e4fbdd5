// Package journal stores and reads what Refold keeps: events, effects and claims,
// wakes, notices, snapshots, quarantines, blobs, packs and install records.
//
// # Path
//
// Publish appends an event. Store stores what the owner of a session asks and says.
// Claim decides who starts an effect. ReadSession reads a session, EventsAt single
// events, CountEvents how many there are, ReadAll the whole log. PutSnapshot and PutBlob
// keep what is large.
//
// # Append
//
// Each stream has one committer, which is one goroutine. It sends what waits as one
// atomic batch where the server syncs each message, since a batch costs one sync; else
// as single messages. It judges by how long the first messages take (docs/adr/0043).
//
//   - An unknown outcome is never a failure: what timed out is sent again under the
//     same name until ctx ends. Only then is it an error, which wraps
//     ErrUnknownOutcome. The same call with the same arguments is safe to make again.
//   - A conflict is a question. The loser reads the stored bytes from the stream's
//     leader and compares: equal is success, different is an answer (claims) or a
//     *ViolationError (effects).
//   - A name that is taken and can't be read is an *UnreadableError after three tries.
//   - The notices of a session are stored in order, after the effects that they tell of.
//
// # Read
//
//   - A read is complete and in order, or ends with an error.
//   - Any replica answers a direct read, and may be behind. What decides something is
//     read from the leader, or checked against it.
//   - Publishers may write any header. What a direct read says of a message is believed
//     only where the headers account for all its bytes.
//
// # Glossary
//
//   - leader: the one server of a stream's replicas that has all acknowledged messages.
//   - direct read: a read that any replica answers.
//   - fence: a publish that succeeds on an empty subject only.
//
// # Limits
//
// Events and effects as package session says. A snapshot over 512 KiB is a blob. A
// committer holds 8,192 messages or 64 MiB; what does not fit waits in the caller.
//
// # Concurrency
//
// All methods of Journal may be called from several goroutines at once.
package journal
