package delivery

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// LaneServer is the part of the server's API that a lane uses.
type LaneServer interface {
	// Info returns the state of the lane's consumer.
	Info(ctx context.Context) (LaneInfo, error)
	// Reset restarts delivery at the ack floor, with consumer sequence 1, and returns
	// how many events are pending. After an error it may have happened.
	Reset(ctx context.Context) (pending uint64, err error)
	// Unpin removes the pin of any owner.
	Unpin(ctx context.Context) error
	// Listen subscribes to inbox.1, inbox.2, …: messages beyond room are lost. stop
	// unsubscribes.
	Listen(room int) (inbox string, msgs <-chan *nats.Msg, stop func(), err error)
	// Pull sends a request. Deliveries and statuses arrive on reply.
	Pull(reply string, r PullRequest) error
	// Ack acknowledges a delivery without waiting.
	Ack(reply string) error
	// AckSure acknowledges a delivery, and waits until the server confirms it.
	AckSure(ctx context.Context, reply string) error
	// Reconnects changes with every connection. It waits for a reconnect under way.
	Reconnects() uint64
}

// LaneInfo is the state of a lane's consumer.
type LaneInfo struct {
	Pin       string        // empty: no client is pinned
	TTL       time.Duration // how long a pin is kept without a request; 0: the consumer pins no client
	Pending   uint64        // events not delivered yet
	Unacked   int           // events delivered and not acked
	Delivered uint64        // stream sequence of the last delivered event
}

type natsLane struct {
	source           *Source
	stream, consumer string
}

// listen opens an inbox for requests to the lane's consumer.
func (l *Lane) listen(room int) (*inbox, error) {
	prefix, msgs, stop, err := l.server.Listen(room)
	if err != nil {
		return nil, natsio.Typed(err)
	}
	return &inbox{prefix: prefix, msgs: msgs, stop: stop, pull: l.server.Pull}, nil
}

// keepsPin returns a request that expires on arrival: it keeps the pin and delivers
// nothing.
func keepsPin(pin string) PullRequest {
	return PullRequest{Batch: 1, Expires: time.Nanosecond, Group: subjects.LaneGroup, Pin: pin}
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
	have := consumer.CachedInfo()
	s.source.floors.Store(s.consumer, laneFloor{have.AckFloor.Stream, reconnects})
	info := LaneInfo{Pending: have.NumPending, Unacked: have.NumAckPending, Delivered: have.Delivered.Stream}
	if have.Config.PriorityPolicy == jetstream.PriorityPolicyPinned {
		info.TTL = have.Config.PinnedTTL
	}
	for _, group := range have.PriorityGroups {
		if group.Group == subjects.LaneGroup {
			info.Pin = group.PinnedClientID
		}
	}
	return info, nil
}

func (s natsLane) Reset(ctx context.Context) (pending uint64, err error) {
	if !s.source.conn.NC.IsConnected() {
		// It would be sent on reconnect, when another process may own the lane.
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
		return nats.ErrDisconnected // as in Reset
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

func (s natsLane) Reconnects() uint64 { return s.source.conn.CurrentIncarnation() }
