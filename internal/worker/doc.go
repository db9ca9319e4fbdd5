// Package worker executes effects: it claims a delivered effect, runs its executor
// and stores its settlement. It holds all of a bridge except the connection and the
// public API, which are in package bridge.
//
// # Path
//
// An effect arrives from the durable consumer of its class and target, from which
// several bridges may pull. The worker decodes it (effect.go), enters it in the
// table of executions (execution.go), and waits until it may start
// (admission.go). An effect that must not start twice is claimed (claim.go);
// while the claim of a generation is in progress, the worker builds its request
// (internal/prompt). Then the effect starts (start.go). What the executor returns
// becomes an outcome (outcome.go) and then a settlement (settlement.go), which is
// stored before the effect is acked (worker.go).
//
// All of this runs in one goroutine, the executor included. If the executor does
// not return in time, or ends the goroutine, another goroutine continues
// (running.go). The effect's slot becomes free only when the effect is acked or
// given back. wire.go states what all this needs of NATS, and nats.go provides
// it.
//
// # Laws
//
//   - Settle, then ack. An effect is acked only when its settlement is stored, when
//     another bridge has settled it, or when the session no longer needs it.
//   - A model turn, and a tool call that is not retry-safe, starts only under a
//     claim that this process stored first. Delivery counts decide nothing.
//   - The clock is read after the claim is acknowledged, immediately before the
//     start: nothing starts after start_by.
//   - A claim is valid for the bytes whose hash it holds. A claim of other bytes is
//     skipped.
//   - A server that lost the end of its streams delivers other effects under the
//     names of lost ones. A delivery of other bytes stops the execution in
//     progress under its name, and the stopped effect is not settled. An effect
//     settled over an earlier connection is acked only if the log still has its
//     settlement.
//   - An effect that may have happened is never reported as failed. A call that
//     is not retry-safe is settled `outcome_unknown` if it was stopped, if its
//     bridge is gone, or if it is so old that its claim may have been removed.
//   - A bridge claims a model turn again if other bridges may have considered it
//     gone since it first requested the claim, also if it gave the turn back
//     because the transcript could not be read. While its own heartbeats don't
//     arrive, it starts no turn.
//   - A bridge considers another one gone only after it has listened for five
//     seconds without a gap, as its own heartbeats show.
//   - A settlement is retried until it is stored, and none is too large: text
//     goes to blobs, and an outcome that no event can hold becomes a failure with
//     the reason.
//   - Arguments above 256 KiB, and the largest of those that no event can hold
//     together, are stored as blobs. The session refuses these calls with a
//     result, and the run goes on.
//
// # Glossary
//
//   - target: the name of the executor, provider or step hook that executes an
//     effect.
//   - claim: the message that names the process which starts an effect. The first
//     one stored is valid.
//   - instance: a ULID per process start, which claims and heartbeats name.
//   - execution: an effect in progress in this process.
//   - late: past start_by.
//   - withdrawn: no bridge may start it any more; an execution in progress stops.
//
// # Limits
//
// All in limits.go, with their units.
//
// # Testing
//
// The rules run against a Transport in memory, in virtual time; contract_test.go
// holds that Transport, and NATS, to the same promises. proof/sim runs whole
// systems on a model of JetStream.
package worker
