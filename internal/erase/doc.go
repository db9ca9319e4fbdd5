// Package erase deletes the messages of erased sessions from the streams, so that nothing
// of their text is left in the server's files (docs/adr/0107).
//
// Path. A caller publishes SessionErased. The owner of the session stores the tombstone and
// a snapshot without text. Eraser.Session waits for both, and deletes the notices and the
// dead letters. Then it writes to the ledger (REFOLD_ERASED) what it will delete of the
// log, deletes it, and writes that it is done. Eraser.Snapshots at last makes the server
// drop the former snapshots.
//
// A plain eraser (Options.Plain) does the same with deletes that overwrite nothing, for
// retention (docs/adr/0111).
//
// Laws.
//
//   - A message of the log is deleted only if the ledger lists it, and only if a snapshot at
//     the tombstone or later is stored: a load never needs what is deleted.
//   - The ledger has one erasure under way at most. Whoever comes next completes it first,
//     so an eraser may be killed at any time.
//   - Deletes take at most a twentieth of the time, plain ones a quarter, and pause while a
//     lane is far behind.
//
// Testing. eraser_test.go stops an eraser at each of its requests, and lets another one
// complete its work, and searches the server's files.
package erase
