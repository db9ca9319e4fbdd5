package delivery

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/natsio"
)

// laneFloor is the ack floor of a lane, at which a deleted consumer is recreated. It is
// valid for one connection: a restarted server may have lost the end of its log, and
// have other events at these sequences.
type laneFloor struct{ seq, reconnects uint64 }

// recordFloor records that the event of a delivery and all events before it are acked;
// an empty reply is ignored. The server need not have received the acks, since the
// outputs of these events are stored.
func (l *Lane) recordFloor(reply string, reconnects uint64) {
	if at, ok := natsio.ParseAckReply(reply); ok {
		l.source.floors.Store(l.consumer, laneFloor{at.Seq, reconnects})
	}
}

// recreateDelay is how long a consumer must be missing before it is recreated.
// nats-server 2.15.2 reports a deletion before it removes the files: a consumer that is
// recreated at once may start with the old state, or lose its own files.
const recreateDelay = 500 * time.Millisecond

// info returns the state of the lane's consumer. It first recreates a deleted consumer,
// if this process provisioned it. Each request has a timeout of its own: the delay and a
// slow server must not leave the creation too little time to see its answer.
func (l *Lane) info(ctx context.Context) (LaneInfo, error) {
	info, err := l.readInfo(ctx)
	cfg, ours := l.source.streams.LaneConfig(l.number)
	missing := natsio.CodeOf(err) == natsio.CodeConsumerMissing && ours
	if missing && natsio.Sleep(ctx, recreateDelay) == nil {
		info, err = l.readInfo(ctx)
	}
	if !missing || natsio.CodeOf(err) != natsio.CodeConsumerMissing {
		return info, err
	}
	if err := l.recreate(ctx, cfg); err != nil {
		return info, fmt.Errorf("recreate the deleted consumer: %w", err)
	}
	return l.readInfo(ctx)
}

// readInfo reads the state of the lane's consumer.
func (l *Lane) readInfo(ctx context.Context) (LaneInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, max(l.ttl, time.Second))
	defer cancel()
	return l.server.Info(ctx)
}

// recreate creates the lane's deleted consumer. It starts after the ack floor of the
// deleted one, so that no event is skipped or repeated. If this process does not know
// that floor, it starts at the log's first event: processed events are delivered again,
// which changes nothing but takes time. If another process created the consumer first,
// that one is used, wherever it starts.
func (l *Lane) recreate(ctx context.Context, cfg jetstream.ConsumerConfig) error {
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
		l.log.Warn("lane_made_again", "from", floor+1, "note", "its consumer was deleted: events before that sequence are not delivered again")
	}
	return err
}
