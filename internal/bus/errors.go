package bus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/codec"
)

// Errors that callers tell apart with errors.Is. Each says what to do.
var (
	// ErrNoServer: nothing answers at the address.
	ErrNoServer = errors.New("no NATS server answers")
	// ErrUnauthorized: the server refuses the credentials.
	ErrUnauthorized = errors.New("the NATS server refuses these credentials")
	// ErrNoJetStream: the server or the account has JetStream off.
	ErrNoJetStream = errors.New("JetStream is not enabled")
	// ErrStreamFull: a limit of the stream or the account is reached.
	ErrStreamFull = errors.New("the stream takes no more: raise its limits, or the account's, and try again")
	// ErrNoRoom: the server has no room for what it should store; it is an
	// ErrStreamFull too. One whose disk was full takes nothing more, with room
	// again or without, until it is started again.
	ErrNoRoom error = noRoom{}
	// ErrNoStream: the stream is not there; nobody provisioned it.
	ErrNoStream = errors.New("the stream does not exist: start a session-actor once, or create it from streams.conf")
	// ErrNotFound: no message is at that sequence or subject, no such key or blob.
	ErrNotFound = errors.New("not found")
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
	// ErrClosed: the connection was closed on this side.
	ErrClosed = errors.New("the connection is closed")
)

type noRoom struct{}

func (noRoom) Error() string {
	return "the NATS server has no room: make room on its disk, or raise its max_file_store, and start it again; nothing that was acknowledged is lost"
}

func (noRoom) Is(target error) bool { return target == ErrStreamFull }

// MaxPayloadError says that a payload is larger than may be sent. Nothing was
// sent, and sending it again never helps.
type MaxPayloadError struct {
	Subject string
	Bytes   int
	Limit   int // 0: the stream's own, which the server doesn't tell
}

func (e *MaxPayloadError) Error() string {
	if e.Limit == 0 {
		return fmt.Sprintf("%s: %d bytes exceed the max_msg_size of the stream: raise it, or store large content as a blob first", e.Subject, e.Bytes)
	}
	return fmt.Sprintf("%s: %d bytes exceed the limit of %d bytes (%d KiB): store large content as a blob first",
		e.Subject, e.Bytes, e.Limit, e.Limit>>10)
}

// VersionError says that a server is too old.
type VersionError struct{ Server, Least string }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the NATS server is %s, and Refold needs %s or later: update nats-server", e.Server, e.Least)
}

// PermissionError says what the server does not allow this user.
type PermissionError struct {
	Op      string // publish or subscribe
	Subject string
}

func (e *PermissionError) Error() string {
	return fmt.Sprintf("the NATS server does not allow this user to %s %s: connect as one that may (--context, NATS_CONTEXT), or grant it in the server's configuration", e.Op, e.Subject)
}

// ImmutableError says that a stream or consumer on the server differs from
// streams.conf in what must not change while it lives. Nothing was changed.
type ImmutableError struct {
	Name   string // stream, or stream > consumer
	Key    string // name in the JetStream API
	Server string // value on the server
	Conf   string // value in streams.conf
}

func (e *ImmutableError) Error() string {
	return fmt.Sprintf("%s has %s %s on the server, and streams.conf says %s: this can't change while it exists; restore the old value, or use another --prefix",
		e.Name, e.Key, e.Server, e.Conf)
}

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

