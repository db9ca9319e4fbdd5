// Package chaos kills a session-actor, a bridge, both or their NATS server at
// every message that the daemons send, and looks at what is left. `refold chaos`
// is it. It also measures how long handing over takes.
//
// # Path
//
// A trial is a whole system on a store of its own: a NATS server, a session-actor
// and a bridge as processes, with which a conversation is held. Each daemon reaches
// the server through a proxy that reads the NATS protocol.
//
// The first trial kills nobody. What passes its proxies are the points. Every
// further trial has a course of one kill or two. At a kill the proxy passes nothing
// on, the process is killed (SIGKILL) and started again, and the conversation goes
// on. Or the process is told to end (SIGTERM): then the message passes, and the next
// process starts at once. The second kill is at a point that a trial with the first
// one found later.
//
// A course may also have many kills in any order, so that few trials try many
// points: those of what daemons send because they start, or of a conversation. What
// such a trial misses, or what goes wrong there, is tried point by point. When the
// conversation has ended and every consumer is at rest, the end is compared with
// that of the first trial.
//
// # Points
//
// A Point is a process, a message that it sends, and a side of it. Before: the
// message has not reached the server. After: the server has it and has
// answered, and the process never hears the answer. Messages are named by what
// they say, not by their bytes: claim.r1t2c0, settle.r1t2c0, ack.tool-host;
// the nth of a name since the trial began is told by its number. So a point
// means the same in every trial, although effects run side by side. What comes
// by the clock alone (heartbeats, pulls, extended leases, streamed words) and
// what only reads is no point.
//
// # Laws
//
// Check says what must hold at the end, whatever was done:
//
//   - A call that is not retry-safe was carried out once if it was settled
//     succeeded, and at most once otherwise. A retry-safe one at least once if
//     it was settled succeeded. Nothing was carried out that was not asked.
//   - The transcript is that of the recording trial up to where the model was
//     shown an outcome_unknown; without one, the runs end as they did there. An
//     outcome is unknown only if a bridge was killed.
//   - Who was told to end ends, and well.
//   - Nothing but wakes is open, notices are numbered without a gap, each run
//     is told finished once.
//   - Of spaces the same was told, the same is applied, and the same turns were
//     shown the same prompt.
//   - Every session folds again to the same bytes, asks for the effects that
//     are stored, and the session-actor's own state has the same hash.
//   - A collector in the process that kills received, by OTLP, the spans that the log
//     makes: every one of them, with one content, however often it was exported. They
//     are the spans of the recording trial, unless an outcome is unknown. Every other
//     span is of a start of a bridge, and its parent is in the log.
//
// # Testing
//
// The verdicts are tested here with ends that break each law; the proxy with a
// client and a server of NATS; courses by their names. e2e kills the sender at
// all points of the built-in demo, and tries a sample of the other kills.
package chaos
