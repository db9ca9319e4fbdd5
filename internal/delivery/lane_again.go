package delivery

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/natsio"
)

// laneFloor is the ack floor of a lane, as it was known over one connection: a lane
// whose consumer was deleted is made again where it was. A server that was restarted
// may have lost the end of its log, and have other events at these sequences: the next
// connection asks again.
type laneFloor struct{ seq, reconnects uint64 }

// ackedUpTo takes note that the event of a delivery is acked, and all before it;
// an empty reply is of none. Whether the server has heard so does not matter: their
// outputs are stored.
func (l *Lane) ackedUpTo(reply string, reconnects uint64) {
	if at, ok := natsio.ParseAckReply(reply); ok {
		l.source.floors.Store(l.consumer, laneFloor{at.Seq, reconnects})
	}
}

// deletedFor is how long a lane must have been gone when it is made again.
// nats-server 2.15.2 says that a consumer is deleted before it removes its files:
// one that is made at once may begin with the old state, or lose its own files.
const deletedFor = 500 * time.Millisecond

// look returns how the lane's consumer stands. A consumer that was deleted is made
// again first, if this process provisioned it.
func (l *Lane) look(ctx context.Context) (LaneInfo, error) {
	info, err := l.server.Info(ctx)
	cfg, ours := l.source.streams.LaneConfig(l.number)
	missing := natsio.CodeOf(err) == natsio.CodeConsumerMissing && ours
	if missing && natsio.Sleep(ctx, deletedFor) == nil {
		info, err = l.server.Info(ctx)
	}
	if !missing || natsio.CodeOf(err) != natsio.CodeConsumerMissing {
		return info, err
	}
	if err := l.makeAgain(ctx, cfg); err != nil {
		return info, fmt.Errorf("make the consumer again that was deleted: %w", err)
	}
	return l.server.Info(ctx)
}

// makeAgain makes the lane's consumer, which was deleted. It begins behind the ack
// floor of the deleted one, so that nothing is left out, and nothing comes that is
// done; where this process does not know that floor, at the log's first event:
// what was done comes again then and changes nothing, but takes its time. If
// another process was faster, its consumer counts, wherever it begins.
func (l *Lane) makeAgain(ctx context.Context, cfg jetstream.ConsumerConfig) error {
	var floor uint64
	if known, ok := l.source.floors.Load(l.consumer); ok && known.(laneFloor).reconnects == l.server.Reconnects() {
		floor = known.(laneFloor).seq
	}
	if floor > 0 {
		cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverByStartSequencePolicy, floor+1
	}
	_, err := l.source.conn.JS.CreateConsumer(ctx, l.source.names.LogStream(), cfg)
	switch {
	case natsio.CodeOf(err) == natsio.CodeConsumerExists:
		return nil
	case err == nil:
		l.log.Warn("lane_made_again", "from", floor+1, "note", "its consumer was deleted: what was acknowledged before that sequence is not delivered again")
	}
	return err
}
