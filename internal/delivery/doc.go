// Package delivery receives from JetStream what this process is to work on: the
// events of lanes, the effects of targets, and the wakes that are due.
//
// # Lanes
//
// A Lane delivers its events in order to one owner. The server pins one client to a
// lane; the others stand by. An epoch begins with each reset of the lane: deliveries
// start again at the ack floor, and acknowledgements of earlier epochs do nothing. A gap
// in deliveries resets the lane. The server hears of an event when it and all before it
// are acknowledged. Correctness does not rest on the pin: for a moment two processes may
// believe that they own a lane.
//
// # Effects and wakes
//
// Several bridges pull the effects of a target, and several session-actors the wakes that
// are due. Each asks for as many messages as it has free slots. The lease of an effect
// is extended while it is carried out, and not that of a wake. One that comes again
// meanwhile is not given twice.
//
// # Guarantees
//
//   - A delivery is answered over the connection that brought it, or not at all: a
//     server that lost the end of a stream uses sequences again.
//   - What is not acknowledged is delivered again.
//   - Pullers and lanes outlive restarts of the server, and consumers that are deleted.
//   - An error means that a consumer can't be used at all. All else is logged and tried
//     again.
//
// # Concurrency
//
// Methods of Delivery, EffectDelivery and DueDelivery may be called from any goroutine,
// more than once. A Lane and an EffectPuller are run once.
//
// It imports streams, which makes the consumers that it pulls from.
package delivery
