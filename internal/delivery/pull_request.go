package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// headerPendingMsgs is the header with the number of messages that a request did not get.
const headerPendingMsgs = "Nats-Pending-Messages"

// Status codes of the server on the reply subject of a pull request. All except a
// heartbeat end the request.
const (
	statusHeartbeat = "100"
	statusTimeout   = "408"
	statusConflict  = "409"
	statusWrongPin  = "423"
)

// Texts that distinguish conflicts.
const (
	conflictTooLarge  = "Message Size Exceeds MaxBytes"
	conflictCompleted = "Batch Completed"
	conflictDeleted   = "Consumer Deleted"
)

// Answers to a delivery.
var (
	ackDone     = []byte("+ACK")
	ackProgress = []byte("+WPI")
)

// token is the right to answer a delivery.
type token struct {
	reply       string
	incarnation uint64 // of the connection that delivered
}

// errOtherConnection means that a delivery can't be answered, since it came over an
// earlier connection. The server delivers the message again.
var errOtherConnection = errors.New("another connection delivered it")

// respond sends the answer to a delivery without waiting. The connection buffers
// nothing while it reconnects, so an answer may be lost.
func (s *Source) respond(t token, body []byte) error {
	if s.conn.CurrentIncarnation() != t.incarnation {
		return errOtherConnection
	}
	return s.conn.NC.Publish(t.reply, body)
}

// nakFor returns the answer that makes the server deliver again after delay.
func nakFor(delay time.Duration) []byte {
	return fmt.Appendf(nil, `-NAK {"delay":%d}`, delay.Nanoseconds())
}

// PullRequest requests messages of a consumer. The client library's pull is not used:
// it hides the pin and the inbox of a request, and prefetches more than there is room
// for.
type PullRequest struct {
	Batch     int           `json:"batch"`
	MaxBytes  int           `json:"max_bytes,omitempty"`
	Expires   time.Duration `json:"expires"`
	Heartbeat time.Duration `json:"idle_heartbeat,omitempty"`
	Group     string        `json:"group,omitempty"`
	Pin       string        `json:"id,omitempty"`
}

// inbox sends the pull requests of one subscription, and receives what the server sends
// for them: deliveries, and statuses of requests.
type inbox struct {
	prefix string // of the requests' reply subjects
	msgs   <-chan *nats.Msg
	stop   func() // unsubscribes
	pull   func(reply string, r PullRequest) error
	sent   uint64 // number of the last request
}

func (in *inbox) ask(r PullRequest) error {
	in.sent++
	return in.pull(natsio.ReplySubject(in.prefix, in.sent), r)
}

// pull sends a request. Deliveries and statuses arrive on reply.
func (s *Source) pull(stream, consumer, reply string, r PullRequest) error {
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return s.conn.NC.PublishRequest(s.conn.API+"CONSUMER.MSG.NEXT."+stream+"."+consumer, reply, body)
}

// pullStatus is a status message of the server about a request.
type pullStatus struct {
	request uint64 // number of the request
	code    string
	text    string
	left    int    // messages that the request did not get
	last    uint64 // of a heartbeat: last delivered consumer sequence
}

// status parses a status message. ok is false if m is not one for a request of this
// inbox: the headers of a delivery are not parsed.
func (in *inbox) status(m *nats.Msg) (s pullStatus, ok bool) {
	number, found := strings.CutPrefix(m.Subject, in.prefix+".")
	if !found {
		return pullStatus{}, false
	}
	if s.code = m.Header.Get(subjects.HeaderStatus); s.code == "" {
		return pullStatus{}, false
	}
	s.request, _ = strconv.ParseUint(number, 10, 64)
	s.text = m.Header.Get(subjects.HeaderDescription)
	s.left, _ = strconv.Atoi(m.Header.Get(headerPendingMsgs))
	s.last, _ = strconv.ParseUint(m.Header.Get(natsio.HeaderLastConsumer), 10, 64)
	return s, true
}

// errTooLarge: the next message is larger than the request's bytes.
var errTooLarge = errors.New("the next message exceeds the bytes asked for")

// errDeleted: the consumer was deleted while the request was open.
var errDeleted = errors.New("the consumer was deleted")

// fault returns why a request ended early; nil if it expired or was fulfilled.
func (s pullStatus) fault() error {
	switch {
	case s.code == statusTimeout, s.code == statusConflict && s.text == conflictCompleted:
		return nil
	case s.code == statusConflict && s.text == conflictTooLarge:
		return errTooLarge
	case s.code == statusConflict && s.text == conflictDeleted:
		return errDeleted
	case s.code == natsio.StatusNoResponders:
		return nats.ErrNoResponders
	default:
		return fmt.Errorf("%s %s", s.code, s.text)
	}
}

// untilDone returns a context that ends with ctx or when done is closed. Without a call
// of cancel a goroutine leaks.
func untilDone(ctx context.Context, done <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-done:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
