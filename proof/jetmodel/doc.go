// Package jetmodel is a model of the parts of JetStream that Refold uses: in
// memory, in one goroutine, with the caller's clock. The simulation runs the engine
// and bridges on it (docs/simulator.md).
//
// # Path
//
// A Stream stores messages (stream.go), singly or as an atomic batch (batch.go),
// with the guards that Refold uses: one message per subject, the expected
// sequence of a subject's last message, the window in which a message id counts
// once. It is read by sequence, by subject and in order. A read may be limited to
// the end of a replica that is behind the leader. A Consumer (consumer.go)
// delivers what a filter matches: pending, ack floor, redelivery after ack_wait
// or a nak, reset to the ack floor, a pin (pin.go).
//
// # Laws
//
//   - Nothing runs in the background: effects of time happen at the next call.
//   - The same calls at the same times return the same results.
//   - TestSameAsServer makes the same random calls on the model and on a server
//     and compares the results.
//
// That test does not cover what needs a power loss or a cluster: Lose (the stream
// loses its end, and sequences are used again), Saved and Restore (a consumer
// loses unflushed state), and ends of replicas. Its clock stands still, so it
// does not cover time either (a nak's delay, ack_wait, a pin's end, an age);
// time_test.go tests these on the model alone. These parts follow the server's
// source, and choose the worst outcome that it allows.
//
// # Limits
//
// It is not a server: it searches messages one by one and has no lock. Its only
// limits are one message per subject and an age.
package jetmodel
