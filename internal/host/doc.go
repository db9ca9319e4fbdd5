// Package host runs sessions: it owns lanes of the log, folds each session's
// events, stores what they say and ask for, and acknowledges only what is
// stored.
//
// # Path
//
// A Host runs a lane actor for every lane (lane.go). Delivered events are
// folded in order, one batch of what is buffered at a time; the batch's
// outputs are stored (store.go): withdrawals, then effects, then notices; then
// its events are acknowledged. A session that is not in memory, or whose place
// in the log is unproven since the lane's last reset, is read from the log up
// to the delivered event first (load.go), from its snapshot on if that counts.
// Install records are parsed once and shared (installs.go). refold.view is
// answered from a copy (view.go).
//
// # Laws
//
//   - An event is acknowledged only when every output of it is stored.
//   - Only a stored state is snapshotted.
//   - A load folds exactly up to the event before the delivered one, and emits
//     nothing; the delivered event and all later ones are folded and emit.
//   - A session that can't go on (another payload under a name that it asked,
//     a fold that panicked) is quarantined: it stops alone, its events stay in
//     the log, and its lane goes on.
//   - Correctness never rests on owning a lane. Two hosts that fold the same
//     events ask for the same names.
//
// # Concurrency
//
// One goroutine per lane folds and stores; it alone touches the lane's
// sessions. The view works on copies.
package host
