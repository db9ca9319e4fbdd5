// Package session is the session: its events, its state, and the fold that
// makes one of the other. It is pure: no clock, no network, no goroutine. The
// world around it stores what it says and asks for what it owes.
//
// # Path
//
// Event (what happened, event.go) → Evolve (one switch over the event's body,
// evolve.go) → State (state.go) → Open (what the world still owes, open.go).
// A run is requested (requests.go), asks a turn of the model (turn.go), whose
// calls make a batch that runs group by group (batch.go); settlements end
// effects (settle.go); wakes end what nobody settled (deadline.go).
//
// # Laws
//
// Checked by property tests on random histories:
//
//   - Deterministic: the same events leave the same bytes.
//   - Total: every event has a result in every state; Evolve never panics.
//   - Atomic: guards stand before the first write; a rejected event changes
//     only the head.
//   - Accountable: an effect is settled at most once, and its bytes never
//     change while it is open.
//   - Sendable: at every turn that is asked, every call that the model made
//     has exactly one result, in the order of the calls.
//   - Bounded: no state exceeds limits.go, whatever the model says.
//
// # Glossary
//
// Event: something that happened to a session, in stream order. State: all
// that a session remembers. Effect: one thing that the session wants of the
// world, open until settled. Settlement: the event that ends an effect. Plan:
// the order in which the calls of one turn may run. Snapshot: the canonical
// bytes of a state at a sequence. View: what people see. Notice: what the fold
// has to say to the outside about one event.
//
// The head is sequence, event count, BLAKE2b-256 chain, clock and notice number: what
// a rejected event changes too.
//
// # Limits
//
// All in limits.go, with their units; limits_test.go asserts how they relate.
//
// # Testing
//
// Scenario files under testdata/scenarios are the specification: package
// scenario reads them, here and against the real system.
package session
