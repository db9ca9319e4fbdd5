// Package natsio is a connection to NATS: it connects, retries requests, and
// classifies errors. The packages streams, journal, delivery and presence use it. No
// other package knows an error code of JetStream.
//
// # Connecting
//
// Connect checks the server: it answers, is new enough, accepts this user and has
// JetStream. Its error is one line that says what to do. After the first success the
// connection reconnects for ever. Credentials come from a file, from Options or from a
// context of the nats tool.
//
// # Requests
//
//   - Repeat and Retry retry a request until it succeeds, fails for good, or ctx ends.
//     IsTransient decides which errors are retried. Backoff does the same for anything
//     that is not a single request. Ask sends one request of the JetStream API.
//   - A request ends at once when the server denies its subject, and when the
//     connection is lost: see Watch. A denied publish gets no reply.
//   - Await receives the replies to many requests on one subscription.
//     SubscribeReplies makes a subscription for one consumer.
//   - The connection buffers nothing while it reconnects. A delivery is acknowledged
//     over the connection that delivered it, or not at all: see Incarnation.
//
// # Core NATS
//
// PublishLive, PublishProgress and PublishCancel reach current subscribers; nothing is
// stored. RequestView asks the session-actor that owns the session.
//
// # The log
//
// Stamp adds the header with the log's identity to what is published. Ignores reports
// messages of other systems, and logs them; RefuseForeign ends a start beside one.
//
// # Errors
//
// Typed turns errors of nats.go into errors of this package and keeps the cause.
// A payload over the connection's limit is a *MaxPayloadError before anything is sent.
//
// # Concurrency
//
// Conn is safe for concurrent use.
package natsio
