package jetmodel

import (
	"maps"
	"slices"
	"time"
)

// ConsumerConfig configures a consumer: durable, pulled from, explicit acks,
// deliver all, no limit of deliveries.
type ConsumerConfig struct {
	Filters    []string      // empty: everything
	AckWait    time.Duration // after which an unacked message is delivered again; 0: never
	AckPending int           // the most unacked messages; 0: no limit
	Pinned     time.Duration // how long a client keeps the consumer after its last request; 0: no pin
}

// Consumer delivers messages of a stream.
type Consumer struct {
	stream *Stream
	cfg    ConsumerConfig
	state
	pin     pin
	matched map[string]bool // whether a filter matches, by subject
}

// state is what a server stores of a consumer.
type state struct {
	next      uint64 // stream sequence to examine next
	shown     uint64 // stream sequence of the last first delivery
	nextOwn   uint64 // consumer sequence of the next delivery
	floor     uint64 // ack floor, in the stream
	floorOwn  uint64
	pending   map[uint64]delivered
	again     []uint64       // to deliver again, in order
	delivered map[uint64]int // number of redeliveries
}

// delivered is a pending message.
type delivered struct {
	own uint64    // consumer sequence of its first delivery
	at  time.Time // ack_wait counts from here
}

func (s state) clone() state {
	s.pending, s.delivered, s.again = maps.Clone(s.pending), maps.Clone(s.delivered), slices.Clone(s.again)
	return s
}

func fresh(next uint64) state {
	return state{next: next, shown: next - 1, nextOwn: 1, floor: next - 1, pending: map[uint64]delivered{}, delivered: map[uint64]int{}}
}

// Delivery is one delivery of a message.
type Delivery struct {
	Message
	ConsumerSeq uint64
	Count       int // deliveries, this one included
	Pending     int // messages after it
	Pin         string
}

// Info is a consumer as `nats consumer info` shows it.
type Info struct {
	Delivered, DeliveredStream uint64 // sequences of the last delivery
	Floor, FloorStream         uint64 // ack floor
	AckPending                 int
	Redelivered                int
	Pending                    int
	Pin                        string
}

// Consumer creates a consumer.
func (s *Stream) Consumer(cfg ConsumerConfig) *Consumer {
	c := &Consumer{stream: s, cfg: cfg, state: fresh(1), matched: map[string]bool{}}
	s.consumers = append(s.consumers, c)
	return c
}

func (c *Consumer) matches(subject string) bool {
	if len(c.cfg.Filters) == 0 {
		return true
	}
	yes, known := c.matched[subject]
	if !known {
		yes = slices.ContainsFunc(c.cfg.Filters, func(f string) bool { return Matches(f, subject) })
		c.matched[subject] = yes
	}
	return yes
}

// Info returns the consumer's state.
func (c *Consumer) Info() Info {
	c.tick()
	return Info{
		Delivered: c.nextOwn - 1, DeliveredStream: c.shown, Floor: c.floorOwn, FloorStream: c.floor,
		AckPending: len(c.pending), Redelivered: len(c.delivered), Pending: c.toCome(), Pin: c.pin.id,
	}
}

// toCome counts the messages that were never delivered.
func (c *Consumer) toCome() (n int) {
	i, _ := c.stream.find(c.next)
	for ; i < len(c.stream.msgs); i++ {
		if c.matches(c.stream.msgs[i].Subject) {
			n++
		}
	}
	return n
}

// tick applies what time has caused since the last call.
func (c *Consumer) tick() {
	c.stream.expire()
	now := c.stream.now()
	c.pin.tick(now)
	if c.cfg.AckWait == 0 {
		return
	}
	var late []uint64
	for seq, p := range c.pending {
		if now.Sub(p.at) >= c.cfg.AckWait && !slices.Contains(c.again, seq) {
			late = append(late, seq)
		}
	}
	slices.Sort(late)
	for _, seq := range late {
		c.pending[seq] = delivered{c.pending[seq].own, now}
	}
	c.again = append(c.again, late...)
}

// Pull returns the next message; found is false if there is none now. pin is the
// caller's, or "". ErrPin means that it is not the consumer's pin any more.
func (c *Consumer) Pull(pin string) (d Delivery, found bool, err error) {
	c.tick()
	if err := c.keep(pin); err != nil {
		return Delivery{}, false, err
	}
	return c.Serve(pin)
}

