// Package engine runs sessions: it owns lanes of the log, folds each session's
// events, stores what they say and ask for, and acknowledges only what is
// stored.
//
// # Path
//
// A Host runs a driver for every lane of its share (membership.go, assignment.go,
// driver.go). The driver hands what happens to a Lane (lane.go), one input after
// the other, and carries out what the lane wants done. The Lane itself starts no
// goroutine, reads no clock and does no I/O.
//
//   - Delivered events are folded (actor.go), as many as are buffered at a time. What
//     they say and ask for is stored together, as a batch (store.go): the descriptors
//     of registries that were set (registries.go), then withdrawals and effects, then
//     notices. Up to four batches are stored at a time; more is folded meanwhile.
//   - Wakes are stored behind that (wakes.go). The stored prefix of what was
//     delivered is acknowledged, and states are snapshotted (snapshots.go).
//   - A session that is not in memory is read from the log up to the delivered event
//     first, from its snapshot on if that counts (load.go); new ones are found by one
//     question for all of them (prefetch.go). Its events are parked meanwhile, and
//     those of others are folded.
//   - In a new epoch (epoch.go) a session in memory is proven before it is used.
//   - A fault stops one session (quarantine.go), until people release it
//     (release.go). An event that ends the process itself is found by those that come
//     after it (guard.go).
//   - Wakes that are due, of any session, are settled by any host (due.go).
//     refold.view is answered from a copy (view.go).
//
// All that is read and stored goes through one interface (world.go).
//
// # Laws
//
//   - An event is acknowledged only after every output of it is stored, and after
//     every event that was delivered before it. The events of one session are folded
//     in order. Outputs of an event are stored after those of the session's earlier
//     events, but for wakes. A notice is stored after the effects and withdrawals of
//     its event.
//   - A descriptor is stored before an effect names it.
//   - Only a stored state is snapshotted, and no snapshot takes the place of a
//     newer one of the same owner.
//   - A wake is a message schedule. It is stored before the event that opened it is
//     acknowledged; nothing else waits for it. It outlives every host. When it has
//     fired, any host publishes its settlement, and acknowledges the firing after that
//     is stored. Both may happen again: the fold ignores a repeat.
//   - A load folds exactly up to the event before the delivered one, and emits
//     nothing; the delivered event and all later ones are folded and emit.
//   - In a new epoch no session in memory is used before it is proven: the log must
//     still have the event that it was folded up to. Events that another owner has
//     folded since are folded without emitting.
//   - No effect but a wake is stored after its start_by, by this host's clock.
//   - While the log has holes, no snapshot and no memory is believed before the
//     session was folded from its first event and compared with them, with its
//     stored effects and its last notice (integrity.go, audit.go).
//   - A session that can't go on (another payload under a name that it asked,
//     an output that is too large, events that the log has lost or changed, a
//     fold that panicked) is quarantined: it
//     stops alone, its events stay in the log, and its lane goes on. Released,
//     it goes on from the first event that is not done.
//   - After two unclean ends of a lane's owners without progress, the events that
//     were under way are folded and stored one at a time, each behind a note that
//     names it. An event at which two owners ended so is quarantined
//     (docs/adr/0030).
//   - A session under rules that this release doesn't know ends the host, and
//     its lane is given back unacknowledged.
//   - Correctness never rests on owning a lane. Two hosts that fold the same
//     events ask for the same names.
//
// # Glossary
//
//   - epoch: the time between two resets of a lane.
//   - folded, stored: a session's two marks. Stored is never past folded.
//   - unproven: in memory since an earlier epoch.
//
// # Concurrency
//
// One goroutine per lane steps; it alone touches the lane's sessions. Work is done by
// goroutines of its own, which hand in what became of it as the next input. While work
// is under way for a session, its events wait. Views work on copies.
//
// # Limits
//
// The sessions in memory take Options.Memory bytes at most, by what their states
// say that they weigh, and each lane that runs has an equal part (evict.go); those
// that are quarantined don't count. One snapshot of a host is verified at a time,
// for a twentieth of the time (verify.go); all of a lane are, once a day
// (scrub.go). At most 1,024 events are delivered ahead of what is acknowledged,
// and a lane stores four batches at a time. A host settles 256 wakes at once. A
// View that does not fit a message is sent without lists of overrides, and then
// without tools. Running hosts notice a release from quarantine within 15 s.
//
// # Testing
//
// A model test draws what arrives and in which order work is done, and checks what a
// Lane says must be done (lane_model_test.go). Most tests run one driver in a world in
// memory that fails on purpose, in a bubble of testing/synctest. A simulation runs
// two hosts that take the lane from one another, by seed, while people stop runs and
// hours pass; that of package bridge drives Lanes itself. The rest runs hosts against a
// real server.
package engine
