// Package streams creates the streams and consumers of streams.conf, and finds out
// which failures acknowledged messages survive.
//
// # Path
//
// ParseConf parses and checks the file. Provision creates or updates every stream and
// lane; several daemons may do it at once. EnsureBridge creates the consumer of a
// target. KeepRoom reserves the last tenth of the log for running sessions.
//
// # Guarantees
//
//   - A setting that can't change on an existing stream is an *ImmutableError with
//     both values. Nothing is deleted or created in its place.
//   - The log has an identity: a ULID in its stream's metadata, made when the stream is
//     created. ReadLogID reads it, and Provision and Identify tell it to the connection.
//   - A key that streams.conf does not have keeps its value on the server.
//   - A file that would break a promise is refused: names of effects must outlive their
//     deadlines, a lane must pin one client.
//   - The process that provisioned the bucket of snapshots recreates it when it is
//     deleted, since it is a cache. It recreates a lane's consumer too. Any other stream
//     held data and is not recreated.
//
// # Durability
//
// New asks the servers how they sync: in this process, over the system account, or at
// their monitoring addresses. If the answer contradicts the operator, the error wraps
// ErrDurability.
//
// # Concurrency
//
// Streams is safe for concurrent use.
package streams
