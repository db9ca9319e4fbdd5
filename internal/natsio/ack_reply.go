package natsio

import (
	"math"
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
	ackNumbersAtAfter = 6  // with a domain
	numberDigitsMax   = 19 // of an int64; a uint64 holds all numbers of so many
)

// ParseAckReply reads the reply subject of a message that a consumer delivered.
// Every message of every stream has one: it allocates nothing.
func ParseAckReply(reply string) (d AckReply, ok bool) {
	at, tokens := ackNumbersAt, strings.Count(reply, ".")+1
	switch {
	case tokens >= ackTokensDomain:
		at = ackNumbersAtAfter
	case tokens != ackTokens:
		return AckReply{}, false
	}
	for range at {
		reply = reply[strings.IndexByte(reply, '.')+1:]
	}
	var nanoseconds uint64
	for _, number := range [...]*uint64{&d.Count, &d.Seq, &d.ConsumerSeq, &nanoseconds, &d.Pending} {
		var digits int
		if *number, digits = leadingNumber(reply); digits == 0 || digits < len(reply) && reply[digits] != '.' {
			return AckReply{}, false
		}
		reply = reply[min(digits+1, len(reply)):]
	}
	d.Time = time.Unix(0, int64(nanoseconds))
	return d, true
}

// leadingNumber reads the number that text begins with, and tells how many digits
// it has; 0, if there is none or an int64 does not hold it.
func leadingNumber(text string) (n uint64, digits int) {
	for ; digits < len(text) && text[digits]-'0' <= 9; digits++ {
		if digits == numberDigitsMax {
			return 0, 0
		}
		n = 10*n + uint64(text[digits]-'0')
	}
	if n > math.MaxInt64 {
		return 0, 0
	}
	return n, digits
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
