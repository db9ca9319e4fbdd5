// Package engine runs sessions: it owns lanes of the log, folds each session's
// events, stores their outputs, and acknowledges an event only after its outputs
// are stored.
//
// # Path
//
// A Host runs a driver for every lane of its share (membership.go, assignment.go,
// driver.go). The driver hands inputs to a Lane (lane.go), one after another, and
// carries out the work that the lane returns. The Lane itself starts no goroutine,
// reads no clock and does no I/O.
//
//   - Delivered events are folded (actor.go), as many as are buffered at a time.
//     Their outputs are stored together as a batch (store.go): first the
//     descriptors of new registries (registries.go), then withdrawals and effects,
//     then notices. Up to four batches are stored at a time, while later events are
//     folded.
//   - Wakes are stored after the batch (wakes.go). Events are acknowledged in order
//     once all before them are stored, and states are snapshotted (snapshots.go).
//   - A session that is not in memory is first read from the log up to the
//     delivered event, starting at its snapshot if that is valid (load.go). One
//     request finds all new sessions (prefetch.go). A loading session's events are
//     parked, and events of other sessions are folded.
//   - In a new epoch (epoch.go) a session in memory is proven before it is used.
//   - A fault stops one session (quarantine.go), until people release it
//     (release.go). An event that ends the process itself is found by later owners
//     (guard.go).
//   - Any host settles due wakes, of any session (due.go), and answers refold.view
//     from a copy of the state (view.go).
//
// All reads and writes go through one interface (world.go).
//
// # Laws
//
//   - An event is acknowledged only after all its outputs are stored, and after
//     every event that was delivered before it. The events of one session are
//     folded in order. An event's outputs, except wakes, are stored after those of
//     the session's earlier events. A notice is stored after the effects and
//     withdrawals of its event.
//   - A descriptor is stored before an effect names it.
//   - Only a stored state is snapshotted, and a snapshot never replaces a newer one
//     of the same owner.
//   - A wake is a message schedule. It is stored before the event that opened it is
//     acknowledged; nothing else waits for it. It outlives every host. When it has
//     fired, any host publishes its settlement, and acknowledges the firing after
//     the settlement is stored. Both may happen twice: the fold ignores a repeat.
//   - A load folds exactly up to the event before the delivered one, and emits
//     nothing; the delivered event and all later ones are folded and emit.
//   - In a new epoch a session in memory is proven before it is used: the log must
//     still have the event that it was folded up to. Events that another owner has
//     folded since are folded without emitting.
//   - No effect except a wake is stored after its start_by, by this host's clock.
//   - While the log has holes, no snapshot and no state in memory is trusted
//     unverified. The session is folded from its first event and compared with
//     both, with its stored effects and its last notice (integrity.go,
//     internal/audit).
//   - A session that can't go on is quarantined: a stored effect of the same name
//     has other bytes, an output is too large, the log has lost or changed events,
//     or the fold panicked. The session stops alone, its events stay in the log,
//     and its lane goes on. After a release it is folded from the log's beginning,
//     and goes on from the first event that is not done.
//   - After two unclean ends of a lane's owners without progress, the pending
//     events are folded and stored one at a time, each after a note that names it.
//     An event at which four owners in a row ended is quarantined (docs/adr/0030).
//   - A session that can't be loaded or stored is quarantined, if that lasts for
//     roundsMax rounds while another session, or a probe, succeeds on the same
//     streams, and all streams answer (isolate.go). A full stream quarantines nobody.
//     A try ends even if the server never answers. What failed is
//     tried again each minute (retrial.go). Its success resumes the session, and the
//     quarantine stays stored until then (docs/adr/0075).
//   - A session under rules that this release doesn't know ends the host, and its
//     lane is given back unacknowledged.
//   - Correctness never rests on owning a lane. Two hosts that fold the same events
//     open effects of the same names.
//
// # Glossary
//
//   - epoch: the time between two resets of a lane.
//   - folded, stored: how far a session is. Stored is never past folded.
//   - unproven: in memory since an earlier epoch.
//
// # Concurrency
//
// One goroutine per lane calls Step; it alone touches the lane's sessions. Work
// runs in goroutines of its own, which report the result as the next input. Outputs
// are queued without one: the committer that has the last outcome reports it. While
// work on a session is pending, its events wait. Views work on copies.
//
// # Limits
//
// The sessions in memory take at most Options.Memory bytes, as estimated by their
// states, divided equally among the running lanes (evict.go); quarantined sessions
// don't count. All snapshots of a lane are compared with the log once a day, one at
// a time, for at most a twentieth of the host's time (scrub.go). At most 1,024 events of a lane are delivered and not acknowledged, and at most four
// batches are stored at a time. A host settles 256 wakes at once. A View that does
// not fit a message is sent without lists of overrides, and then without tools.
// Running hosts notice a release from quarantine within 15 s.
//
// # Testing
//
// A model test draws inputs and the order in which work is done, and checks what a
// Lane returns (lane_model_test.go). Most tests run one driver against a failing
// World in memory, in a bubble of testing/synctest. Other tests run hosts against a
// real server. The simulator (proof/sim) drives Lanes of two hosts, among bridges
// and users, while processes are killed and cut off.
package engine
