// Package worker executes effects: it takes one that is delivered, claims it, has it
// run and stores its settlement. It is all of a bridge but the connection and what
// users see of it, which is package bridge.
//
// # Path
//
// An effect comes from the durable consumer of its class and target, from which
// several bridges may pull. It is decoded (effect.go), entered in the table of
// executions (execution.go), and waits until it may start (admission.go). What must
// not be started twice is claimed (claim.go); while the claim of a generation is
// under way, its request is built (internal/prompt). Then it is started (start.go).
// What was returned becomes an outcome (outcome.go), and that a settlement
// (settlement.go), which is stored before the effect is acked (worker.go).
//
// All of that is in one goroutine, the executor's too. If the executor does not
// return when it must, or ends the goroutine, another one goes on (running.go). The
// effect's slot is free when the effect is acked or given back, not before. wire.go
// says what all this needs of NATS, and nats.go provides it.
//
// # Laws
//
//   - Settle, then ack. An effect is acked only when its settlement is stored,
//     or when another bridge has settled it, or nobody needs that any more.
//   - A tool call that is not retry-safe, and a model turn, starts only under a
//     claim that this process stored first. Delivery counts decide nothing.
//   - The clock is read after the claim is acknowledged, last thing before the
//     start: past start_by nothing starts.
//   - A claim stands for the bytes that it has the hash of. A claim of other bytes
//     is passed over.
//   - A server that lost the end of its streams delivers other effects under the
//     names of lost ones. A delivery of other bytes stops what is in progress under
//     its name, and the stopped effect is settled by nobody. What was settled over
//     an earlier connection is acked only if the log still has its settlement.
//   - What may have happened is never called a failure. A call that is not
//     retry-safe is settled `outcome_unknown` if it was stopped, if its bridge is
//     gone, or if it was asked so long ago that its claim may be forgotten.
//   - A bridge claims a model turn again if other bridges may have found it gone
//     since it first asked for its claim, also where the turn was given back
//     because its transcript could not be read. As long as nobody hears the bridge,
//     it starts no turn.
//   - A bridge takes another one for gone only if it has listened for five seconds
//     without a gap, which it knows by its own heartbeats.
//   - A settlement is tried until it is stored, and none is too large: text
//     goes to blobs, what no event can hold becomes a failure that says so.
//   - Arguments above 256 KiB, and the largest of those that no event can hold
//     together, are stored as blobs. The session refuses these calls with a
//     result, and the run goes on.
//
// # Glossary
//
//   - target: the name of the executor, provider or step hook that executes an effect.
//   - claim: the message that says which process starts an effect. The first
//     one that is stored stands.
//   - instance: a ULID per process start, which claims and heartbeats name.
//   - execution: an effect that this process has in hand.
//   - late: past start_by.
//   - withdrawn: nobody may start it any more, or what runs is to stop.
//
// # Limits
//
// All in limits.go, with their units.
//
// # Testing
//
// The rules run against a world in memory, in virtual time; contract_test.go
// holds that world, and NATS, to the same promises. proof/sim runs whole
// systems on a model of JetStream.
package worker
