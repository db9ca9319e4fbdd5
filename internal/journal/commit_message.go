package journal

import (
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/subjects"
)

// messageBuffer is what a committer hands to the connection, which keeps nothing of it:
// the next write is sent with the same message and the same headers. A new map
// of headers for each would be a quarter of what storing a message allocates.
type messageBuffer struct {
	msg    nats.Msg
	values [headersMost][1]string
	used   int
}

// headersMost is how many headers a write can have: its fence or its id, what its
// data is, its trace context or its schedule's two, those of its own, and three of a
// batch.
const (
	headersMost = 6 + headersOwn
	headersOwn  = 2
)

// of returns the message that w is sent as, until the next call.
func (l *messageBuffer) of(w *write, reply string) *nats.Msg {
	if l.msg.Header == nil {
		l.msg.Header = make(nats.Header, headersMost)
	}
	clear(l.msg.Header)
	l.used = 0
	l.msg.Subject, l.msg.Reply, l.msg.Data = w.subject, reply, w.data
	if w.fenced {
		l.set(subjects.HeaderExpectLastSubject, strconv.FormatUint(w.after, 10))
	}
	if w.id != "" {
		l.set(subjects.HeaderMsgID, w.id)
	}
	if w.msgpack {
		l.set(subjects.HeaderContentType, subjects.ContentTypeMsgpack)
	}
	if w.traceParent != "" {
		l.set(subjects.HeaderTraceParent, w.traceParent)
	}
	if w.schedule != "" {
		l.set(subjects.HeaderSchedule, w.schedule)
		l.set(subjects.HeaderScheduleTarget, w.target)
	}
	for _, h := range w.headers {
		l.set(h[0], h[1])
	}
	return &l.msg
}

// set sets one more header of the message.
func (l *messageBuffer) set(name, value string) {
	v := &l.values[l.used]
	l.used++
	v[0] = value
	l.msg.Header[name] = v[:]
}
