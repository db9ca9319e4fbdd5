package natsio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Errors that callers distinguish with errors.Is.
var (
	// ErrNoServer: no server answers at the address.
	ErrNoServer = errors.New("no NATS server answers")
	// ErrUnauthorized: the server refuses the credentials.
	ErrUnauthorized = errors.New("the NATS server refuses these credentials")
	// ErrNoJetStream: the server or the account has JetStream off.
	ErrNoJetStream = errors.New("JetStream is not enabled")
	// ErrStreamFull: a limit of the stream or the account is reached.
	ErrStreamFull = errors.New("the stream takes no more: raise its limits, or the account's, and try again")
	// ErrNoRoom: the server has no storage left; it is an ErrStreamFull too. A server
	// whose disk was full stores nothing until it restarts, even with space again.
	ErrNoRoom error = noRoom{}
	// ErrAccountLimit: a limit of the account's JetStream is reached, or a stream has as
	// many consumers as it may have, for which the server has the same code; it is an
	// ErrStreamFull too. The server's disk may have room.
	ErrAccountLimit error = accountLimit{}
	// ErrConnections: the server, or the account, has as many connections as it may have.
	ErrConnections = errors.New("the NATS server takes no more connections")
	// ErrNoStream: the stream does not exist; nobody provisioned it.
	ErrNoStream = errors.New("the stream does not exist: start a session-actor once, or create it from streams.conf")
	// ErrNotFound: there is no such message, key or blob.
	ErrNotFound = errors.New("not found")
	// ErrClosed: the connection was closed on this side.
	ErrClosed = errors.New("the connection is closed")
)

type noRoom struct{}

func (noRoom) Error() string {
	return "the NATS server has no room: make room on its disk, or raise its max_file_store, and start it again; nothing that was acknowledged is lost"
}

func (noRoom) Is(target error) bool { return target == ErrStreamFull }

type accountLimit struct{}

func (accountLimit) Error() string {
	return "a JetStream limit of the account is reached, or the max_consumers of a stream: raise it (nats account info and nats stream info show the limits), or remove what the account no longer needs"
}

func (accountLimit) Is(target error) bool { return target == ErrStreamFull }

// MaxPayloadError means that a payload exceeds a limit. Nothing was stored, and a
// retry never helps.
type MaxPayloadError struct {
	Subject string
	Bytes   int
	Limit   int // 0: the stream's own, which the server doesn't report
}

func (e *MaxPayloadError) Error() string {
	if e.Limit == 0 {
		return fmt.Sprintf("%s: %d bytes exceed the max_msg_size of the stream: raise it, or store large content as a blob first", e.Subject, e.Bytes)
	}
	return fmt.Sprintf("%s: %d bytes exceed the limit of %d bytes (%d KiB): store large content as a blob first",
		e.Subject, e.Bytes, e.Limit, e.Limit>>10)
}

// Fits returns a *MaxPayloadError if a payload exceeds limit. If it exceeds the limit
// of the connected server, and that is too low for Refold, the error is Retryable: the
// message is right, and an operator must raise the server's limit.
func (c *Conn) Fits(subject string, bytes, limit int) error {
	if present := int(c.NC.MaxPayload()); bytes <= limit && bytes > present {
		if err := c.takesLittle(); err != nil {
			return err
		}
		limit = present
	}
	if bytes > limit {
		return &MaxPayloadError{Subject: subject, Bytes: bytes, Limit: limit}
	}
	return nil
}

// PayloadError returns the error of Fits if err means that a message is too large
// for the connection or its stream, and any other error unchanged.
func (c *Conn) PayloadError(err error, subject string, bytes int) error {
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		if little := c.takesLittle(); little != nil {
			return little
		}
		return &MaxPayloadError{Subject: subject, Bytes: bytes, Limit: int(c.NC.MaxPayload())}
	case CodeOf(err) == codeTooLarge, CodeOf(err) == codeHeaderTooLarge:
		return &MaxPayloadError{Subject: subject, Bytes: bytes}
	}
	return err
}

// VersionError means that the server is too old.
type VersionError struct{ Server, Least string }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the NATS server is %s, and Refold needs %s or later: update nats-server", e.Server, e.Least)
}

// PermissionError is an operation that the server denies this user.
type PermissionError struct {
	Op      string // publish or subscribe
	Subject string
	Lacks   string // the right, and the roles that have it, for people; empty: no role has it
}

func (e *PermissionError) Error() string {
	lacks := ""
	if e.Lacks != "" {
		lacks = "; it lacks " + e.Lacks
	}
	return fmt.Sprintf("the NATS server does not allow this user to %s %s%s: connect as one that may (--context, NATS_CONTEXT), or grant it in the server's configuration", e.Op, e.Subject, lacks)
}

