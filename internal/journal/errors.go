package journal

import (
	"errors"
	"fmt"

	"github.com/refold/refold/codec"
)

// Errors that callers distinguish with errors.Is.
var (
	// ErrOtherBytes: the stored bytes of a blob don't have the hash in its name; they
	// were replaced or damaged.
	ErrOtherBytes = errors.New("the store holds other bytes under this name")
	// ErrTooLarge: a blob exceeds the reader's or writer's limit.
	ErrTooLarge = errors.New("the blob is too large")
	// ErrUnknownOutcome: no acknowledgement arrived in time. The message may be stored
	// or not; sending it again under the same name is safe.
	ErrUnknownOutcome = errors.New("no acknowledgement in time: it may be stored or not; sending the same again is safe")
	// ErrIDTaken: another event of the session has this id within the stream's duplicate window, so
	// this one is not stored.
	ErrIDTaken = errors.New("another event has this id: use a fresh ULID")
	// ErrOvertaken: the value was replaced after the caller read it.
	ErrOvertaken = errors.New("another value was put since: read it, and try again")
)

// ViolationError means that an effect's name holds other bytes than this fold
// published: two folds of one history differ. The session must be quarantined; its
// events are kept. The text has both hashes, since the stored effect expires within the
// hour and the quarantine does not.
type ViolationError struct {
	Subject string
	Stored  []byte // what the stream holds
	Wanted  []byte // what was to be stored
}

func (e *ViolationError) Error() string {
	return fmt.Sprintf("%s: expected the %d bytes that are stored, of the hash %s, found that this state asks for %d, of the hash %s: the session folded differently before",
		e.Subject, len(e.Stored), codec.Sum(e.Stored), len(e.Wanted), codec.Sum(e.Wanted))
}

// UnreadableError means that a name is taken, and that the server can't read the
// message under it: a file of the stream is damaged. The session must be quarantined;
// other sessions are not affected.
type UnreadableError struct {
	Stream, Subject string
	Err             error // the server's answer to a publish
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("%s: the server reports that this name is taken (%v), and does not find the message under it: a file of %s is damaged. Check the server's disk, stop all daemons, delete %s, start them again, and release the session",
		e.Subject, e.Err, e.Stream, e.Stream)
}

func (e *UnreadableError) Unwrap() error { return e.Err }
