// Package delivery receives this process's work from JetStream: the events of lanes,
// the effects of targets, and due wakes.
//
// # Lanes
//
// A Lane delivers its events in order to one owner. The server pins one client to a
// lane; the others stand by. Each reset of the lane begins an epoch: deliveries start
// again at the ack floor, and acknowledgements of earlier epochs do nothing. A gap in
// deliveries resets the lane. The owner queues events, and takes each before it processes
// it: in an epoch that has ended, or a lane that is drained, no event can be taken. An
// event is acknowledged to the server once it and all events before it are done.
// Correctness does not depend on the pin: two processes may briefly believe that they
// own a lane.
//
// # Effects and wakes
//
// Several bridges pull the effects of a target, and several session-actors the due
// wakes. Each requests as many messages as it has free slots. The lease of an effect is
// extended while a bridge carries it out; the lease of a wake is not. An effect that is
// redelivered in the meantime is not carried out twice.
//
// # Guarantees
//
//   - A delivery is acknowledged over the connection that delivered it, or not at all: a
//     server that lost the end of a stream reuses its sequences.
//   - A message that is not acknowledged is delivered again.
//   - Pullers and lanes survive restarts of the server, and the deletion of consumers.
//   - An error means that a consumer can't be used at all. Every other failure is logged
//     and retried.
//
// # Concurrency
//
// Methods of Delivery, EffectDelivery and DueDelivery may be called from any goroutine,
// more than once. A Lane or a puller runs once.
//
// Delivery imports streams, which creates the consumers.
package delivery
