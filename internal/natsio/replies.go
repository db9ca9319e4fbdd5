package natsio

import (
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/subjects"
)

// HeaderLastConsumer is the header of a heartbeat that tells the consumer sequence
// that was delivered last.
const HeaderLastConsumer = "Nats-Last-Consumer"

// StatusNoResponders is the status of a reply that says that nobody listens.
const StatusNoResponders = "503"

// SubscribeReplies subscribes to inbox.1, inbox.2, …, the reply subjects of
// requests. room must be more than can be under way at once: what does not
// fit is lost, as any message on a core subscription.
func (c *Conn) SubscribeReplies(room int) (inbox string, sub *nats.Subscription, msgs chan *nats.Msg, err error) {
	inbox = c.NC.NewInbox()
	msgs = make(chan *nats.Msg, room)
	sub, err = c.NC.ChanSubscribe(inbox+".*", msgs)
	return inbox, sub, msgs, err
}

// ReplySubject returns the reply subject of a request under an inbox of
// SubscribeReplies.
func ReplySubject(inbox string, request uint64) string {
	return inbox + "." + strconv.FormatUint(request, 10)
}

// Unsubscribe ends interest; an error means that the connection is closed,
// and interest with it.
func Unsubscribe(sub *nats.Subscription) { _ = sub.Unsubscribe() }

// traceParentBytes is the length of every traceparent of version 00.
const traceParentBytes = 55

// TraceParentOf returns the trace context of a message, empty if it has none of the
// right length. It is what its publisher says, and decides nothing.
func TraceParentOf(h nats.Header) string {
	if parent := h.Get(subjects.HeaderTraceParent); len(parent) == traceParentBytes {
		return parent
	}
	return ""
}
