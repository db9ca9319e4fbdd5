// Package archive is the format of a session's archive: one file that has the
// session's events, the install record that it pinned, and the blobs that its events
// name. README.md specifies the bytes.
//
// # Path
//
// Create begins a file under a temporary name. Writer.Event and Writer.Blob add to it,
// and Writer.Finish ends it: it writes the file to the disk, reads all of it back, has
// the caller check what was read, and only then gives the file its name. Open checks a
// whole file, and returns a File that reads it in any order.
//
// # Laws
//
//   - A file with its final name was read back from the disk after it was written.
//   - Open returns a File only if every byte is as it was written: each kind of damage
//     has its own error, ErrTruncated, ErrCorrupt, ErrNotArchive or a *NewerError.
//   - Nothing here folds. That the events fold to the header's chain and hash is
//     checked by who does, such as package client.
//
// # Limits
//
// EventBytesMax, BlobBytesMax, HeadBytesMax and SizeMax. A File keeps 24 bytes for each
// event and about 100 for each blob in memory; what it reads is in a temporary file
// that has no name, so that its space is free once the File is closed or the process
// ends.
package archive
