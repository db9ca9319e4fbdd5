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

// headerPendingMsgs is the header that tells how many messages a request did not get.
const headerPendingMsgs = "Nats-Pending-Messages"

// Status codes that the server answers a pull request with, on the request's
// own reply subject. All but a heartbeat end the request.
const (
	statusHeartbeat = "100"
	statusTimeout   = "408"
	statusConflict  = "409"
	statusWrongPin  = "423"
)

// Texts that tell conflicts apart.
const (
	conflictTooLarge  = "Message Size Exceeds MaxBytes"
	conflictCompleted = "Batch Completed"
	conflictDeleted   = "Consumer Deleted"
)

// What a delivery is answered with.
var (
	ackDone     = []byte("+ACK")
	ackProgress = []byte("+WPI")
)

// token is the right to answer a delivery.
type token struct {
	reply       string
	incarnation uint64 // of the connection that delivered
}

// errOtherConnection says that a delivery is not answered, since another connection
// brought it. The server delivers the message again.
var errOtherConnection = errors.New("another connection delivered it")

// respond sends what a delivery is answered with. It waits for nothing. What it
// can't send is lost, since the connection buffers nothing while it is being made
// again.
func (s *Source) respond(t token, body []byte) error {
	if s.conn.Incarnation() != t.incarnation {
		return errOtherConnection
	}
	return s.conn.NC.Publish(t.reply, body)
}

// nakFor is the answer that offers a message again after delay.
func nakFor(delay time.Duration) []byte {
	return fmt.Appendf(nil, `-NAK {"delay":%d}`, delay.Nanoseconds())
}

// PullRequest asks a consumer for messages. We write it ourselves: the client
// library hides which pin and which inbox a request belongs to, and prefetches
// more than there is room for.
type PullRequest struct {
	Batch     int           `json:"batch"`
	MaxBytes  int           `json:"max_bytes,omitempty"`
	Expires   time.Duration `json:"expires"`
	Heartbeat time.Duration `json:"idle_heartbeat,omitempty"`
	Group     string        `json:"group,omitempty"`
	Pin       string        `json:"id,omitempty"`
}

// pull sends a request. Deliveries and statuses come on reply.
func (s *Source) pull(stream, consumer, reply string, r PullRequest) error {
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return s.conn.NC.PublishRequest(s.conn.API+"CONSUMER.MSG.NEXT."+stream+"."+consumer, reply, body)
}

// pullStatus is what the server says about a request.
type pullStatus struct {
	request uint64 // number of the request
	code    string
	text    string
	left    int    // messages that the request did not get
	last    uint64 // heartbeat: last consumer sequence that was delivered
}

// readStatus reads a message that is no delivery. ok is false if it is about
// no request of inbox.
func readStatus(inbox string, m *nats.Msg) (s pullStatus, ok bool) {
	if s.code = m.Header.Get(subjects.HeaderStatus); s.code == "" {
		return pullStatus{}, false
	}
	number, found := strings.CutPrefix(m.Subject, inbox+".")
	if !found {
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

// fault returns why a request ended early; nil if it ended in a usual way:
// its time was over, or it got what it asked for.
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

// untilDone returns a context that ends with ctx or when done is closed. Call
// cancel, or a goroutine stays.
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
