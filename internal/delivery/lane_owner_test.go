package delivery_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/delivery"
	"github.com/refold/refold/internal/streams"
	"github.com/refold/refold/subjects"
)

// owner is a LaneOwner that keeps its deliveries.
type owner struct {
	on func(delivery.Delivery) // with each delivery that was taken; may block; may be nil

	mu     sync.Mutex
	queue  []delivery.Delivery
	busy   bool // a goroutine works on the queue
	epochs []uint64
	got    []delivery.Delivery

	skipped []string // subjects
}

func (o *owner) Epoch(epoch uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.epochs = append(o.epochs, epoch)
}

func (o *owner) Skipped(_ uint64, subject string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.skipped = append(o.skipped, subject)
}

func (o *owner) skips() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.skipped)
}

func (o *owner) Deliver(d delivery.Delivery) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queue = append(o.queue, d)
	if !o.busy {
		o.busy = true
		go o.work()
	}
}

// work takes the queued deliveries, one after another.
func (o *owner) work() {
	for {
		o.mu.Lock()
		if o.busy = len(o.queue) > 0; !o.busy {
			o.mu.Unlock()
			return
		}
		d := o.queue[0]
		o.queue = o.queue[1:]
		taken := d.Take()
		if taken {
			o.got = append(o.got, d)
		}
		o.mu.Unlock()
		if taken && o.on != nil {
			o.on(d)
		}
	}
}

// all returns the deliveries so far.
func (o *owner) all() []delivery.Delivery {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.got)
}

// texts returns the payloads of the last epoch that delivered something.
func (o *owner) texts() []string {
	var texts []string
	var epoch uint64
	for _, d := range o.all() {
		if d.Epoch != epoch {
			epoch, texts = d.Epoch, nil
		}
		texts = append(texts, string(d.Event.Payload))
	}
	return texts
}

// has reports whether the last epoch delivered exactly these.
func (o *owner) has(want ...string) func() bool {
	return func() bool { return slices.Equal(o.texts(), want) }
}

// host runs a lane over a connection of its own.
type host struct {
	*owner
	bus  *bus.Bus
	lane *delivery.Lane
	stop context.CancelFunc // gives the lane back
	done chan error
}

// die ends the host like a crash: it only closes the connection.
func (h *host) die() {
	h.bus.Close()
	h.stop()
}

func runLane(t *testing.T, node *bustest.Node, lane int, on func(delivery.Delivery)) *host {
	t.Helper()
	return runLaneOf(t, testbus.Connect(t, node, ""), lane, on)
}

// runLaneOf is runLane over an existing connection.
func runLaneOf(t *testing.T, b *bus.Bus, lane int, on func(delivery.Delivery)) *host {
	t.Helper()
	ctx, cancel := context.WithCancel(testbus.Context(t))
	h := &host{owner: &owner{on: on}, bus: b, lane: b.Lane(lane), stop: cancel, done: make(chan error, 1)}
	go func() { h.done <- h.lane.Run(ctx, h.owner) }()
	t.Cleanup(func() {
		h.die()
		select {
		case err := <-h.done:
			if err != nil {
				t.Errorf("run the lane: %v", err)
			}
		case <-time.After(testbus.Time):
			t.Error("Run does not return")
		}
	})
	return h
}

// lanes is a server with the log and its lanes, and a client to inspect them.
type lanes struct {
	t    *testing.T
	node *bustest.Node
	js   jetstream.JetStream
}

// newLanes provisions a server, with a short time for pins unless edits of
// streams.conf say otherwise.
func newLanes(t *testing.T, ttl time.Duration, edits ...string) *lanes {
	t.Helper()
	node := bustest.Server(t)
	provisionLanes(t, node, ttl, 1, edits...)
	_, js := testbus.JS(t, node)
	return &lanes{t: t, node: node, js: js}
}

func provisionLanes(t *testing.T, node *bustest.Node, ttl time.Duration, replicas int, edits ...string) {
	t.Helper()
	edits = slices.Concat(edits, setting("priority_timeout", ttl.String())) // the caller may share them with other tests
	b, conf := testbus.Connect(t, node, ""), testbus.Conf(t, "", edits...)
	bustest.Until(t, "the lanes are provisioned", func() bool {
		// A cluster that has just begun may not know all its peers yet.
		err := b.Provision(testbus.Context(t), conf, replicas)
		if err != nil && replicas == 1 {
			t.Fatal(err)
		}
		return err == nil
	})
}

