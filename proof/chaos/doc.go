// Package chaos kills a session-actor, a bridge, both or their NATS server at
// every message that the daemons send, and checks the outcome. `refold chaos`
// runs it.
//
// # Path
//
// A trial is a whole system on its own store: a NATS server, a session-actor and
// a bridge as processes, and one conversation. Each daemon reaches the server
// through a proxy that reads the NATS protocol.
//
// The first trial kills nothing; the messages in its proxies are the points.
// Every further trial has a course of one kill or two. At a kill the proxy stops
// forwarding, the process is killed (SIGKILL) and started again, and the
// conversation continues. At a SIGTERM the message is forwarded, and the next
// process starts at once. The second kill is at a point that a trial with the
// first kill found after it.
//
// A course may also have many kills in any order, so that few trials try many
// points: those of messages at the start of daemons, or of a conversation.
// Missed points and failures of such a trial are tried again, point by point.
// When the conversation has ended and every consumer is idle, the end is
// compared with that of the first trial.
//
// # Points
//
// A Point is a process, a message that it sends, and a side of it. Before: the
// message has not reached the server. After: the server has it and has answered,
// and the process never receives the answer. Messages are named by their meaning,
// not by their bytes: claim.r1t2c0, settle.r1t2c0, ack.tool-host, with a number
// if a name occurs again. In this way a point means the same in every trial,
// although effects run concurrently. Reads, and messages that depend on the clock
// alone (heartbeats, pulls, extended leases, streamed text), are not points.
//
// # Laws
//
// Check checks the rules for the end of every trial:
//
//   - A call that is not retry-safe was carried out once if it was settled
//     succeeded, and at most once otherwise. A retry-safe one at least once if it
//     was settled succeeded. Nothing was carried out that the session had not
//     opened.
//   - The transcript is the recording trial's up to where the model was shown an
//     outcome_unknown; without one, the runs end as they did there. An outcome is
//     unknown only if a bridge was killed.
//   - A process that got SIGTERM ends without an error.
//   - Only wakes are open, notices are numbered without a gap, and each run has
//     one RunFinished.
//   - Spaces have the same notices, the same ones are applied, and the same
//     turns were shown the same prompt.
//   - Every session folds again to the same bytes and opens the stored effects. The
//     session-actor's own state has the same hash.
//   - A collector in the process that kills received, by OTLP, every span that
//     the log gives, with one content, however often it was exported. These are
//     the spans of the recording trial, unless an outcome is unknown. Every other
//     span is of a start of a bridge, and its parent is in the log.
//
// # Testing
//
// The tests here check verdicts with ends that break each law, the proxy with a
// NATS client and server, and courses by their names. e2e kills the sender at
// all points of the built-in demo, and tries a sample of the other kills.
package chaos
