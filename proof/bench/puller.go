package bench

import (
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/subjects"
)

// Limits of what a consumer's reader may hold unacknowledged, and times of its
// requests. They are those of Refold's lanes.
const (
	windowEventsMax = 1024
	windowBytesMax  = 16 << 20
	windowPartPull  = 4 // a request is for at least this part of the window
	pullExpires     = 600 * time.Millisecond
	pullTick        = 300 * time.Millisecond
)

const headerPinID = "Nats-Pin-Id"

// puller reads a consumer: a goroutine takes all buffered messages, gives them to
// work as one batch, and acknowledges batches in order once they are stored.
type puller struct {
	nc      *nats.Conn
	subject string // of the consumer's API
	group   string // of a pinned consumer; else empty
	work    func(*pullBatch)
	fail    func(error)

	inbox  string
	sub    *nats.Subscription
	msgs   chan *nats.Msg
	stored chan struct{} // of capacity 1: the outputs of a batch are stored
	ended  chan struct{}
	done   sync.WaitGroup

	pin       string
	requested int // messages that the open request may still bring; 0: none is open
	sent      time.Time
	held      int
	bytes     int
	batches   []*pullBatch // not acknowledged, in order
}

// pullBatch is a group of messages that were taken at once.
type pullBatch struct {
	msgs  []*nats.Msg
	bytes int

	left   atomic.Int64 // outputs that are not stored yet
	stored chan struct{}
}

// one reports that one of the outputs is stored.
func (s *pullBatch) one() {
	if s.left.Add(-1) == 0 {
		signal(s.stored)
	}
}

func (s *pullBatch) isStored() bool { return s.left.Load() == 0 }

// newPuller reads a consumer until close. work must set left to the number of
// outputs; each output calls one.
func newPuller(nc *nats.Conn, stream, consumer, group string, work func(*pullBatch), fail func(error)) (*puller, error) {
	p := &puller{
		nc: nc, subject: "$JS.API.CONSUMER.MSG.NEXT." + stream + "." + consumer, group: group, work: work, fail: fail,
		inbox: nc.NewInbox(), msgs: make(chan *nats.Msg, 2*windowEventsMax), stored: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	var err error
	if p.sub, err = nc.ChanSubscribe(p.inbox, p.msgs); err != nil {
		return nil, err
	}
	p.done.Go(p.run)
	return p, nil
}

func (p *puller) close() {
	close(p.ended)
	p.done.Wait()
	_ = p.sub.Unsubscribe() // fails on a closed connection only
}

func (p *puller) run() {
	tick := time.NewTicker(pullTick)
	defer tick.Stop()
	for {
		if err := p.fill(); err != nil {
			p.fail(err)
			return
		}
		select {
		case m := <-p.msgs:
			p.take(m)
		case <-p.stored:
			p.ack()
		case <-tick.C:
		case <-p.ended:
			return
		}
	}
}

// fill requests as many messages as there is room for, one request at a time.
func (p *puller) fill() error {
	if p.requested > 0 && time.Since(p.sent) < 3*pullExpires {
		return nil
	}
	request := struct {
		Batch    int           `json:"batch"`
		MaxBytes int           `json:"max_bytes"`
		Expires  time.Duration `json:"expires"`
		Group    string        `json:"group,omitempty"`
		Pin      string        `json:"id,omitempty"`
	}{windowEventsMax - p.held, windowBytesMax - p.bytes, pullExpires, p.group, p.pin}
	if request.Batch < windowEventsMax/windowPartPull || request.MaxBytes < windowBytesMax/windowPartPull {
		return nil
	}
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	p.requested, p.sent = request.Batch, time.Now()
	return p.nc.PublishRequest(p.subject, p.inbox, body)
}

// take takes a message and all that are buffered after it.
func (p *puller) take(m *nats.Msg) {
	s := &pullBatch{stored: p.stored}
	for more := true; more; {
		if p.receive(m) {
			s.msgs = append(s.msgs, m)
			s.bytes += m.Size()
		}
		select {
		case m = <-p.msgs:
		default:
			more = false
		}
	}
	if len(s.msgs) == 0 {
		return
	}
	p.held += len(s.msgs)
	p.bytes += s.bytes
	p.batches = append(p.batches, s)
	p.work(s)
	if s.isStored() {
		p.ack()
	}
}

// statusWrongPin answers a request with an outdated pin. Nobody else pulls, so a
// request without a pin gets the next one: this request was only late.
const statusWrongPin = "423"

// receive reports whether m is a delivery.
func (p *puller) receive(m *nats.Msg) bool {
	if strings.HasPrefix(m.Reply, "$JS.ACK.") {
		if pin := m.Header.Get(headerPinID); pin != "" {
			p.pin = pin
		}
		p.requested = max(p.requested-1, 0)
		return true
	}
	if m.Header.Get(subjects.HeaderStatus) == statusWrongPin {
		p.pin = ""
	}
	p.requested = 0
	return false
}

var ackDone = []byte("+ACK")

// ack acknowledges batches with stored outputs, up to the first without.
func (p *puller) ack() {
	n := 0
	for n < len(p.batches) && p.batches[n].isStored() {
		s := p.batches[n]
		for _, m := range s.msgs {
			_ = p.nc.Publish(m.Reply, ackDone) // fails on a closed connection only
		}
		p.held -= len(s.msgs)
		p.bytes -= s.bytes
		p.batches[n] = nil
		n++
	}
	p.batches = p.batches[n:]
}
