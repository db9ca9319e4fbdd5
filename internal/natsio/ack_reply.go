package natsio

import (
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// AckReplyPrefix begins the reply subject of every message that a consumer delivered.
const AckReplyPrefix = "$JS.ACK."

// The two forms of an ack subject, without and with a domain:
//
//	$JS.ACK.<stream>.<consumer>.<deliveries>.<seq>.<consumer seq>.<time>.<pending>
//	$JS.ACK.<domain>.<account>.<stream>.<consumer>.<deliveries>.<seq>.<consumer seq>.<time>.<pending>[.<random>]
const (
	ackTokens        = 9
	ackTokensDomain  = 11 // at least
	ackNumbers       = 4  // index of the first number
	ackNumbersDomain = 6
)

// noDomain begins an ack subject of the second form if the server's domain has no name.
const noDomain = AckReplyPrefix + "_."

// acksCross reports whether consumers of the same name in other domains receive what is
// published on an ack subject.
func acksCross(reply string) bool {
	return strings.Count(reply, ".")+1 == ackTokens || strings.HasPrefix(reply, noDomain)
}

// ParseAckReply parses the reply subject of a message that a consumer delivered.
// It runs for every delivered message and allocates nothing.
func ParseAckReply(reply string) (d AckReply, ok bool) {
	skip, tokens := ackNumbers, strings.Count(reply, ".")+1
	switch {
	case tokens >= ackTokensDomain:
		skip = ackNumbersDomain
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

// AckReply is a message's position in its stream and with its consumer.
type AckReply struct {
	Seq         uint64 // of the stream
	ConsumerSeq uint64
	Count       uint64 // 1 at the first delivery that the server remembers
	Pending     uint64 // messages not yet delivered to the consumer
	Time        time.Time
}

// ReadAckReply reads the metadata of a message that a consumer delivered; ok is
// false if none did. It trusts only the reply subject, since a publisher may set
// any header.
func ReadAckReply(m *nats.Msg) (d AckReply, ok bool) {
	if !strings.HasPrefix(m.Reply, AckReplyPrefix) {
		return AckReply{}, false
	}
	return ParseAckReply(m.Reply)
}
