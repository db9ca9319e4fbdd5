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

// kind says what a message of the bridge is.
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

// heard is one message of the bridge.
type heard struct {
	kind kind
	at   time.Time
	seq  uint64 // of the effect that an answer is about
	msg  *nats.Msg
}

// watch keeps what the bridge published, in order.
type watch struct {
	subs []*nats.Subscription
	came chan *nats.Msg // of all subscriptions, so that their order is kept
	done chan struct{}

	mu   sync.Mutex
	all  []heard
	more chan struct{} // closed by the next message
}

// cameMax is how many received messages may wait to be read.
const cameMax = 1 << 16

// listen begins to watch. When it returns the subscriptions are in place.
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
	w := &watch{came: make(chan *nats.Msg, cameMax), done: make(chan struct{}), more: make(chan struct{})}
	for _, subject := range append(names.ClaimsAll(session.ClassTool, c.Target), tool, names.AliveAll(subjects.KindBridge), answers) {
		sub, err := c.nc.ChanSubscribe(subject, w.came)
		if err != nil {
			w.close()
			return nil, err
		}
		w.subs = append(w.subs, sub)
	}
	go func() {
		for {
			select {
			case m := <-w.came:
				h := heard{kind: claim, at: time.Now(), msg: m}
				switch m.Sub.Subject {
				case tool:
					h.kind = settlement
				case names.AliveAll(subjects.KindBridge):
					h.kind = beat
				case answers:
					var of string
					if of, h.seq = answered(m.Subject); of != consumer {
						continue
					}
					h.kind = answerKind(m.Data)
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

func (w *watch) add(h heard) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, h)
	close(w.more)
	w.more = make(chan struct{})
}

// of returns what was heard and passes keep.
func (w *watch) of(keep func(heard) bool) (all []heard) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.all {
		if keep(h) {
			all = append(all, h)
		}
	}
	return all
}

// wait waits until holds, for d at most. It reports whether it held.
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

// answered returns the consumer and the stream's sequence that an answer to a
// delivery is about. Servers of a domain put two tokens before the stream's name.
func answered(subject string) (consumer string, seq uint64) {
	t := strings.Split(subject, ".")
	switch {
	case len(t) >= 11:
		t = t[4:]
	case len(t) == 9:
		t = t[2:]
	default:
		return "", 0
	}
	seq, _ = strconv.ParseUint(t[3], 10, 64) // 0 is no message's
	return t[1], seq
}

func answerKind(body []byte) kind {
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

// about returns what was heard of an effect, of some kinds.
func (c *checker) about(a *asked, kinds ...kind) []heard {
	return c.seen.of(func(h heard) bool {
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

// await waits until something of these kinds was heard of an effect.
func (c *checker) await(ctx context.Context, d time.Duration, a *asked, kinds ...kind) (bool, error) {
	return c.seen.wait(ctx, d, func() bool { return len(c.about(a, kinds...)) > 0 })
}

// pass lets time pass, in which the bridge may do what it must not.
func (c *checker) pass(ctx context.Context, d time.Duration) error {
	_, err := c.seen.wait(ctx, d, func() bool { return false })
	return err
}