// Error codes of the JetStream API that this package acts on. This is the only
// place that knows them.
const (
	codeAccountLimits     jetstream.ErrorCode = 10002
	codeNoPeers           jetstream.ErrorCode = 10005
	codeUnavailable       jetstream.ErrorCode = 10008
	codeNotLeader         jetstream.ErrorCode = 10009
	codeNoResources       jetstream.ErrorCode = 10023
	codeConsumerMissing   jetstream.ErrorCode = 10014
	codeMemoryLimit       jetstream.ErrorCode = 10028
	codeNoMessage         jetstream.ErrorCode = 10037
	codeOffForAccount     jetstream.ErrorCode = 10039
	codeStorageLimit      jetstream.ErrorCode = 10047
	codeTooLarge          jetstream.ErrorCode = 10054
	codeStreamDiffers     jetstream.ErrorCode = 10058
	codeStreamMissing     jetstream.ErrorCode = 10059
	codeWrongLast         jetstream.ErrorCode = 10071
	codeOff               jetstream.ErrorCode = 10076
	codeStoreFailed       jetstream.ErrorCode = 10077
	codeHeaderTooLarge    jetstream.ErrorCode = 10097
	codeOffline           jetstream.ErrorCode = 10118
	codeConsumerExists    jetstream.ErrorCode = 10148
	codeDuplicateInFlight jetstream.ErrorCode = 10158
	codeWrongLastConstant jetstream.ErrorCode = 10164
	codeNoBatches         jetstream.ErrorCode = 10174
	codeBatchesOpen       jetstream.ErrorCode = 10210
)

// perSubjectFull is how 10077 says that the subject has its one message; the
// same code says that the stream is full.
const perSubjectFull = "maximum messages per subject"

// apiError returns what JetStream answered, nil if err is no answer of it.
func apiError(err error) *jetstream.APIError {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return api
	}
	var js jetstream.JetStreamError
	if errors.As(err, &js) {
		return js.APIError()
	}
	return nil
}

func codeOf(err error) jetstream.ErrorCode {
	if api := apiError(err); api != nil {
		return api.ErrorCode
	}
	return 0
}

// isConflict reports that the subject may hold a message already: look, and
// compare. A single server and a cluster say it with different codes.
func isConflict(err error) bool {
	switch codeOf(err) {
	case codeWrongLast, codeWrongLastConstant:
		return true
	case codeStoreFailed:
		return strings.Contains(apiError(err).Description, perSubjectFull)
	default:
		return false
	}
}

// isTaken reports a conflict with what is stored, not with what is in flight.
func isTaken(err error) bool { return isConflict(err) && codeOf(err) != codeWrongLastConstant }

// isTransient reports that the same request may succeed a little later, and
// that whether this one did is unknown.
func isTransient(err error) bool {
	switch codeOf(err) {
	case codeUnavailable, codeNotLeader, codeDuplicateInFlight, codeOffline:
		return true
	case codeStreamDiffers, codeConsumerExists:
		return true // somebody else created it first: look again
	case 0:
	default:
		return false
	}
	for _, known := range []error{
		nats.ErrTimeout, nats.ErrNoResponders, nats.ErrDisconnected, nats.ErrConnectionReconnecting,
		nats.ErrReconnectBufExceeded, nats.ErrNoServers, nats.ErrStaleConnection,
		jetstream.ErrNoStreamResponse, jetstream.ErrAsyncPublishTimeout, context.DeadlineExceeded,
		errReconnected, errBrokenBatch, errBucketThere,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	var network net.Error // a write to a connection that just broke
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe)
}

// typed turns what nats.go returned into an error of this package, and keeps
// the cause. Errors that it does not know come back as they are.
func typed(err error) error {
	kind := func(known error) error { return fmt.Errorf("%w (%w)", known, err) }
	switch codeOf(err) {
	case codeStreamMissing:
		return kind(ErrNoStream)
	case codeNoMessage, codeConsumerMissing:
		return kind(ErrNotFound)
	case codeOff, codeOffForAccount:
		return kind(ErrNoJetStream)
	case codeNoResources:
		return kind(ErrNoRoom)
	case codeAccountLimits, codeMemoryLimit, codeStorageLimit, codeStoreFailed:
		return kind(ErrStreamFull)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, nats.ErrConnectionClosed):
		return kind(ErrClosed)
	case errors.Is(err, jetstream.ErrBucketNotFound):
		return kind(ErrNoStream)
	case errors.Is(err, jetstream.ErrMsgNotFound), errors.Is(err, jetstream.ErrKeyNotFound), errors.Is(err, jetstream.ErrObjectNotFound):
		return kind(ErrNotFound)
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked), errors.Is(err, nats.ErrAccountAuthExpired):
		return kind(ErrUnauthorized)
	default:
		return err
	}
}
