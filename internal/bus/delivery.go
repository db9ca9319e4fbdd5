package bus

import (
	"math"
	"strings"
	"time"
)

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

// parseAckReply reads the reply subject of a message that a consumer delivered.
// Every message of every stream has one: it allocates nothing.
func parseAckReply(reply string) (d delivered, ok bool) {
	at, tokens := ackNumbersAt, strings.Count(reply, ".")+1
	switch {
	case tokens >= ackTokensDomain:
		at = ackNumbersAtAfter
	case tokens != ackTokens:
		return delivered{}, false
	}
	for range at {
		reply = reply[strings.IndexByte(reply, '.')+1:]
	}
	var nanoseconds uint64
	for _, number := range [...]*uint64{&d.count, &d.seq, &d.consumerSeq, &nanoseconds, &d.pending} {
		var digits int
		if *number, digits = leadingNumber(reply); digits == 0 || digits < len(reply) && reply[digits] != '.' {
			return delivered{}, false
		}
		reply = reply[min(digits+1, len(reply)):]
	}
	d.time = time.Unix(0, int64(nanoseconds))
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
