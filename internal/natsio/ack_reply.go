package natsio

import (
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// AckReplyPrefix begins the reply subject of every message that a consumer delivered.
const AckReplyPrefix = "$JS.ACK."

// What an ack subject holds, from the number of deliveries on:
//
//	$JS.ACK.<stream>.<consumer>.<deliveries>.<seq>.<consumer seq>.<time>.<pending>
//	$JS.ACK.<domain>.<account>.<stream>.<consumer>.<deliveries>.<seq>.<consumer seq>.<time>.<pending>[.<random>]
const (
	ackTokens         = 9
	ackTokensDomain   = 11 // at least
	ackNumbersAt      = 4
	ackNumbersAtAfter = 6 // with a domain
)

// ParseAckReply reads the reply subject of a message that a consumer delivered.
// Every message of every stream has one: it allocates nothing.
func ParseAckReply(reply string) (d AckReply, ok bool) {
	skip, tokens := ackNumbersAt, strings.Count(reply, ".")+1
	switch {
	case tokens >= ackTokensDomain:
		skip = ackNumbersAtAfter
	case tokens != ackTokens:
		return AckReply{}, false
	}
	for range skip {
		_, reply, _ = strings.Cut(reply, ".")
	}
	var nanoseconds uint64
	for _, number := range [...]*uint64{&d.Count, &d.Seq, &d.ConsumerSeq, &nanoseconds, &d.Pending} {
		var token string
		var err error
		token, reply, _ = strings.Cut(reply, ".")
		if *number, err = strconv.ParseUint(token, 10, 63); err != nil {
			return AckReply{}, false
		}
	}
	d.Time = time.Unix(0, int64(nanoseconds))
	return d, true
}

// AckReply says where a message stands: in the stream and with its consumer.
type AckReply struct {
	Seq         uint64 // of the stream
	ConsumerSeq uint64
	Count       uint64 // 1 at the first delivery that the server remembers
	Pending     uint64 // messages behind it
	Time        time.Time
}

// ReadAckReply reads the metadata of a message that a consumer delivered. The
// reply subject tells, never a header: a publisher may set any header. ok is false if
// no consumer delivered it.
func ReadAckReply(m *nats.Msg) (d AckReply, ok bool) {
	if !strings.HasPrefix(m.Reply, AckReplyPrefix) {
		return AckReply{}, false
	}
	return ParseAckReply(m.Reply)
}
