// Package host runs sessions: it owns lanes of the log, folds each session's
// events, stores what they say and ask for, and acknowledges only what is
// stored.
//
// # Path
//
// A Host runs a lane actor for every lane of its share (share.go,
// share_lanes.go, lane.go). Delivered events are folded (actor.go), all that is
// buffered at a time, while the outputs of what was folded before are being stored.
// What is folded meanwhile is the next slice (store.go): the descriptors of
// registries that were set (registries.go), then withdrawals and effects, then
// notices, those of all its sessions together. Several slices are stored at a time,
// and the stored prefix of what was delivered is acknowledged. A session that is not
// in memory is read from the log up to the delivered event first, from its snapshot
// on if that counts, the new ones by one question (ahead.go); its events are parked
// meanwhile, and those of others are folded. One that is in memory since before the
// lane's last reset is proven (load.go). A fault stops one session
// (quarantine.go), and an event that ends the process itself is found by those
// that come after it (guard.go). Beside the lane, overdue wakes of sessions in memory are
// settled (wakes.go), and sessions that wait and are not in memory are found by
// their snapshots (sweep.go, snapshots.go), and those that a former owner had in
// memory by their last events (lookback.go). refold.view is answered from a copy
// (view.go). All that is read and stored goes through one interface (world.go).
//
// # Laws
//
//   - An event is acknowledged only when every output of it is stored, and behind
//     all that was delivered before it. The events of a session are folded in their
//     order, those of several in any. A session says nothing before all that it said
//     earlier is stored: its notices are stored in order, each behind the effects and
//     withdrawals of its event and of those before.
//   - A descriptor is stored before an effect names it.
//   - Only a stored state is snapshotted, and no snapshot takes the place of a
//     newer one of the same owner.
//   - A session whose wake lies far ahead is in a snapshot that names it before
//     the event that asked for it is acknowledged, as far as the bucket takes
//     it; one that is evicted with open wakes is, too. So a session that waits
//     costs no memory, and outlives every host.
//   - A session that waits is in memory, in a snapshot that names its wakes, in a
//     list of wakes that its owner keeps (unsaved, evict.go), or had its last event
//     not long before its lane was taken: these are looked at in the log
//     (lookback.go). So it is woken though the names of its effects are lost.
//   - What came later than a wake's due is acknowledged when the wake is settled,
//     as far as the log takes it: behind it nobody would look back so far (floor.go).
//   - From when on that is, is noted in the bucket before anything is acknowledged
//     in an era, and until it is looked back, as far as the bucket takes it: who takes the
//     lane from an owner that was gone before looks back as far
//     (lookback_note.go).
//   - An owner settles a wake once in an era, when a timer bridge should have,
//     and only if the settlement can't be among what it has not seen.
//   - What a sweep loads is a copy: it emits nothing but WakeSettled and wakes
//     that were asked before.
//   - A load folds exactly up to the event before the delivered one, and emits
//     nothing; the delivered event and all later ones are folded and emit.
//   - In a new era nothing in memory is believed: the log must still have the
//     event that a session was folded up to, and what another owner did since
//     is folded without emitting.
//   - Nothing but a wake is asked past its start_by, by this host's clock, at
//     the moment of asking.
//   - While the log has holes, no snapshot and no memory is believed before the
//     session was folded from its first event and compared with them, with its
//     stored effects and its last notice (integrity.go, exam.go).
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
//   - era: the time between two resets of a lane.
//   - folded, stored: a session's two marks. Stored is never past folded.
//   - unproven: in memory since an earlier era.
//   - overdue: a wake whose due is longer ago than a timer bridge may be late.
//   - sweep: going through the snapshots that name open wakes.
//
// # Concurrency
//
// One goroutine per lane folds; it alone touches the lane's sessions. Eight store
// its slices, a slice each, one puts snapshots (snapshotting.go), and each session
// is loaded by one of its own. Views and sweeps work on copies.
//
// # Limits
//
// The sessions in memory take Options.Memory bytes at most, by what their states
// say that they weigh, and each lane that runs has an equal part (evict.go); those
// that are quarantined don't count. One snapshot of a host is verified at a time,
// for a twentieth of the time (verify.go); all of a lane are, once a day
// (rounds.go). A session that waits for a far day leaves after a minute
// (sleep.go). At most 1,024 events are delivered ahead of
// what is acknowledged, and eight slices stored at a time. A lane settles 64 overdue wakes a second at most, beside those
// that its acknowledgements would pass; one lane of a host is swept at a time, 500
// sessions a second. A View that would not fit a message goes without lists of
// overrides, then without tools. A quarantine leaves nothing behind when it is
// deleted: a release is noticed by hosts that run then, within 15 s.
//
// # Testing
//
// Most tests run one lane in a world in memory that fails on purpose, in a
// bubble of testing/synctest; a simulation runs two hosts that take the lane
// from one another, by seed, while people stop runs and hours pass. The rest runs hosts against a real server.
package host
