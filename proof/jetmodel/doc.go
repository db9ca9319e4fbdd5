// Package jetmodel is a model of JetStream: the part of it that Refold rests
// on, in memory, in one goroutine, with a clock that the caller gives. The
// simulation runs hosts and bridges on it (docs/simulator.md).
//
// # Path
//
// A Stream takes messages (stream.go), alone or as an atomic batch (batch.go),
// with the guards that Refold uses: one message per subject, the sequence that
// a subject's last message must have, the window in which a message id counts
// once. It is read by sequence, by subject and in order; a read may be given
// the end that a replica has got to, which is behind the leader's. A Consumer
// (consumer.go) delivers what a filter matches: pending, ack floor, redelivery
// after ack_wait or a nak, reset to the ack floor, a pin (pin.go).
//
// # Laws
//
//   - Nothing is done in the background: what time does is done when the next
//     call looks at the clock.
//   - The same calls at the same times have the same answers.
//   - Where the model and the server answer alike, TestSameAsServer has seen it,
//     by the same random calls on both.
//
// What that test can't see, since it takes a power loss or a cluster: Lose (the
// stream goes back, and its sequences are used again), Saved and Restore (a
// consumer forgets what it had not flushed), and ends of replicas. Nor what time
// does (a nak's delay, ack_wait, a pin's end, an age), since its clock stands
// still: time_test.go has that of the model alone. They do what
// ARCHITECTURE and the server's source say, and are the worst that may happen.
//
// # Limits
//
// Not for use as a server: messages are looked through one by one, and there
// is no lock. No limits but one message per subject and an age.
package jetmodel
