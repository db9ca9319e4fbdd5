package sim

// A lane between a host and the server: the calls of the host's end, which is
// that of production, and the server's choice among requests.

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	natsdelivery "github.com/refold/refold/internal/delivery"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/proof/jetmodel"
	"github.com/refold/refold/subjects"
)

// laneEnd is the server's end of a lane.
type laneEnd struct {
	number   int
	consumer *jetmodel.Consumer
	open     []*openPull
}

// openPull is a request that waits at the server.
type openPull struct {
	run       *laneRun
	reply     string
	left      int
	until     time.Time
	heartbeat time.Duration
	lastSent  time.Time
	pin       string
}

func (r *laneRun) key(what string) string { return fmt.Sprintf("lane %d %s", r.end.number, what) }

func (r *laneRun) Info(ctx context.Context) (info natsdelivery.LaneInfo, err error) {
	if r.cut() {
		return info, mayPass(errRefused)
	}
	at, _ := ctx.Deadline() // it distinguishes the callers
	err = r.call(ctx, r.key("info "+time.Until(at).String()), func() error {
		i := r.end.consumer.Info()
		info = natsdelivery.LaneInfo{Pin: i.Pin, TTL: laneTTL, Pending: uint64(i.Pending), Unacked: i.AckPending, Delivered: i.DeliveredStream}
		return nil
	})
	return info, mayPass(err)
}

// mayPass makes an error one of the connection, after which a lane retries.
func mayPass(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", nats.ErrTimeout, err)
}

func (r *laneRun) Reset(ctx context.Context) (pending uint64, err error) {
	if r.cut() {
		return 0, errRefused
	}
	err = r.call(ctx, r.key("reset"), func() error {
		r.sim.did("lane reset")
		r.end.consumer.Reset()
		pending = uint64(r.end.consumer.Info().Pending)
		return nil
	})
	return pending, err
}

func (r *laneRun) Unpin(ctx context.Context) error {
	return r.call(ctx, r.key("unpin"), func() error {
		r.end.consumer.Unpin()
		return nil
	})
}

func (r *laneRun) Listen(room int) (inbox string, msgs <-chan *nats.Msg, stop func(), err error) {
	r.sim.mu.Lock()
	defer r.sim.mu.Unlock()
	r.listened++
	inbox = fmt.Sprintf("%s.lane%d.%d", r.name, r.end.number, r.listened)
	all := make(chan *nats.Msg, room)
	r.inboxes[inbox] = all
	return inbox, all, func() {
		r.sim.mu.Lock()
		defer r.sim.mu.Unlock()
		delete(r.inboxes, inbox)
	}, nil
}

// send puts a message to the server in flight. A lane's messages stay in order,
// except that a request of the same instant as an ack follows it.
func (r *laneRun) send(keeps bool, text string, arrive func()) {
	r.sim.mu.Lock()
	defer r.sim.mu.Unlock()
	r.sent++
	r.sim.mail = append(r.sim.mail, &posted{
		from: r.proc, key: fmt.Sprintf("%s %d %v %08d", r.name, r.end.number, keeps, r.sent), text: r.name + " " + r.key(text), keeps: keeps, arrive: arrive,
	})
}

func (r *laneRun) Pull(reply string, p natsdelivery.PullRequest) error {
	r.send(true, fmt.Sprintf("pulls %d with pin %q", p.Batch, p.Pin), func() { r.end.ask(r, reply, p) })
	return nil
}

func (r *laneRun) Ack(reply string) error {
	seq := seqOf(reply)
	r.judge(seq)
	r.send(false, fmt.Sprintf("acks %d", seq), func() { r.end.consumer.Ack(seq) })
	return nil
}

func (r *laneRun) AckSure(ctx context.Context, reply string) error {
	seq := seqOf(reply)
	r.judge(seq)
	return r.call(ctx, r.key(fmt.Sprintf("acks %d for sure", seq)), func() error {
		r.end.consumer.Ack(seq)
		return nil
	})
}

func (r *laneRun) Reconnects() uint64 {
	r.sim.mu.Lock()
	defer r.sim.mu.Unlock()
	return r.host.joins
}

// listens reports whether the host subscribes to a reply subject.
func (r *laneRun) listens(reply string) bool {
	r.sim.mu.Lock()
	defer r.sim.mu.Unlock()
	return r.inboxes[reply[:strings.LastIndexByte(reply, '.')]] != nil
}

// hears delivers a message to an inbox; false: there is no subscription. A
// message that does not fit is lost, as on a core subscription.
func (r *laneRun) hears(reply string, m *nats.Msg) bool {
	r.sim.mu.Lock()
	inbox := r.inboxes[reply[:strings.LastIndexByte(reply, '.')]]
	r.sim.mu.Unlock()
	if r.dead || r.cut() || inbox == nil {
		return false
	}
	select {
	case inbox <- m:
	default:
	}
	r.sim.rest()
	return true
}

