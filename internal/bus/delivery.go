package bus

import (
	"strconv"
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
	ackNumbersAtAfter = 6 // with a domain
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
		_, reply, _ = strings.Cut(reply, ".")
	}
	var nanoseconds uint64
	for _, number := range [...]*uint64{&d.count, &d.seq, &d.consumerSeq, &nanoseconds, &d.pending} {
		var token string
		token, reply, _ = strings.Cut(reply, ".")
		var err error
		if *number, err = strconv.ParseUint(token, 10, 63); err != nil {
			return delivered{}, false
		}
	}
	d.time = time.Unix(0, int64(nanoseconds))
	return d, true
}
