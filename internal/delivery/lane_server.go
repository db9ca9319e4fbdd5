package delivery

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// LaneServer is what a lane needs of the server.
type LaneServer interface {
	// Info returns how the lane's consumer stands.
	Info(ctx context.Context) (LaneInfo, error)
	// Reset begins delivery at the ack floor again, with consumer sequence 1, and
	// returns how many events are to come. After an error it may have happened.
	Reset(ctx context.Context) (pending uint64, err error)
	// Unpin takes the pin away from any owner.
	Unpin(ctx context.Context) error
	// Listen subscribes to inbox.1, inbox.2, …: what does not fit into room is
	// lost. stop ends interest.
	Listen(room int) (inbox string, msgs <-chan *nats.Msg, stop func(), err error)
	// Pull sends a request. What it brings comes on reply.
	Pull(reply string, r PullRequest) error
	// Ack acknowledges a delivery; it waits for nothing.
	Ack(reply string) error
	// AckSure does, and returns when the server has taken that in.
	AckSure(ctx context.Context, reply string) error
	// Reconnects counts how often the connection was made again.
	Reconnects() uint64
}

// LaneInfo is how a lane's consumer stands.
type LaneInfo struct {
	Pin       string        // empty: nobody is pinned
	TTL       time.Duration // how long a pin is kept without a request; 0: it pins nobody
	Pending   uint64        // events that were not delivered yet
	Unacked   int           // events that were
	Delivered uint64        // the last event that was, in the stream
	Floor     uint64        // up to here in the stream, all of the lane's are acked
}

// natsLane is the consumer of a lane.
type natsLane struct {
	source           *Source
	stream, consumer string
}

func (s natsLane) Info(ctx context.Context) (LaneInfo, error) {
	if !s.source.conn.NC.IsConnected() {
		return LaneInfo{}, nats.ErrDisconnected
	}
	reconnects := s.Reconnects()
	consumer, err := s.source.conn.JS.Consumer(ctx, s.stream, s.consumer)
	if err != nil {
		return LaneInfo{}, err
	}
	is := consumer.CachedInfo()
	s.source.floors.Store(s.consumer, laneFloor{is.AckFloor.Stream, reconnects})
	info := LaneInfo{Pending: is.NumPending, Unacked: is.NumAckPending, Delivered: is.Delivered.Stream, Floor: is.AckFloor.Stream}
	if is.Config.PriorityPolicy == jetstream.PriorityPolicyPinned {
		info.TTL = is.Config.PinnedTTL
	}
	for _, group := range is.PriorityGroups {
		if group.Group == subjects.LaneGroup {
			info.Pin = group.PinnedClientID
		}
	}
	return info, nil
}

func (s natsLane) Reset(ctx context.Context) (pending uint64, err error) {
	if !s.source.conn.NC.IsConnected() {
		// It would be sent on reconnect, when somebody else may own the lane.
		return 0, nats.ErrDisconnected
	}
	reconnects := s.Reconnects()
	answer, err := s.source.conn.JS.ResetConsumer(ctx, s.stream, s.consumer)
	if err != nil {
		return 0, err
	}
	s.source.floors.Store(s.consumer, laneFloor{answer.AckFloor.Stream, reconnects})
	return answer.NumPending, nil
}

func (s natsLane) Unpin(ctx context.Context) error {
	if !s.source.conn.NC.IsConnected() {
		return nats.ErrDisconnected // as for a reset: another may have the pin by then
	}
	group := map[string]string{"group": subjects.LaneGroup}
	return s.source.conn.Ask(ctx, "CONSUMER.UNPIN."+s.stream+"."+s.consumer, group, new(natsio.Answer))
}

func (s natsLane) Listen(room int) (inbox string, msgs <-chan *nats.Msg, stop func(), err error) {
	inbox, sub, all, err := s.source.conn.SubscribeReplies(room)
	return inbox, all, func() { _ = sub.Unsubscribe() }, err
}

func (s natsLane) Pull(reply string, r PullRequest) error {
	return s.source.pull(s.stream, s.consumer, reply, r)
}

func (s natsLane) Ack(reply string) error { return s.source.conn.NC.Publish(reply, ackDone) }

func (s natsLane) AckSure(ctx context.Context, reply string) error {
	_, err := s.source.conn.NC.RequestWithContext(ctx, reply, ackDone)
	return err
}

func (s natsLane) Reconnects() uint64 { return s.source.conn.Incarnation() }
