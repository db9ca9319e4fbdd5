package worker

// The server's end of lanes: which request gets what.

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	natsdelivery "github.com/refold/refold/internal/delivery"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/proof/jetmodel"
	"github.com/refold/refold/subjects"
)

// statusOf is what a server says of a request. Last is the consumer sequence that
// was delivered last, as a heartbeat tells.
func statusOf(reply, code, text string, last uint64) *nats.Msg {
	return &nats.Msg{Subject: reply, Header: nats.Header{
		subjects.HeaderStatus: {code}, subjects.HeaderDescription: {text}, natsio.HeaderLastConsumer: {strconv.FormatUint(last, 10)},
	}}
}

// messageOf is a delivery as the client library hands it over.
func messageOf(d jetmodel.Delivery) *nats.Msg {
	return &nats.Msg{
		Subject: d.Subject, Data: d.Data, Sub: new(nats.Subscription), Header: nats.Header{subjects.HeaderPinID: {d.Pin}},
		Reply: fmt.Sprintf("%sLOG.l.%d.%d.%d.%d.%d", natsio.AckReplyPrefix, d.Count, d.Seq, d.ConsumerSeq, d.Time.UnixNano(), d.Pending),
	}
}

// seqOf returns the sequence in the stream of the delivery that a reply answers.
func seqOf(reply string) uint64 {
	at, ok := natsio.ReadAckReply(&nats.Msg{Reply: reply, Sub: new(nats.Subscription)})
	if !ok {
		panic(reply + " answers no delivery")
	}
	return at.Seq
}

// ask takes a request that has come to the server.
func (l *laneEnd) ask(r *simRun, reply string, p natsdelivery.PullRequest) {
	if l.consumer.Keep(p.Pin) != nil {
		r.hears(reply, statusOf(reply, "423", "Nats-Wrong-Pin-Id", 0))
		return
	}
	if p.Expires < time.Millisecond {
		r.hears(reply, statusOf(reply, "408", "Request Timeout", 0))
		return
	}
	now := time.Now()
	l.open = append(l.open, &openPull{run: r, reply: reply, left: p.Batch, until: now.Add(p.Expires), heartbeat: p.Heartbeat, said: now, pin: p.Pin})
}

// isAsked reports that the server has something to deliver, and somebody asks.
func (l *laneEnd) isAsked() bool {
	info := l.consumer.Info()
	return len(l.open) > 0 && (info.Pending > 0 || info.AckPending > 0)
}

// serve delivers one event to who may have it; false: there is none, or nobody.
func (l *laneEnd) serve(s *sim) bool {
	for _, p := range slices.Clone(l.open) {
		r := p.run
		// The server drops a request that nobody listens for; it may learn that late.
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
		p.pin, p.said = d.Pin, time.Now()
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

// pass tells what time does to requests.
func (l *laneEnd) pass(now time.Time) {
	for _, p := range slices.Clone(l.open) {
		switch {
		case p.run.dead || p.run.cut():
			l.drop(p)
		case !now.Before(p.until):
			l.drop(p)
			p.run.hears(p.reply, statusOf(p.reply, "408", "Request Timeout", 0))
		case p.heartbeat > 0 && now.Sub(p.said) >= p.heartbeat:
			p.said = now
			p.run.hears(p.reply, statusOf(p.reply, "100", "Idle Heartbeat", l.consumer.Info().Delivered))
		}
	}
}

// restart ends all requests: the consumer has another leader, which says so or
// does not.
func (l *laneEnd) restart(s *sim) {
	all := l.open
	l.open = nil
	for _, p := range all {
		if s.draw(2) == 0 {
			p.run.hears(p.reply, statusOf(p.reply, "409", "Leadership Change", 0))
		}
	}
}
