package journal

import (
	"errors"
	"fmt"

	"github.com/refold/refold/codec"
)

// Errors that callers tell apart with errors.Is. Each says what to do.
var (
	// ErrOtherBytes: what the store holds under a blob's name is not what the
	// name says; somebody replaced it, or it is damaged.
	ErrOtherBytes = errors.New("the store holds other bytes under this name")
	// ErrTooLarge: a blob has more bytes than are taken.
	ErrTooLarge = errors.New("the blob is too large")
	// ErrUnknownOutcome: no acknowledgement came in time. What was sent may
	// be stored or not; sending the same again under the same name is safe.
	ErrUnknownOutcome = errors.New("no acknowledgement in time: it may be stored or not; sending the same again is safe")
	// ErrIDTaken: another event was published under this id within the
	// stream's duplicate window, so this one is not stored.
	ErrIDTaken = errors.New("another event has this id: use a fresh ULID")
	// ErrOvertaken: somebody else has put another value since the one that this
	// was to take the place of.
	ErrOvertaken = errors.New("another value was put since: read it, and try again")
)

// ViolationError says that a name is taken by other bytes than those that are
// to be asked: two folds of one history differ. The session must be
// quarantined; its events are kept. It tells the hashes of both: what is stored
// is gone within the hour, and what was stopped for it stays.
type ViolationError struct {
	Subject string
	Stored  []byte // what the stream holds
	Wanted  []byte // what was to be stored
}

func (e *ViolationError) Error() string {
	return fmt.Sprintf("%s: expected the %d bytes that are stored, of the hash %s, found that this state asks for %d, of the hash %s: the session folded differently before",
		e.Subject, len(e.Stored), codec.Sum(e.Stored), len(e.Wanted), codec.Sum(e.Wanted))
}

// UnreadableError says that the server has a name taken and can't read what is
// stored under it: a file of the stream is damaged. The session must be
// quarantined; no other is concerned.
type UnreadableError struct {
	Stream, Subject string
	Err             error // what the server says to a publish
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("%s: the server says that this name is taken (%v), and does not find what is stored under it: a file of %s is damaged. Check the server's disk, stop all daemons, delete %s, start them again, and release the session",
		e.Subject, e.Err, e.Stream, e.Stream)
}

func (e *UnreadableError) Unwrap() error { return e.Err }
