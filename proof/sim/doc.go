// Package sim runs two session-actors, two bridges and their users on a model of
// JetStream, one goroutine at a time. A seed decides what happens next and what
// goes wrong. After each step the rules of both are checked. docs/simulator.md
// describes what runs, what goes wrong and what must hold.
//
// # Path
//
// play (sim.go) draws what happens next: a call, a delivery, an action of a
// person (people.go, spaces.go), passing time, or a disaster (disasters.go). It
// ends when nothing is left to do. The processes are those of hosts.go and
// bridges.go. They run the code of the daemons: engine.Host and engine.Lane,
// delivery.Lane, worker.Worker. Their view of the server is in world.go,
// laneserver.go and transport.go. Each of their calls waits on the stage
// (stage.go) until it is drawn, and the stage decides whether it happens. The
// server (server.go) is the streams and consumers of proof/jetmodel.
//
// The referee folds each event when it is stored, and so knows the duties of each
// process. It checks what is acknowledged (laws.go), started and settled
// (starts.go), and kept in memory (bounds.go). A failing run is shrunk
// (shrink.go), and printed as a scenario (scenario.go).
//
// # Laws
//
//   - One seed has one history, whichever goroutine the processor runs first.
//   - Zeros draw what does the least harm, so a run is shrunk by drawing less.
//   - The code under test knows nothing of the simulation: it has no hook for it.
//
// # Testing
//
// TestSimulation plays seeds, TestSimulationAgain plays each twice and compares
// the two. proof/faults builds in faults that TestSimulation must find.
package sim
