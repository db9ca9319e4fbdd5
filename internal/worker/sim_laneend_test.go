package worker

// The server's end of lanes: which request gets what.

import (
	"slices"
	"time"

	natsdelivery "github.com/refold/refold/internal/delivery"
)

// ask takes a request that has come to the server.
func (l *laneEnd) ask(r *simRun, reply string, p natsdelivery.LaneModelPull) {
	if l.consumer.Keep(p.Pin) != nil {
		r.hears(reply, natsdelivery.LaneModelMessage{Subject: reply, Code: "423", Text: "Nats-Wrong-Pin-Id"})
		return
	}
	if p.Expires < time.Millisecond {
		r.hears(reply, natsdelivery.LaneModelMessage{Subject: reply, Code: "408", Text: "Request Timeout"})
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
			r.hears(p.reply, natsdelivery.LaneModelMessage{Subject: p.reply, Code: "423", Text: "Nats-Wrong-Pin-Id"})
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
		if !r.hears(p.reply, natsdelivery.LaneModelMessage{
			Subject: d.Subject, Data: d.Data, Seq: d.Seq, ConsumerSeq: d.ConsumerSeq, Count: uint64(d.Count), Pending: uint64(d.Pending), Time: d.Time, Pin: d.Pin,
		}) {
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
			p.run.hears(p.reply, natsdelivery.LaneModelMessage{Subject: p.reply, Code: "408", Text: "Request Timeout"})
		case p.heartbeat > 0 && now.Sub(p.said) >= p.heartbeat:
			p.said = now
			p.run.hears(p.reply, natsdelivery.LaneModelMessage{Subject: p.reply, Code: "100", Text: "Idle Heartbeat", Last: l.consumer.Info().Delivered})
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
			p.run.hears(p.reply, natsdelivery.LaneModelMessage{Subject: p.reply, Code: "409", Text: "Leadership Change"})
		}
	}
}