// statusOf returns a server's status message for a request. last is the consumer
// sequence of the last delivery, as in a heartbeat.
func statusOf(reply, code, text string, last uint64) *nats.Msg {
	return &nats.Msg{Subject: reply, Header: nats.Header{
		subjects.HeaderStatus: {code}, subjects.HeaderDescription: {text}, natsio.HeaderLastConsumer: {strconv.FormatUint(last, 10)},
	}}
}

// messageOf returns a delivery as the client library does.
func messageOf(d jetmodel.Delivery) *nats.Msg {
	return &nats.Msg{
		Subject: d.Subject, Data: d.Data, Sub: new(nats.Subscription), Header: nats.Header{subjects.HeaderPinID: {d.Pin}},
		Reply: fmt.Sprintf("%sLOG.l.%d.%d.%d.%d.%d", natsio.AckReplyPrefix, d.Count, d.Seq, d.ConsumerSeq, d.Time.UnixNano(), d.Pending),
	}
}

// seqOf returns the stream sequence of the delivery with a reply subject.
func seqOf(reply string) uint64 {
	at, ok := natsio.ReadAckReply(&nats.Msg{Reply: reply, Sub: new(nats.Subscription)})
	if !ok {
		panic(reply + " is not the reply subject of a delivery")
	}
	return at.Seq
}

// ask handles a request that has arrived at the server.
func (l *laneEnd) ask(r *laneRun, reply string, p natsdelivery.PullRequest) {
	if l.consumer.Keep(p.Pin) != nil {
		r.hears(reply, statusOf(reply, "423", "Nats-Wrong-Pin-Id", 0))
		return
	}
	if p.Expires < time.Millisecond {
		r.hears(reply, statusOf(reply, "408", "Request Timeout", 0))
		return
	}
	now := time.Now()
	l.open = append(l.open, &openPull{run: r, reply: reply, left: p.Batch, until: now.Add(p.Expires), heartbeat: p.Heartbeat, lastSent: now, pin: p.Pin})
}

// isAsked reports whether there is a request, and something to deliver.
func (l *laneEnd) isAsked() bool {
	info := l.consumer.Info()
	return len(l.open) > 0 && (info.Pending > 0 || info.AckPending > 0)
}

// serve delivers one event to a request that may have it; false: it can't.
func (l *laneEnd) serve(s *sim) bool {
	for _, p := range slices.Clone(l.open) {
		r := p.run
		// The server drops a request without a subscription; it may learn that
		// later.
		if r.dead || r.cut() || !r.listens(p.reply) && !s.fault(10) {
			l.drop(p)
			continue
		}
		d, found, err := l.consumer.Serve(p.pin)
		switch {
		case err != nil:
			l.drop(p)
			s.did("lane lost")
			r.hears(p.reply, statusOf(p.reply, "423", "Nats-Wrong-Pin-Id", 0))
			continue
		case !found:
			continue
		}
		if p.left--; p.left == 0 {
			l.drop(p)
		}
		p.pin, p.lastSent = d.Pin, time.Now()
		r.pinned = d.Pin
		s.say("lane %d: %d to %s as %d, time %d", l.number, d.Seq, r.name, d.ConsumerSeq, d.Count)
		if d.Count > 1 {
			s.did("redelivered")
		}
		if s.fault(40) {
			s.did("delivery lost")
			s.say("it is lost")
			return true
		}
		r.gave[d.Seq] = whatIs(s.event(d.Message))
		if !r.hears(p.reply, messageOf(d)) {
			l.drop(p)
		}
		return true
	}
	return false
}

func (l *laneEnd) drop(p *openPull) {
	l.open = slices.DeleteFunc(l.open, func(have *openPull) bool { return have == p })
}

// pass applies what time does to requests.
func (l *laneEnd) pass(now time.Time) {
	for _, p := range slices.Clone(l.open) {
		switch {
		case p.run.dead || p.run.cut():
			l.drop(p)
		case !now.Before(p.until):
			l.drop(p)
			p.run.hears(p.reply, statusOf(p.reply, "408", "Request Timeout", 0))
		case p.heartbeat > 0 && now.Sub(p.lastSent) >= p.heartbeat:
			p.lastSent = now
			p.run.hears(p.reply, statusOf(p.reply, "100", "Idle Heartbeat", l.consumer.Info().Delivered))
		}
	}
}

// restart ends all requests: the new leader may or may not report it.
func (l *laneEnd) restart(s *sim) {
	all := l.open
	l.open = nil
	for _, p := range all {
		if s.draw(2) == 0 {
			p.run.hears(p.reply, statusOf(p.reply, "409", "Leadership Change", 0))
		}
	}
}
