// Package bus is all that Refold knows about NATS: connections, streams,
// events, effects, claims, notices, snapshots and blobs. Nobody above it sees
// a stream or an error code.
//
// # Path
//
// Connect checks the server. Provision makes streams and lanes out of
// streams.conf. Publish appends an event to the log; the fold reads a session
// with ReadSession, and single events with EventsAt. Ask stores an effect,
// Claim decides who starts it, Withdraw that nobody does. Notify tells the
// outside. PutSnapshot and PutBlob keep what is large.
//
// # Laws
//
//   - An unknown outcome is never a failure: what timed out is sent again
//     under the same name until ctx ends, and only then is it an error that
//     wraps ErrUnknownOutcome. The same call with the same arguments is then
//     safe to make again.
//   - A conflict is a question. Who loses reads the stored bytes from the
//     stream's leader and compares: equal is success, different is an answer
//     (claims) or a *ViolationError (effects).
//   - Direct reads may be behind. Whatever decides something is read from the
//     leader, or checked against it.
//   - A read is complete and in order, or ends with an error.
//   - A delivery is answered over the connection that brought it, or not at all: see
//     Epoch. So the connection buffers nothing while it is being made again.
//   - A name that is taken and can't be read is an *UnreadableError after three
//     tries.
//   - Nothing over a limit is sent: *MaxPayloadError, at once.
//
// # Glossary
//
//   - leader: the one server of a stream's replicas that has all
//     acknowledged messages.
//   - direct get: a read that any replica answers.
//   - fence: a publish that only succeeds on an empty subject.
//
// # Limits
//
// Events and effects as package session says; snapshots over 512 KiB go to
// the object store. Every request has 5 s before it is made again.
//
// # Testing
//
// The contract tests run against servers inside the test (package bustest):
// one, and a cluster of three where that behaves differently.
package bus
