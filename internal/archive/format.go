package archive

import (
	"errors"
	"fmt"

	"github.com/refold/refold/codec"
)

// Version is the version of the format that this package writes, and the latest that
// it reads.
const Version = 1

// Extension is that of an archive's name.
const Extension = ".refold"

// magic begins a file; the version follows.
const magic = "refold\x00"

// Limits of records, and of all records together.
const (
	HeadBytesMax  = 16 << 20 // of the header, and of the end
	EventBytesMax = 64 << 20 // the largest message of NATS
	BlobBytesMax  = 1 << 30  // the largest blob
	SizeMax       = 64 << 30 // of all records, uncompressed
)

// kind is the kind of a record.
type kind byte

const (
	kindHeader kind = 'H'
	kindEvent  kind = 'E'
	kindBefore kind = 'R'
	kindBlob   kind = 'B'
	kindEnd    kind = 'Z'
)

// bytesMax returns the limit of a body, 0 for an unknown kind.
func (k kind) bytesMax() int64 {
	switch k {
	case kindHeader, kindEnd:
		return HeadBytesMax
	case kindEvent:
		return EventBytesMax
	case kindBefore:
		return beforeBytes
	case kindBlob:
		return BlobBytesMax + int64(len(codec.Hash{}))
	}
	return 0
}

// headBytes is what a record has before its body, eventHeadBytes what an event's body has
// before the subject, and beforeBytes the body that says what a redacted event was.
const (
	headBytes      = 1 + 4
	eventHeadBytes = 8 + 8 + 2
	beforeBytes    = int64(2 * len(codec.Hash{}))
)

// Header is what an archive says of its session.
type Header struct {
	Session string     `json:"session"`
	Prefix  string     `json:"prefix"`  // of the subjects
	Written int64      `json:"written"` // Unix ms
	Count   uint64     `json:"count"`   // events
	Chain   codec.Hash `json:"chain"`   // after the last event
	Hash    codec.Hash `json:"hash"`    // of the state after the last event
	First   uint64     `json:"first"`   // sequence of the first event
	Last    uint64     `json:"last"`    // and of the last one
	Install Install    `json:"install"`
}

// Install is the install record that the session pinned.
type Install struct {
	Seq     uint64 `json:"seq"`
	Time    int64  `json:"time"`    // Unix ms
	Payload []byte `json:"payload"` // as in the log
}

// End is what an archive says at its end.
type End struct {
	Events  uint64      `json:"events"`
	Blobs   uint64      `json:"blobs"`
	Missing []codec.Ref `json:"missing,omitempty"` // named by events, and not stored
	Sum     codec.Hash  `json:"sum"`               // SHA-256 of all records before it
}

var (
	// ErrNotArchive says that a file does not begin as an archive does.
	ErrNotArchive = errors.New("it is no archive of a session: refold archive writes one")
	// ErrTruncated says that the end of a file is missing.
	ErrTruncated = errors.New("it is truncated: its end is missing; copy it again from where it is whole")
	// ErrCorrupt says that a file is not as it was written.
	ErrCorrupt = errors.New("it is corrupt: copy it again from where it is whole")
	// ErrNotFound says that the archive has no such event or blob.
	ErrNotFound = errors.New("the archive does not have it")
)

// NewerError says that a file has a later version than this program reads.
type NewerError struct{ Version int }

// Error implements error.
func (e *NewerError) Error() string {
	return fmt.Sprintf("it has version %d of the format, and this program reads up to %d: use a newer refold", e.Version, Version)
}
