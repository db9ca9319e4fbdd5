package natsio

import (
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/subjects"
)

// HeaderLastConsumer is the header of a heartbeat with the consumer sequence of the
// last delivery.
const HeaderLastConsumer = "Nats-Last-Consumer"

// StatusNoResponders is the status of a reply if the subject has no subscriber.
const StatusNoResponders = "503"

// SubscribeReplies subscribes to inbox.1, inbox.2, …, the reply subjects of
// requests. room must exceed the number of outstanding messages: one that does not
// fit is lost, as on any core subscription.
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

// traceParentBytes is the length of every traceparent of version 00.
const traceParentBytes = 55

// TraceParentOf returns the trace context of a message, empty if it has none of the
// right length. The publisher chose it, so nothing may depend on it.
func TraceParentOf(h nats.Header) string {
	if parent := h.Get(subjects.HeaderTraceParent); len(parent) == traceParentBytes {
		return parent
	}
	return ""
}

// replyMux receives the replies to all direct reads on one subscription. A
// subscription for each read would cost more than most reads do.
type replyMux struct {
	mu    sync.Mutex
	inbox string // prefix of the reply subjects, with its dot; empty: not subscribed yet
	next  uint64
	open  map[string]chan *nats.Msg // by the first token after inbox
}

// Await returns a reply subject, and a channel of the messages on it and on subjects
// below it. room must exceed the number of replies: messages that don't fit are lost,
// as on any core subscription. The caller must call done.
func (c *Conn) Await(room int) (reply string, msgs <-chan *nats.Msg, done func(), err error) {
	a := &c.mux
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.inbox == "" {
		inbox := c.NC.NewInbox() + "."
		sub, err := c.NC.Subscribe(inbox+">", a.deliver)
		if err != nil {
			return "", nil, nil, err
		}
		if err := sub.SetPendingLimits(-1, -1); err != nil {
			return "", nil, nil, err
		}
		a.inbox, a.open = inbox, make(map[string]chan *nats.Msg)
	}
	a.next++
	token := strconv.FormatUint(a.next, 36)
	ch := make(chan *nats.Msg, room)
	a.open[token] = ch
	return a.inbox + token, ch, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.open, token)
	}, nil
}

// deliver sends a reply to the caller that waits for it.
func (a *replyMux) deliver(m *nats.Msg) {
	a.mu.Lock()
	token, _, _ := strings.Cut(m.Subject[len(a.inbox):], ".")
	ch := a.open[token]
	a.mu.Unlock()
	if ch == nil {
		return // the caller has stopped waiting
	}
	select {
	case ch <- m:
	default: // more than the caller made room for; it sees a gap
	}
}
