package delivery

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// laneServer is what a lane needs of the server: natsLane, or a model of it
// (lane_model.go).
type laneServer interface {
	// info returns how the lane's consumer stands.
	info(ctx context.Context) (laneInfo, error)
	// reset begins delivery at the ack floor again, with consumer sequence 1, and
	// returns how many events are to come. After an error it may have happened.
	reset(ctx context.Context) (pending uint64, err error)
	// unpin takes the pin away, whoever has it.
	unpin(ctx context.Context) error
	// listen subscribes to inbox.1, inbox.2, …: what does not fit into room is
	// lost. stop ends interest.
	listen(room int) (inbox string, msgs <-chan *nats.Msg, stop func(), err error)
	// pull sends a request. What it brings comes on reply.
	pull(reply string, r pullRequest) error
	// ack acknowledges a delivery; it waits for nothing.
	ack(reply string) error
	// ackSure does, and returns when the server has taken that in.
	ackSure(ctx context.Context, reply string) error
	// reconnects counts how often the connection was made anew.
	reconnects() uint64
}

// laneInfo is how a lane's consumer stands.
type laneInfo struct {
	pin       string        // empty: nobody is pinned
	ttl       time.Duration // how long a pin is kept without a request; 0: it pins nobody
	pending   uint64        // events that were not delivered yet
	unacked   int           // events that were
	delivered uint64        // the last event that was, in the stream
	floor     uint64        // up to here in the stream, all of the lane's are acked
}

// natsLane is the consumer of a lane.
type natsLane struct {
	source           *Source
	stream, consumer string
}

func (s natsLane) info(ctx context.Context) (laneInfo, error) {
	if !s.source.conn.NC.IsConnected() {
		return laneInfo{}, nats.ErrDisconnected
	}
	reconnects := s.reconnects()
	consumer, err := s.source.conn.JS.Consumer(ctx, s.stream, s.consumer)
	if err != nil {
		return laneInfo{}, err
	}
	is := consumer.CachedInfo()
	s.source.floors.set(s.consumer, laneFloor{is.AckFloor.Stream, reconnects})
	info := laneInfo{pending: is.NumPending, unacked: is.NumAckPending, delivered: is.Delivered.Stream, floor: is.AckFloor.Stream}
	if is.Config.PriorityPolicy == jetstream.PriorityPolicyPinned {
		info.ttl = is.Config.PinnedTTL
	}
	for _, group := range is.PriorityGroups {
		if group.Group == subjects.LaneGroup {
			info.pin = group.PinnedClientID
		}
	}
	return info, nil
}

func (s natsLane) reset(ctx context.Context) (pending uint64, err error) {
	if !s.source.conn.NC.IsConnected() {
		// It would be sent on reconnect, when somebody else may own the lane.
		return 0, nats.ErrDisconnected
	}
	reconnects := s.reconnects()
	answer, err := s.source.conn.JS.ResetConsumer(ctx, s.stream, s.consumer)
	if err != nil {
		return 0, err
	}
	s.source.floors.set(s.consumer, laneFloor{answer.AckFloor.Stream, reconnects})
	return answer.NumPending, nil
}

func (s natsLane) unpin(ctx context.Context) error {
	if !s.source.conn.NC.IsConnected() {
		return nats.ErrDisconnected // as for a reset: another may have the pin by then
	}
	body, err := json.Marshal(struct {
		Group string `json:"group"`
	}{subjects.LaneGroup})
	if err != nil {
		return err
	}
	answer, err := s.source.conn.NC.RequestWithContext(ctx, s.source.conn.API+"CONSUMER.UNPIN."+s.stream+"."+s.consumer, body)
	if err != nil {
		return err
	}
	var refused struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &refused); err != nil {
		return fmt.Errorf("unpin %s: %w", s.consumer, err)
	}
	if refused.Error != nil {
		return refused.Error
	}
	return nil
}

func (s natsLane) listen(room int) (inbox string, msgs <-chan *nats.Msg, stop func(), err error) {
	inbox, sub, all, err := s.source.conn.SubscribeReplies(room)
	return inbox, all, func() { natsio.Unsubscribe(sub) }, err
}

func (s natsLane) pull(reply string, r pullRequest) error {
	return s.source.pull(s.stream, s.consumer, reply, r)
}

func (s natsLane) ack(reply string) error { return s.source.conn.NC.Publish(reply, ackDone) }

func (s natsLane) ackSure(ctx context.Context, reply string) error {
	_, err := s.source.conn.NC.RequestWithContext(ctx, reply, ackDone)
	return err
}

func (s natsLane) reconnects() uint64 { return s.source.conn.NC.Stats().Reconnects }
