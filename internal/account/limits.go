package account

import (
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// dueConsumers is subjects.DueConsumer, the only one of its stream.
	dueConsumers = 1
	// targetsLeast is a provider of models and an executor of tools.
	targetsLeast = 2
	// storageLeast is what one copy of all streams should have: an estimate for a small
	// deployment, since streams.conf has no sizes.
	storageLeast = 1 << 30
)

// limits compares the limits of the account, or of the tier for so many copies.
func (d *diagnosis) limits() {
	tier, copies := d.info.Tier, int64(d.o.Replicas)
	if len(d.info.Tiers) > 0 {
		name := fmt.Sprintf("R%d", d.o.Replicas)
		of, ok := d.info.Tiers[name]
		d.holds(CodeTier, ok, tiers(d.info.Tiers), name)
		if !ok {
			return
		}
		of.Store /= uint64(d.o.Replicas) // the server counts each copy, and multiplies the limit
		tier, copies = of, 1
	}
	ours, bytes, consumers := len(d.have), uint64(0), 0
	for _, info := range d.have {
		bytes += info.State.Bytes
		consumers += info.State.Consumers
	}
	l := tier.Limits
	d.counted(CodeStreamsMax, l.MaxStreams, tier.Streams-ours, len(d.conn.Names().Streams()))
	d.counted(CodeConsumers, l.MaxConsumers, tier.Consumers-consumers, d.consumersOf())
	d.counted(CodeAckPending, l.MaxAckPending, 0, d.conf.AckPendingMax())
	d.holds(CodeBytes, !l.MaxBytesRequired, yes(l.MaxBytesRequired), yes(false))
	d.storage(tier, copies)
}

// counted compares a limit, of which others use a part. A limit of 0 or below is none.
func (d *diagnosis) counted(code Code, limit, others, needs int) {
	has := "unlimited"
	if limit > 0 {
		has = strconv.Itoa(limit)
		if others > 0 {
			has += fmt.Sprintf(", %d used by others", others)
		}
	}
	d.holds(code, limit <= 0 || limit-max(others, 0) >= needs, has, strconv.Itoa(needs+max(others, 0)))
}

// storage compares the file storage: it must suffice for a small deployment, and the last
// tenth must be free, since clients are refused in it.
func (d *diagnosis) storage(tier jetstream.Tier, copies int64) {
	limit, used := tier.Limits.MaxStore, int64(tier.Store)
	has := "unlimited"
	if limit >= 0 {
		has = fmt.Sprintf("%s, %s used", mebibytes(limit), mebibytes(used))
	}
	needs := max(storageLeast*copies, used+used/9+1)
	d.holds(CodeStorage, limit < 0 || limit >= needs, has, mebibytes(needs))
}

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", (n+1<<20-1)>>20) }

func tiers(all map[string]jetstream.Tier) (text string) {
	for i := range 6 { // a stream has at most five copies
		if name := fmt.Sprintf("R%d", i); all[name].Limits != (jetstream.AccountLimits{}) {
			text += " " + name
		}
	}
	return text
}
