package natsio

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/internal/bus/bustest"
)

// The results are those of the client library, and other subjects are refused.
func TestParseAckReplyMatchesTheClientLibrary(t *testing.T) {
	t.Parallel()
	for _, reply := range []string{
		"$JS.ACK.REFOLD_LOG.l0.1.2.3.1700000000000000000.4",
		"$JS.ACK._.hash.REFOLD_LOG.l0.1.2.3.1700000000000000000.4",
		"$JS.ACK.domain.hash.REFOLD_LOG.l0.18.9223372036854775807.3.1700000000123456789.0.random",
	} {
		want, err := (&nats.Msg{Reply: reply, Sub: &nats.Subscription{}}).Metadata()
		bustest.OK(t, err)
		got, ok := ParseAckReply(reply)
		if !ok || got.Seq != want.Sequence.Stream || got.ConsumerSeq != want.Sequence.Consumer || got.Count != want.NumDelivered ||
			got.Pending != want.NumPending || !got.Time.Equal(want.Timestamp) {
			t.Errorf("%s: got %+v (%t), want %+v", reply, got, ok, want)
		}
	}
	for _, reply := range []string{
		"", "$JS.ACK", "$JS.ACK.s.c.1.2.3.4", "$JS.ACK.s.c.1.2.3.4.5.6", "$JS.ACK.s.c.1.2.x.4.5", "$JS.ACK.s.c.1.-2.3.4.5", "$JS.ACK.s.c.1..3.4.5",
		"$JS.ACK.s.c.1.9223372036854775808.3.4.5", "$JS.ACK.s.c.1.10000000000000000000.3.4.5", "$JS.ACK.s.c.1.2.3.4.5x", "$JS.ACK.s.c.1.2.3.4.",
	} {
		if got, ok := ParseAckReply(reply); ok {
			t.Errorf("%q: got %+v, want none", reply, got)
		}
	}
	if d, _ := ParseAckReply("$JS.ACK.REFOLD_LOG.l0.1.2.3.1700000000000000000.4"); d.Time != time.Unix(1_700_000_000, 0) {
		t.Errorf("time: got %v", d.Time)
	}
}
