// Package worker carries out effects: it takes one that is delivered, claims it,
// has it run and stores its settlement. It is all of a bridge but the connection
// and what users see of it, which is package bridge.
//
// # Path
//
// An effect comes from the durable consumer of its class and target, of which
// several bridges may pull. It is decoded (effect.go) and entered in the table of executions
// (execution.go). What must not be started twice is claimed (claim.go), and while that is
// on its way the request of a generation is built (internal/prompt).
// Then it is started (start.go), becomes an outcome (outcome.go), and that a
// settlement (settlement.go), which is stored before the effect is acked
// (worker.go). All of that is in one goroutine, the executor's too. If it does not
// return when it must, or ends the goroutine, another one goes on (running.go), and
// until the effect is acked or given back its slot is not free. prepared.go
// is what becomes of a step hook's choice.
// wire.go says what all this needs of NATS, and nats.go has it from internal/bus.
//
// # Laws
//
//   - Settle, then ack. An effect is acked only when its settlement is stored,
//     or when somebody else has said, or will not need, its last word.
//   - A tool call that is not retry-safe, and a model turn, starts only under a
//     claim that this process stored first. Delivery counts decide nothing.
//   - The clock is read after the claim is acknowledged, last thing before the
//     start: past start_by nothing starts.
//   - A claim stands for the bytes that it has the hash of. One of other bytes is
//     passed over.
//   - A server that lost the end of its streams delivers other effects under the
//     names of those that are lost. A delivery of other bytes stops what is in
//     progress under its name, and that is settled by nobody. What was settled over
//     an earlier connection is acked only if the log has its settlement still.
//   - What may have happened is never called a failure. A call that is not
//     retry-safe and that was stopped, whose bridge is gone, or that was asked
//     so long ago that its claim may be forgotten, is settled
//     `outcome_unknown`.
//   - A model turn whose claim we won is claimed anew if nobody heard us at a
//     time since we asked for that claim first, whoever answered when: others
//     may have found us gone. As long as nobody hears us, none is started.
//     That goes too for a claim of ours whose turn was given back, because its
//     transcript could not be read.
//   - Nobody is gone unless we listened for five seconds without a gap, which
//     we know by our own heartbeats.
//   - A settlement is tried until it is stored, and none is too large: text
//     goes to blobs, what no event can hold becomes a failure that says so.
//   - Arguments above 256 KiB, and the largest of those that no event can hold
//     together, are stored as blobs. The session refuses these calls with a
//     result, and the run goes on.
//
// # Glossary
//
//   - target: who carries an effect out: the name of an executor, a provider or
//     a step hook.
//   - claim: the message that says which process starts an effect. The first
//     one that is stored stands.
//   - instance: a ULID per process start, which claims and heartbeats name.
//   - execution: an effect that this process carries.
//   - late: past start_by.
//   - withdrawn: nobody may start it any more, or what runs is to stop.
//
// # Admission
//
// What may start when is decided in admission.go, whose table has the rules. pace.go
// has those of providers: rates, what a provider asks to wait, and one that is down.
// Where no rule applies, admission costs a look at two nil pointers.
//
// # Limits
//
// All in limits.go, with their units.
//
// # Testing
//
// The rules run against a world in memory, in virtual time; contract_test.go
// holds that world, and NATS, to the same promises. TestSimulation runs whole
// systems on a model of JetStream: see docs/simulator.md.
package worker
