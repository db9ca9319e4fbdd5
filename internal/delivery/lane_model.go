package delivery

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/streams"
	"github.com/refold/refold/subjects"
)

// LaneModel is a model of a server, as a lane meets it. It is for the simulation
// (docs/simulator.md), where a Lane runs on one; nothing else uses it.
type LaneModel interface {
	Info(ctx context.Context) (LaneModelInfo, error)
	Reset(ctx context.Context) (pending uint64, err error)
	Unpin(ctx context.Context) error
	// Listen names an inbox on which take is called for what comes.
	Listen(take func(LaneModelMessage)) (inbox string, stop func())
	Pull(reply string, r LaneModelPull) error
	// Ack acknowledges the delivery of a stream's sequence as a consumer's.
	Ack(seq, consumerSeq uint64)
	AckSure(ctx context.Context, seq, consumerSeq uint64) error
	Reconnects() uint64
}

// LaneModelInfo is how the lane's consumer stands.
type LaneModelInfo struct {
	Pin       string
	TTL       time.Duration
	Pending   uint64
	Unacked   int
	Delivered uint64 // the last one, in the stream
	Floor     uint64 // in the stream
}

// LaneModelPull is a request for events.
type LaneModelPull struct {
	Batch              int
	Expires, Heartbeat time.Duration
	Pin                string
}

// LaneModelMessage is what comes on an inbox: an event, or a status of the
// request whose reply subject is its Subject.
type LaneModelMessage struct {
	Subject string
	Data    []byte

	Seq, ConsumerSeq, Count, Pending uint64
	Time                             time.Time
	Pin                              string

	Code, Text string // of a status
	Last       uint64 // of a heartbeat: the consumer sequence delivered last
}

// NewModelLane returns lane n of a log that a model holds. It is run as one of
// Source.Lane is.
func NewModelLane(m LaneModel, names subjects.Names, n int, log *slog.Logger) *Lane {
	l := New(natsio.Unconnected(names, log), new(streams.Streams)).Lane(n)
	l.server = modelLane{m}
	return l
}

// modelLane makes a server of a model.
type modelLane struct{ m LaneModel }

func (s modelLane) info(ctx context.Context) (laneInfo, error) {
	i, err := s.m.Info(ctx)
	if err != nil {
		err = fmt.Errorf("%w: %w", nats.ErrTimeout, err) // it may pass
	}
	return laneInfo{pin: i.Pin, ttl: i.TTL, pending: i.Pending, unacked: i.Unacked, delivered: i.Delivered, floor: i.Floor}, err
}

func (s modelLane) reset(ctx context.Context) (uint64, error) { return s.m.Reset(ctx) }

func (s modelLane) unpin(ctx context.Context) error { return s.m.Unpin(ctx) }

func (s modelLane) listen(room int) (inbox string, msgs <-chan *nats.Msg, stop func(), err error) {
	all := make(chan *nats.Msg, room)
	inbox, stop = s.m.Listen(func(m LaneModelMessage) {
		select {
		case all <- m.message():
		default: // as any message on a core subscription
		}
	})
	return inbox, all, stop, nil
}

// message returns what the client library would.
func (m LaneModelMessage) message() *nats.Msg {
	if m.Code != "" {
		return &nats.Msg{Subject: m.Subject, Header: nats.Header{
			subjects.HeaderStatus: {m.Code}, subjects.HeaderDescription: {m.Text},
			natsio.HeaderLastConsumer: {strconv.FormatUint(m.Last, 10)},
		}}
	}
	return &nats.Msg{
		Subject: m.Subject, Data: m.Data, Sub: new(nats.Subscription), Header: nats.Header{subjects.HeaderPinID: {m.Pin}},
		Reply: fmt.Sprintf("%sLOG.l.%d.%d.%d.%d.%d", natsio.AckReplyPrefix, m.Count, m.Seq, m.ConsumerSeq, m.Time.UnixNano(), m.Pending),
	}
}

func (s modelLane) pull(reply string, r pullRequest) error {
	return s.m.Pull(reply, LaneModelPull{Batch: r.Batch, Expires: r.Expires, Heartbeat: r.Heartbeat, Pin: r.Pin})
}

// placeOf reads where a delivery stands in the stream and with its consumer.
func placeOf(reply string) natsio.AckReply {
	at, ok := natsio.ReadAckReply(&nats.Msg{Reply: reply, Sub: new(nats.Subscription)})
	if !ok {
		panic("delivery: " + reply + " is no reply of a model")
	}
	return at
}

func (s modelLane) ack(reply string) error {
	at := placeOf(reply)
	s.m.Ack(at.Seq, at.ConsumerSeq)
	return nil
}

func (s modelLane) ackSure(ctx context.Context, reply string) error {
	at := placeOf(reply)
	return s.m.AckSure(ctx, at.Seq, at.ConsumerSeq)
}

func (s modelLane) reconnects() uint64 { return s.m.Reconnects() }