// Error codes of the JetStream API that Refold acts on. No other place knows them.
const (
	codeAccountLimits     jetstream.ErrorCode = 10002
	CodeNoPeers           jetstream.ErrorCode = 10005
	codeUnavailable       jetstream.ErrorCode = 10008
	codeNotLeader         jetstream.ErrorCode = 10009
	CodeConsumerMissing   jetstream.ErrorCode = 10014
	codeNoResources       jetstream.ErrorCode = 10023
	codeMemoryLimit       jetstream.ErrorCode = 10028
	codeNoMessage         jetstream.ErrorCode = 10037
	codeOffForAccount     jetstream.ErrorCode = 10039
	CodeStorageLimit      jetstream.ErrorCode = 10047
	codeTooLarge          jetstream.ErrorCode = 10054
	CodeInvalidConfig     jetstream.ErrorCode = 10052
	codeStreamDiffers     jetstream.ErrorCode = 10058
	CodeStreamMissing     jetstream.ErrorCode = 10059
	codeWrongLast         jetstream.ErrorCode = 10071
	codeOff               jetstream.ErrorCode = 10076
	codeStoreFailed       jetstream.ErrorCode = 10077
	codeHeaderTooLarge    jetstream.ErrorCode = 10097
	codeOffline           jetstream.ErrorCode = 10118
	CodeConsumerExists    jetstream.ErrorCode = 10148
	codeDuplicateInFlight jetstream.ErrorCode = 10158
	codeWrongLastConstant jetstream.ErrorCode = 10164
	CodeOverlap           jetstream.ErrorCode = 10065
	CodeNotClustered      jetstream.ErrorCode = 10074
	codeConsumersMax      jetstream.ErrorCode = 10026
	codeStreamsMax        jetstream.ErrorCode = 10027
	CodeNoBatches         jetstream.ErrorCode = 10174
	CodeBatchesOpen       jetstream.ErrorCode = 10210
)

// perSubjectFull is the text of code 10077 if the subject has its one message
// already. The same code also means that the stream is full.
const perSubjectFull = "maximum messages per subject"

// apiError returns the JetStream API error in err, nil if there is none.
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

// CodeOf returns the JetStream error code in err, 0 if there is none.
func CodeOf(err error) jetstream.ErrorCode {
	if api := apiError(err); api != nil {
		return api.ErrorCode
	}
	return 0
}

// IsConflict reports whether the subject may hold a message already: the caller
// reads and compares it. A single server and a cluster use different codes.
func IsConflict(err error) bool {
	switch CodeOf(err) {
	case codeWrongLast, codeWrongLastConstant:
		return true
	case codeStoreFailed:
		return strings.Contains(apiError(err).Description, perSubjectFull)
	default:
		return false
	}
}

// IsTaken reports whether err is a conflict with a stored message, not with one in
// flight.
func IsTaken(err error) bool { return IsConflict(err) && CodeOf(err) != codeWrongLastConstant }

// IsTransient reports whether the same request may succeed later. Whether this one
// took effect is unknown then.
func IsTransient(err error) bool {
	switch CodeOf(err) {
	case codeUnavailable, codeNotLeader, codeDuplicateInFlight, codeOffline:
		return true
	case codeStreamDiffers, CodeConsumerExists:
		return true // another process created it first: the retry reads it
	case 0:
	default:
		return false
	}
	for _, known := range []error{
		nats.ErrTimeout, nats.ErrNoResponders, nats.ErrDisconnected, nats.ErrConnectionReconnecting,
		nats.ErrReconnectBufExceeded, nats.ErrNoServers, nats.ErrStaleConnection,
		jetstream.ErrNoStreamResponse, jetstream.ErrAsyncPublishTimeout, context.DeadlineExceeded,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	var again Retryable
	var network net.Error // a write to a connection that just broke
	return errors.As(err, &again) || errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe)
}

// IsLeaderless reports whether a stream, or the whole cluster, has no leader now.
func IsLeaderless(err error) bool {
	return CodeOf(err) == codeUnavailable || CodeOf(err) == codeOffline
}

// Typed turns an error of nats.go into one of this package and keeps the cause. It
// returns other errors unchanged.
func Typed(err error) error {
	kind := func(known error) error { return fmt.Errorf("%w (%w)", known, err) }
	switch CodeOf(err) {
	case CodeStreamMissing:
		return kind(ErrNoStream)
	case codeNoMessage, CodeConsumerMissing:
		return kind(ErrNotFound)
	case codeOff, codeOffForAccount:
		return kind(ErrNoJetStream)
	case codeNoResources:
		return kind(ErrNoRoom)
	case codeAccountLimits, codeConsumersMax, codeStreamsMax:
		return kind(ErrAccountLimit)
	case codeMemoryLimit, CodeStorageLimit, codeStoreFailed:
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
	case isUnauthorized(err):
		return kind(ErrUnauthorized)
	default:
		return err
	}
}

// isUnauthorized reports whether the server does not accept the credentials, or no more.
func isUnauthorized(err error) bool {
	return errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) || errors.Is(err, nats.ErrAccountAuthExpired) || errors.Is(err, nats.ErrAuthRevoked)
}
