// Package session defines a session: its events, its state, and the fold that
// computes the state from the events. It is pure: no clock, no network, no
// goroutine. The caller stores its notices and its effects.
//
// # Path
//
// Event (what happened, event.go) → Evolve (evolve.go, by the tables of events and classes
// in event.go) → State (state.go) → Open (the open effects, effect.go). A requested run
// (request.go), whose config is resolved under what operators set (config.go), opens a
// turn of the model (turn.go) with the tools that its state allows (offer.go). The
// turn's calls make a batch, which runs group by group (batch.go). Settlements end
// effects (evolve.go); a wake ends effects whose deadline has passed (time.go), or fires a schedule (schedule.go). What
// people see is in notice.go and view.go. Package spaces has what workspaces and packs
// add; spaces.go calls it.
//
// # Laws
//
// Checked by property tests on random histories:
//
//   - Deterministic: the same events leave the same bytes.
//   - Total: every event has a result in every state, and Evolve never panics.
//   - Atomic: all checks come before the first write, so a rejected event changes
//     only the head.
//   - Accountable: an effect is settled at most once, and its bytes never change
//     while it is open.
//   - Sendable: whenever a turn is opened, every earlier call of the model has
//     exactly one result, in the order of the calls.
//   - Bounded: no state exceeds limits.go, whatever the model answers.
//
// # Glossary
//
// Event: something that happened to a session, in stream order. State: all that a
// session remembers. Effect: a request of the session to a bridge or a clock, open
// until settled. Settlement: the event that ends an effect. Plan: the order in
// which the calls of one turn may run. Snapshot: the canonical bytes of a state at
// a sequence. View: the state for people. Notice: a published message about one
// event.
//
// The head is sequence, event count, BLAKE2b-256 chain, clock and notice number.
// Every event changes it, even a rejected one.
//
// # Limits
//
// limits.go has them with their units; limits_test.go checks how they relate.
//
// # Testing
//
// The scenario files under testdata/scenarios are the specification. Package
// scenario reads them, for tests of the fold and of the whole system.
package session
