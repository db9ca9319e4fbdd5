// Package presence announces this process to others, and finds other processes.
//
// # Heartbeats
//
// Heartbeat publishes every 500 ms that an instance is alive. TrackMembers subscribes,
// and Members has the instances. An instance is gone when it was silent for GoneAfter
// while this process was connected.
//
// # Services
//
// Register announces a process as a NATS micro service. Discover, Stated and Services
// return the services that answer within 300 ms of the answer before: one that is too
// busy is missing. Request sends a request to an endpoint of any service.
// ErrNobodyServes means that the request reached nobody; ErrAnswerLost, that it may
// have arrived.
//
// # Concurrency
//
// Presence and Members are safe for concurrent use.
package presence
