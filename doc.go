// Package refold is the root of the module. Its test checks the laws of the
// repository.
//
// Refold runs agent sessions that survive the death of any process. A session
// is an actor: its state is a fold of its own messages on a NATS JetStream
// stream, and of nothing else. A session publishes effects: requests for a model
// turn, a tool call or a timer. Bridges carry effects out and publish
// settlements, which are events again.
//
// # Path
//
// An event is published on refold.in.<session>, or on another door. A
// session-actor (cmd/session-actor, internal/engine) folds it into the state
// (actors/session) and publishes every effect that is open. A bridge (cmd/bridge,
// bridge) claims the effect, carries it out with an executor (internal/llm,
// internal/tools) and publishes the settlement. Everything that touches NATS goes
// through internal/natsio and the packages over it, which internal/bus connects.
//
// # Where things are
//
//   - codec, planner, space, actors/spaces, actors/session, subjects: pure. Bytes,
//     plans, manifests, a session's spaces, the fold, and names. They have no clock
//     and do no I/O.
//   - bridge, client: public. Serve your own tools; start and follow runs.
//   - internal: NATS, the engine of the session-actors, models and tools.
//   - cmd: two daemons, and the command line program refold.
//   - e2e: tests of the system from the outside, as processes.
//   - proof: checks of all the rest: chaos, benchmarks, known faults.
//
// # Laws
//
// internal/archtest states which package may import which, what a pure package
// may contain, and how long a file may be. Each law is tested with a violation
// that it must report. Design decisions are in docs/adr.
package refold
