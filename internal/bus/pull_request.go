package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/subjects"
)

// Subjects and headers of the pull protocol that only this file and the lanes
// need.
const (
	ackReplyPrefix     = "$JS.ACK."
	headerLastConsumer = "Nats-Last-Consumer"
	headerPendingMsgs  = "Nats-Pending-Messages"
)

// Status codes that the server answers a pull request with, on the request's
// own reply subject. All but a heartbeat end the request.
const (
	statusHeartbeat    = "100"
	statusTimeout      = "408"
	statusConflict     = "409"
	statusWrongPin     = "423"
	statusNoResponders = "503"
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
	reply string
	epoch uint64 // of the connection that delivered
}

// errOtherEpoch says that a delivery is not answered, since another connection
// brought it. The server delivers the message again.
var errOtherEpoch = errors.New("another connection delivered it")

// respond sends what a delivery is answered with. It waits for nothing. What it
// can't send is lost, since the connection buffers nothing while it is being made
// again.
func (b *Bus) respond(t token, body []byte) error {
	if b.Epoch() != t.epoch {
		return errOtherEpoch
	}
	return b.nc.Publish(t.reply, body)
}

// nakFor is the answer that offers a message again after delay.
func nakFor(delay time.Duration) []byte {
	return fmt.Appendf(nil, `-NAK {"delay":%d}`, delay.Nanoseconds())
}

// pullRequest asks a consumer for messages. We write it ourselves: the client
// library hides which pin and which inbox a request belongs to, and prefetches
// more than there is room for.
type pullRequest struct {
	Batch     int           `json:"batch"`
	MaxBytes  int           `json:"max_bytes,omitempty"`
	Expires   time.Duration `json:"expires"`
	Heartbeat time.Duration `json:"idle_heartbeat,omitempty"`
	Group     string        `json:"group,omitempty"`
	Pin       string        `json:"id,omitempty"`
}

// pull sends a request. Deliveries and statuses come on reply.
func (b *Bus) pull(stream, consumer, reply string, r pullRequest) error {
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return b.nc.PublishRequest(b.api+"CONSUMER.MSG.NEXT."+stream+"."+consumer, reply, body)
}

// subscribeReplies subscribes to inbox.1, inbox.2, …, the reply subjects of
// requests. room must be more than can be under way at once: what does not
// fit is lost, as any message on a core subscription.
func (b *Bus) subscribeReplies(room int) (inbox string, sub *nats.Subscription, msgs chan *nats.Msg, err error) {
	inbox = b.nc.NewInbox()
	msgs = make(chan *nats.Msg, room)
	sub, err = b.nc.ChanSubscribe(inbox+".*", msgs)
	return inbox, sub, msgs, err
}

func replySubject(inbox string, request uint64) string {
	return inbox + "." + strconv.FormatUint(request, 10)
}

// delivered says where a message stands: in the stream and with its consumer.
type delivered struct {
	seq         uint64 // of the stream
	consumerSeq uint64
	count       uint64 // 1 at the first delivery that the server remembers
	pending     uint64 // messages behind it
	time        time.Time
}

// errNoDelivery says that a message did not come from a consumer.
var errNoDelivery = errors.New("not delivered by a consumer")

// readDelivery reads the metadata of a message that a consumer delivered. The
// reply subject tells, never a header: a publisher may set any header.
func readDelivery(m *nats.Msg) (delivered, error) {
	if !strings.HasPrefix(m.Reply, ackReplyPrefix) {
		return delivered{}, errNoDelivery
	}
	d, ok := parseAckReply(m.Reply)
	if !ok {
		return delivered{}, errNoDelivery
	}
	return d, nil
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
	s.last, _ = strconv.ParseUint(m.Header.Get(headerLastConsumer), 10, 64)
	return s, true
}

// unsubscribe ends interest; an error means that the connection is closed,
// and interest with it.
func unsubscribe(sub *nats.Subscription) { _ = sub.Unsubscribe() }

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
	case s.code == statusNoResponders:
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
