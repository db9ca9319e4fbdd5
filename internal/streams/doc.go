// Package streams makes the streams and consumers that Refold needs out of
// streams.conf, and finds out what acknowledged messages survive.
//
// # Path
//
// ParseConf reads and checks the file. Provision creates or updates every stream and
// lane; several daemons may do it at once. EnsureBridge makes the consumer of a target.
// KeepRoom keeps the last tenth of the log for sessions that run.
//
// # Guarantees
//
//   - A difference that can't be changed while a stream lives is an *ImmutableError
//     that names both values. Nothing is deleted to make room for it.
//   - What streams.conf does not name keeps its value on the server.
//   - A file that would break a promise is refused: names of effects must outlive their
//     deadlines, a lane must pin one client.
//   - The process that provisioned the bucket of snapshots makes it again when it is
//     gone, since it is a cache. It makes a lane's consumer again, too. Any other stream
//     that is gone took data with it, and stays gone.
//
// # Durability
//
// New asks the servers how they sync: in this process, over the system account, or by
// their monitoring addresses. An operator who says otherwise gets an error that wraps
// ErrDurability.
//
// # Concurrency
//
// All methods of Streams may be called from several goroutines at once.
package streams
