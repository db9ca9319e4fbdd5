// Package presence tells others that this process is there, and finds who else is.
//
// # Heartbeats
//
// Heartbeat says every 500 ms that an instance is alive. TrackMembers listens, and
// Members says who was heard. An instance is gone when this process has listened for
// GoneAfter and heard nothing of it: silence counts only while the connection is there.
//
// # Services
//
// Register announces a process as a NATS micro service. Discover, Stated and Services
// ask who is there, and return those that answer within 300 ms of the last answer: one
// that is too busy is missing. Request asks an endpoint of any service. ErrNobodyServes
// says that the request reached nobody; ErrAnswerLost, that it may have arrived.
//
// # Concurrency
//
// All methods of Presence and Members may be called from several goroutines at once.
package presence
