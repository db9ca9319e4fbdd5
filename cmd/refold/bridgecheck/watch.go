package bridgecheck

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/subjects"
)

// kind is what a message of the bridge is.
type kind int

const (
	settlement kind = iota
	claim
	beat
	ack
	nak
	progress
	term
)

// message is one message of the bridge.
type message struct {
	kind kind
	at   time.Time
	seq  uint64 // sequence of the effect, for acknowledgements
	msg  *nats.Msg
}

// watch stores what the bridge published, in order.
type watch struct {
	subs     []*nats.Subscription
	received chan *nats.Msg // of all subscriptions, to keep their order
	done     chan struct{}

	mu   sync.Mutex
	all  []message
	more chan struct{} // closed by the next message
}

// receivedMax is how many received messages may wait to be read.
const receivedMax = 1 << 16

// listen starts to watch. When it returns, the subscriptions are in place.
func (c *checker) listen() (*watch, error) {
	names := c.bus.Names()
	tool, err := names.Log(session.DoorTool, c.session())
	if err != nil {
		return nil, err
	}
	consumer, err := subjects.BridgeName(session.ClassTool, c.Target)
	if err != nil {
		return nil, err
	}
	const answers = "$JS.ACK.>"
	w := &watch{received: make(chan *nats.Msg, receivedMax), done: make(chan struct{}), more: make(chan struct{})}
	for _, subject := range append(names.ClaimsAll(session.ClassTool, c.Target), tool, names.AliveAll(subjects.KindBridge), answers) {
		sub, err := c.nc.ChanSubscribe(subject, w.received)
		if err != nil {
			w.close()
			return nil, err
		}
		w.subs = append(w.subs, sub)
	}
	go func() {
		for {
			select {
			case m := <-w.received:
				h := message{kind: claim, at: time.Now(), msg: m}
				switch m.Sub.Subject {
				case tool:
					h.kind = settlement
				case names.AliveAll(subjects.KindBridge):
					h.kind = beat
				case answers:
					var of string
					if of, h.seq = parseAck(m.Subject); of != consumer {
						continue
					}
					h.kind = ackKind(m.Data)
				}
				w.add(h)
			case <-w.done:
				return
			}
		}
	}()
	return w, c.nc.Flush()
}

func (w *watch) close() {
	for _, s := range w.subs {
		_ = s.Unsubscribe() // fails on a closed connection only
	}
	close(w.done)
}

func (w *watch) add(h message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, h)
	close(w.more)
	w.more = make(chan struct{})
}

// of returns the messages that satisfy keep.
func (w *watch) of(keep func(message) bool) (all []message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.all {
		if keep(h) {
			all = append(all, h)
		}
	}
	return all
}

// wait waits until holds returns true, for d at most, and reports whether it did.
func (w *watch) wait(ctx context.Context, d time.Duration, holds func() bool) (bool, error) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		w.mu.Lock()
		more := w.more
		w.mu.Unlock()
		if holds() {
			return true, nil
		}
		select {
		case <-more:
		case <-timer.C:
			return false, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// parseAck returns the consumer and the stream sequence of an acknowledgement.
// Servers of a domain put two tokens before the stream's name.
func parseAck(subject string) (consumer string, seq uint64) {
	t := strings.Split(subject, ".")
	switch {
	case len(t) >= 11:
		t = t[4:]
	case len(t) == 9:
		t = t[2:]
	default:
		return "", 0
	}
	seq, _ = strconv.ParseUint(t[3], 10, 64) // no message has 0
	return t[1], seq
}

func ackKind(body []byte) kind {
	switch text := string(body); {
	case strings.HasPrefix(text, "-NAK"):
		return nak
	case text == "+WPI":
		return progress
	case text == "+TERM" || strings.HasPrefix(text, "+TERM "):
		return term
	}
	return ack
}

// about returns the messages of some kinds about an effect.
func (c *checker) about(a *testCall, kinds ...kind) []message {
	return c.seen.of(func(h message) bool {
		if !slices.Contains(kinds, h.kind) {
			return false
		}
		switch h.kind {
		case settlement:
			return settles(h.msg.Data, a.name.Effect)
		case claim:
			return strings.HasPrefix(h.msg.Subject+".", a.claim+".") && h.at.After(a.at)
		}
		return h.seq == a.seq
	})
}

// await waits for a message of these kinds about an effect.
func (c *checker) await(ctx context.Context, d time.Duration, a *testCall, kinds ...kind) (bool, error) {
	return c.seen.wait(ctx, d, func() bool { return len(c.about(a, kinds...)) > 0 })
}

// pass lets time pass, in which the bridge may break a rule.
func (c *checker) pass(ctx context.Context, d time.Duration) error {
	_, err := c.seen.wait(ctx, d, func() bool { return false })
	return err
}