// Serve serves an earlier request, as Pull does, but does not extend the pin.
func (c *Consumer) Serve(pin string) (d Delivery, found bool, err error) {
	c.tick()
	if c.cfg.Pinned > 0 && pin != "" && c.pin.id != "" && pin != c.pin.id {
		return Delivery{}, false, ErrPin
	}
	if !c.mayHave(pin) {
		return Delivery{}, false, nil
	}
	m, count := c.take()
	if m == nil {
		return Delivery{}, false, nil
	}
	if pin != c.pin.id && c.cfg.Pinned > 0 {
		c.putBack(m.Seq, count) // no client is pinned, but the caller believes that it is
		return Delivery{}, false, ErrPin
	}
	c.assign()
	own := c.nextOwn
	c.shown = max(c.shown, m.Seq)
	c.nextOwn++
	if p, ok := c.pending[m.Seq]; ok {
		c.pending[m.Seq] = delivered{p.own, c.stream.now()}
	} else {
		c.pending[m.Seq] = delivered{own, c.stream.now()}
	}
	return Delivery{Message: *m, ConsumerSeq: own, Count: count, Pending: c.toCome(), Pin: c.pin.id}, true, nil
}

// take takes the next message, and returns its number of deliveries.
func (c *Consumer) take() (*Message, int) {
	for len(c.again) > 0 {
		seq := c.again[0]
		c.again = c.again[1:]
		if i, found := c.stream.find(seq); found {
			c.delivered[seq]++
			return c.stream.msgs[i], c.delivered[seq] + 1
		}
		c.Ack(seq) // it has expired
	}
	if c.cfg.AckPending > 0 && len(c.pending) >= c.cfg.AckPending {
		return nil, 0
	}
	m := c.stream.next(c.matches, c.next, 0)
	if m == nil {
		return nil, 0
	}
	c.next = m.Seq + 1
	return m, 1
}

// putBack undoes take, as the server does: a redelivery goes to the end.
func (c *Consumer) putBack(seq uint64, count int) {
	if count == 1 {
		c.next = seq
		return
	}
	if c.delivered[seq]--; c.delivered[seq] == 0 {
		delete(c.delivered, seq)
	}
	c.again = append(c.again, seq)
}

// Ack acknowledges a message by its sequence in the stream, for any client. It
// ignores messages that are not pending.
func (c *Consumer) Ack(seq uint64) {
	c.tick()
	if seq >= c.next {
		return
	}
	if p, ok := c.pending[seq]; ok {
		delete(c.pending, seq)
		c.raise(p.own, seq)
	}
	delete(c.delivered, seq)
	c.again = slices.DeleteFunc(c.again, func(have uint64) bool { return have == seq })
}

// raise raises the ack floor after an ack.
func (c *Consumer) raise(own, seq uint64) {
	if len(c.pending) == 0 {
		c.floorOwn, c.floor = c.nextOwn-1, c.next-1
		return
	}
	if own != c.floorOwn+1 {
		return
	}
	c.floorOwn, c.floor = own, seq
	for next := seq + 1; next < c.next; next++ {
		if p, ok := c.pending[next]; ok {
			if p.own > 0 {
				c.floorOwn, c.floor = p.own-1, next-1
			}
			return
		}
	}
}

// Nak gives a message back. It is delivered again after delay.
func (c *Consumer) Nak(seq uint64, delay time.Duration) {
	c.tick()
	p, ok := c.pending[seq]
	switch {
	case !ok:
	case delay > 0:
		c.again = slices.DeleteFunc(c.again, func(have uint64) bool { return have == seq })
		c.pending[seq] = delivered{p.own, c.stream.now().Add(delay - c.cfg.AckWait)}
	case !slices.Contains(c.again, seq):
		c.again = append(c.again, seq)
	}
}

// Progress extends the time until a message is delivered again.
func (c *Consumer) Progress(seq uint64) {
	c.tick()
	if p, ok := c.pending[seq]; ok {
		c.pending[seq] = delivered{p.own, c.stream.now()}
	}
}

// Reset restarts delivery at the ack floor, in order, with consumer sequence 1.
func (c *Consumer) Reset() {
	c.tick()
	c.state = fresh(c.floor + 1)
}

// Saved is a consumer's state as its server flushed it.
type Saved struct{ state state }

// Saved returns the consumer's present state.
func (c *Consumer) Saved() Saved { return Saved{c.clone()} }

// Restore sets the consumer back to an earlier state, as after a server was
// killed before it flushed later changes. No client is pinned then, and delivered
// messages are delivered again as if for the first time.
func (c *Consumer) Restore(saved Saved) {
	c.state, c.pin = fresh(min(saved.state.floor, c.stream.last)+1), pin{made: c.pin.made}
	c.tick()
}

// lose forgets the messages that the stream has lost.
func (c *Consumer) lose(from uint64) {
	if c.next > from || c.floor >= from {
		c.state = fresh(min(c.floor+1, from))
	}
	c.pin = pin{made: c.pin.made}
}
