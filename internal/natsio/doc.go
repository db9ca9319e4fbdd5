// Package natsio is a connection to NATS: it connects, sends requests until they
// succeed, and says what an error means. The packages streams, journal, delivery and
// presence work over it. No other package knows an error code of JetStream.
//
// # Connecting
//
// Connect checks the server: it answers, is new enough, lets this user in and has
// JetStream. Its error is one line that says what to do. After a first success the
// connection is restored for ever. Credentials come from a file, from Options or from a
// context of the nats tool.
//
// # Requests
//
//   - Repeat and Retry send a request again until it succeeds, fails for good, or ctx
//     ends. IsTransient decides which errors may pass. Backoff does the same for what is
//     no single request. Ask is one request of the JetStream API.
//   - A request ends at once when the server denies its subject, and when the
//     connection is lost: see Watch. The server says of a denied publish nothing else.
//   - Await gives replies to many requests over one subscription. SubscribeReplies is
//     for a consumer of its own.
//   - The connection buffers nothing while it is made again. A delivery is answered over
//     the connection that brought it, or not at all: see Incarnation.
//
// # Core NATS
//
// PublishLive, PublishProgress and PublishCancel reach those who listen at the moment;
// nothing is stored. RequestView asks the owner of a session.
//
// # Errors
//
// Typed turns what nats.go returns into the errors of this package and keeps the cause.
// A payload over a limit is a *MaxPayloadError before anything is sent.
//
// # Concurrency
//
// All methods of Conn may be called from several goroutines at once.
package natsio