// setting returns the edits that replace a key's value everywhere in streams.conf.
func setting(key string, value any) []string {
	if text, ok := value.(string); ok {
		value = strconv.Quote(text)
	}
	var edits []string
	for _, old := range regexp.MustCompile(key+`: ("[^"]*"|[0-9]+)`).FindAllString(string(streams.File), -1) {
		edits = append(edits, old, fmt.Sprintf("%s: %v", key, value))
	}
	if edits == nil {
		panic("streams.conf does not set " + key)
	}
	return edits
}

// publish stores events with these texts, in this order.
func (l *lanes) publish(sid string, texts ...string) {
	l.t.Helper()
	for _, text := range texts {
		if _, err := l.js.Publish(testbus.Context(l.t), "refold.in."+sid, []byte(text)); err != nil {
			l.t.Fatal(err)
		}
	}
}

// info retries until there is an answer: a cluster gives none during an election.
func (l *lanes) info(lane int) *jetstream.ConsumerInfo {
	l.t.Helper()
	var info *jetstream.ConsumerInfo
	bustest.Until(l.t, "the consumer tells its state", func() bool {
		ctx, cancel := context.WithTimeout(testbus.Context(l.t), time.Second)
		defer cancel()
		c, err := l.js.Consumer(ctx, "REFOLD_LOG", subjects.LaneName(lane))
		if err == nil {
			info = c.CachedInfo()
		}
		return err == nil
	})
	return info
}

func (l *lanes) pin(lane int) string {
	l.t.Helper()
	return l.info(lane).PriorityGroups[0].PinnedClientID
}

// floor reports whether the lane's ack floor is at a stream sequence.
func (l *lanes) floor(lane int, seq uint64) func() bool {
	return func() bool {
		info := l.info(lane)
		return info.AckFloor.Stream == seq && info.NumAckPending == 0
	}
}

// waiting reports whether n clients, including the owner, wait for the lane's events.
func (l *lanes) waiting(lane, n int) func() bool {
	return func() bool { return l.info(lane).NumWaiting == n }
}

// sidOn returns the nth session of a lane.
func sidOn(lane, n int) string {
	for i := 0; ; i++ {
		sid := "s" + strconv.Itoa(i)
		if subjects.Lane(subjects.Partition(sid)) != lane {
			continue
		}
		if n == 0 {
			return sid
		}
		n--
	}
}

// numbered returns "from", "from+1", …, "to".
func numbered(from, to int) []string {
	var all []string
	for n := from; n <= to; n++ {
		all = append(all, strconv.Itoa(n))
	}
	return all
}

// saw reports whether an event was delivered in any epoch.
func (o *owner) saw(text string) bool {
	return slices.ContainsFunc(o.all(), func(d delivery.Delivery) bool { return string(d.Event.Payload) == text })
}

// inOrder checks the order of an owner's deliveries: in each epoch consumer sequences
// count from 1, and texts, which are numbers, have no gap.
func inOrder(got []delivery.Delivery) error {
	var before delivery.Delivery
	for _, d := range got {
		if d.Epoch != before.Epoch {
			before = delivery.Delivery{Epoch: d.Epoch}
		} else if a, b := number(before), number(d); b != a+1 {
			return fmt.Errorf("epoch %d: %d came after %d", d.Epoch, b, a)
		}
		if d.ConsumerSeq <= before.ConsumerSeq {
			return fmt.Errorf("epoch %d: consumer sequence %d came after %d", d.Epoch, d.ConsumerSeq, before.ConsumerSeq)
		}
		before = d
	}
	return nil
}

func number(d delivery.Delivery) int {
	n, err := strconv.Atoi(strings.TrimSpace(string(d.Event.Payload)))
	if err != nil {
		panic(err) // a test published something else
	}
	return n
}

// storeOnce tries for a second to store an event, and may be retried.
func storeOnce(t *testing.T, js jetstream.JetStream, sid string, n int) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(testbus.Context(t), time.Second)
	defer cancel()
	_, err := js.Publish(ctx, "refold.in."+sid, fmt.Append(nil, n), jetstream.WithMsgID(fmt.Sprint("event ", n)))
	return err == nil
}

// connections returns the server's ids of all clients except l's own.
func (l *lanes) connections() []uint64 {
	l.t.Helper()
	own, err := l.js.Conn().GetClientID()
	if err != nil {
		l.t.Fatal(err)
	}
	all, err := l.node.Raw().Connz(nil)
	if err != nil {
		l.t.Fatal(err)
	}
	var others []uint64
	for _, c := range all.Conns {
		if c.Cid != own {
			others = append(others, c.Cid)
		}
	}
	return others
}
