package delivery_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/delivery"
	"github.com/refold/refold/subjects"
)

// A lane delivers its events in order to one owner at a time, and restarts at the ack
// floor whenever the owner changes or a delivery was lost. The servers are real; a host
// that dies only closes its connection.

const (
	// ttlShort is for tests that wait until a pin has run out.
	ttlShort = 600 * time.Millisecond
	// ttlNever is for tests in which nothing may wait for that: a condition
	// is given up before it is over.
	ttlNever = 5 * time.Minute
)

func ackAll(d delivery.Delivery) { d.Ack() }

func TestLaneDelivers(t *testing.T) {
	t.Parallel()
	l := newLanes(t, ttlNever)
	sid := sidOn(3, 0)
	h := runLane(t, l.node, 3, ackAll)
	l.publish(sid, "1", "2", "3")
	if _, err := l.js.Publish(testbus.Context(t), "refold.install", []byte("4")); err != nil {
		t.Fatal(err)
	}
	bustest.Until(t, "all are delivered and acked", l.floor(3, 4))

	got := h.all()
	if len(got) != 4 {
		t.Fatalf("got %d deliveries, want 4", len(got))
	}
	info := l.info(3)
	for i, d := range got {
		want := session.Event{Session: sid, Door: session.DoorIn, Seq: uint64(i + 1), Payload: fmt.Append(nil, i+1)}
		if i == 3 {
			want.Session, want.Door = "", session.DoorInstall
		}
		if d.Event.Session != want.Session || d.Event.Door != want.Door || d.Event.Seq != want.Seq || string(d.Event.Payload) != string(want.Payload) {
			t.Errorf("got %+v, want %+v", d.Event, want)
		}
		if age := info.TimeStamp.UnixMilli() - d.Event.Time; age < 0 || age > testbus.Time.Milliseconds() {
			t.Errorf("time %d: want the stream's timestamp in ms, got one %d ms before the server's clock", d.Event.Time, age)
		}
		if d.ConsumerSeq != uint64(i+1) || d.Epoch != 1 {
			t.Errorf("got consumer sequence %d of epoch %d, want %d of epoch 1", d.ConsumerSeq, d.Epoch, i+1)
		}
	}
	if !h.lane.Owned() || h.lane.Number() != 3 {
		t.Errorf("got owned %t, lane %d, want true, 3", h.lane.Owned(), h.lane.Number())
	}
}

// A dies with five unacked events while more are published: no later event may overtake
// the five.
func TestTakeoverRedeliversUnackedEventsFirst(t *testing.T) {
	t.Parallel()
	for _, replicas := range []int{1, 3} {
		t.Run(fmt.Sprintf("R%d", replicas), func(t *testing.T) {
			t.Parallel()
			var l *lanes
			if replicas == 1 {
				l = newLanes(t, ttlShort)
			} else {
				node := bustest.Cluster(t, replicas)[0]
				provisionLanes(t, node, ttlShort, replicas)
				_, js := testbus.JS(t, node)
				l = &lanes{t: t, node: node, js: js}
			}
			sid := sidOn(0, 0)
			a := runLane(t, l.node, 0, func(d delivery.Delivery) {
				if number(d) <= 5 {
					d.Ack()
				}
			})
			l.publish(sid, numbered(1, 10)...)
			bustest.Until(t, "A has 10 and acked 5", func() bool {
				return a.saw("10") && l.info(0).AckFloor.Stream == 5
			})
			b := runLane(t, l.node, 0, ackAll)
			a.die()
			last := 10
			bustest.Until(t, "B owns the lane", func() bool {
				last++
				l.publish(sid, fmt.Sprint(last))
				return len(b.all()) > 0
			})
			bustest.Until(t, "B acked all", l.floor(0, uint64(last)))
			if err := inOrder(b.all()); err != nil {
				t.Error(err)
			}
			if got := number(b.all()[0]); got != 6 {
				t.Errorf("B begins at %d, want 6", got)
			}
			if got := b.lane.Left(); got < 10 {
				t.Errorf("A left events up to %d, want 10 at least", got)
			}
		})
	}
}

// The events of a dead owner must not wait for ack_wait, nor for a new event.
func TestTakeoverOfAQuietLane(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted=%t", restarted), func(t *testing.T) {
			t.Parallel()
			l := newLanes(t, ttlShort, setting("ack_wait", "10m")...)
			a := runLane(t, l.node, 0, nil)
			l.publish(sidOn(0, 0), numbered(1, 3)...)
			bustest.Until(t, "A has 3", a.has("1", "2", "3"))
			var b *host
			if restarted {
				a.die()
				b = runLane(t, l.node, 0, ackAll)
			} else {
				b = runLane(t, l.node, 0, ackAll)
				a.die()
			}
			bustest.Until(t, "B acked 3", l.floor(0, 3))
			if err := inOrder(b.all()); err != nil {
				t.Error(err)
			}
			if got := b.lane.Left(); got != 3 {
				t.Errorf("A left events up to %d, want 3", got)
			}
		})
	}
}

// The unacked events reach max_ack_pending: the server delivers nothing, so it pins no
// client until one resets the lane.
func TestTakeoverOfAFullLane(t *testing.T) {
	t.Parallel()
	l := newLanes(t, ttlShort, append(setting("max_ack_pending", 4), setting("ack_wait", "10m")...)...)
	a := runLane(t, l.node, 0, nil)
	l.publish(sidOn(0, 0), numbered(1, 9)...)
	bustest.Until(t, "A has 4", a.has(numbered(1, 4)...))
	a.die()
	b := runLane(t, l.node, 0, ackAll)
	bustest.Until(t, "B acked 9", l.floor(0, 9))
	if err := inOrder(b.all()); err != nil {
		t.Error(err)
	}
}

// Another client gets an event with the owner's pin: the owner must not miss it,
// whether or not others follow.
func TestGapResetsTheLane(t *testing.T) {
	t.Parallel()
	for _, more := range []int{2, 5} {
		t.Run(fmt.Sprintf("%d events", more), func(t *testing.T) {
			t.Parallel()
			l := newLanes(t, ttlShort)
			nc, _ := testbus.JS(t, l.node)
			h := runLane(t, l.node, 0, nil)
			l.publish(sidOn(0, 0), "1")
			bustest.Until(t, "the owner has 1", h.has("1"))
			thief, err := nc.SubscribeSync(nc.NewInbox())
			bustest.OK(t, err)
			steal := fmt.Sprintf(`{"batch":1,"expires":%d,"group":%q,"id":%q}`, testbus.Time, subjects.LaneGroup, l.pin(0))
			bustest.OK(t, nc.PublishRequest("$JS.API.CONSUMER.MSG.NEXT.REFOLD_LOG.l0", thief.Subject, []byte(steal)))
			bustest.OK(t, nc.Flush())
			l.publish(sidOn(0, 0), numbered(2, 1+more)...)
			stolen, err := thief.NextMsgWithContext(testbus.Context(t))
			if err != nil || len(stolen.Data) == 0 {
				t.Fatalf("the thief got %v, %v, want an event", stolen, err)
			}
			bustest.Until(t, "the owner has all again, in order", h.has(numbered(1, 1+more)...))
			if err := inOrder(h.all()); err != nil {
				t.Error(err)
			}
		})
	}
}

// A former owner acks its events long after another took over.
func TestLateAcksOfAFormerOwnerDoNothing(t *testing.T) {
	t.Parallel()
	l := newLanes(t, ttlShort)
	nc, _ := testbus.JS(t, l.node)
	l.publish(sidOn(0, 0), numbered(1, 10)...)
	former, err := nc.SubscribeSync(nc.NewInbox())
	bustest.OK(t, err)
	pull := fmt.Sprintf(`{"batch":10,"expires":%d,"group":%q}`, time.Second, subjects.LaneGroup)
	bustest.OK(t, nc.PublishRequest("$JS.API.CONSUMER.MSG.NEXT.REFOLD_LOG.l0", former.Subject, []byte(pull)))
	var had []*nats.Msg
	for len(had) < 10 {
		m, err := former.NextMsgWithContext(testbus.Context(t))
		bustest.OK(t, err)
		had = append(had, m)
	}
	ack := func(i int) {
		if _, err := nc.RequestWithContext(testbus.Context(t), had[i].Reply, []byte("+ACK")); err != nil {
			t.Fatal(err)
		}
	}
	ack(0)
	ack(1)

	var late atomic.Bool
	h := runLane(t, l.node, 0, func(d delivery.Delivery) {
		if late.Load() {
			d.Ack()
		}
	})
	bustest.Until(t, "the new owner has 3 to 10", h.has(numbered(3, 10)...))
	for _, i := range []int{9, 4, 2, 7, 0} {
		ack(i)
	}
	late.Store(true)
	for _, d := range h.all() {
		d.Ack()
	}
	l.publish(sidOn(0, 0), numbered(11, 20)...)
	bustest.Until(t, "all are acked", l.floor(0, 20))
	bustest.Until(t, "the new owner has 20", func() bool { return h.saw("20") })
	if err := inOrder(h.all()); err != nil {
		t.Error(err)
	}
}

// The owner blocks: its window fills, it receives no more, and it keeps the lane.
func TestLaneFullWindowKeepsThePin(t *testing.T) {
	t.Parallel()
	const ttl = 3 * time.Second
	l := newLanes(t, ttl, setting("max_ack_pending", 5000)...)
	still := make(chan struct{})
	h := runLane(t, l.node, 0, func(d delivery.Delivery) {
		<-still
		d.Ack()
	})
	release := sync.OnceFunc(func() { close(still) })
	t.Cleanup(release)
	l.publish(sidOn(0, 0), "1")
	bustest.Until(t, "the owner has 1", h.has("1"))
	other := runLane(t, l.node, 0, ackAll)
	const events = 1500
	for i := 1; i < events; i++ {
		if _, err := l.js.PublishAsync("refold.in."+sidOn(0, i%5), fmt.Append(nil, i+1)); err != nil {
			t.Fatal(err)
		}
	}
	<-l.js.PublishAsyncComplete()
	// Full is what leaves no room for a request that is worth while.
	bustest.Until(t, "the window is full", func() bool { return l.info(0).NumAckPending > 768 })
	pin, begun := l.pin(0), time.Now()
	bustest.Until(t, "two lives of a pin are over", func() bool {
		if got := l.pin(0); got != pin {
			t.Fatalf("the pin changed from %s to %s", pin, got)
		}
		return time.Since(begun) > 2*ttl
	})
	if got := l.info(0).NumAckPending; got > 1024 {
		t.Errorf("got %d events pending, want at most 1024", got)
	}
	release()
	bustest.Until(t, "all are acked", l.floor(0, events))
	if got := len(other.all()); got != 0 {
		t.Errorf("the other host got %d events, want none", got)
	}
	if err := inOrder(h.all()); err != nil {
		t.Error(err)
	}
}

// A server restart ends the epoch: its acks do nothing, and no event is lost.
func TestLaneServerRestart(t *testing.T) {
	t.Parallel()
	l := newLanes(t, ttlShort)
	sid := sidOn(0, 0)
	var open atomic.Bool
	h := runLane(t, l.node, 0, func(d delivery.Delivery) {
		if number(d) <= 5 || open.Load() {
			d.Ack()
		}
	})
	l.publish(sid, numbered(1, 10)...)
	bustest.Until(t, "the owner has 10 and acked 5", func() bool {
		return h.saw("10") && l.info(0).AckFloor.Stream == 5
	})
	open.Store(true)
	l.node.Stop()
	l.node.Start()
	bustest.Until(t, "the server is back", func() bool { return storeOnce(t, l.js, sid, 11) })
	l.publish(sid, numbered(12, 20)...)
	bustest.Until(t, "all are acked", l.floor(0, 20))
	if err := inOrder(h.all()); err != nil {
		t.Error(err)
	}
}

// The owner's connection is cut, and its open request is lost. The pin outlasts the
// test, so the owner must detect the loss itself.
func TestLaneReconnects(t *testing.T) {
	t.Parallel()
	l := newLanes(t, ttlNever, setting("ack_wait", "10m")...)
	h := runLane(t, l.node, 0, nil)
	l.publish(sidOn(0, 0), "1", "2")
	bustest.Until(t, "the owner has 2", h.has("1", "2"))
	for _, c := range l.connections() {
		bustest.OK(t, l.node.Raw().DisconnectClientByID(c))
	}
	l.publish(sidOn(0, 0), "3")
	bustest.Until(t, "the owner has all again", h.has("1", "2", "3"))
	if err := inOrder(h.all()); err != nil {
		t.Error(err)
	}
}

// A message without a valid session name is skipped and blocks nothing.
func TestLaneSkipsInvalidSubjects(t *testing.T) {
	t.Parallel()
	l := newLanes(t, ttlNever)
	h := runLane(t, l.node, 0, ackAll)
	var bad []string
	for _, name := range []string{strings.Repeat("x", 65), "b!d", "naïve"} {
		for i := 0; ; i++ {
			if sid := fmt.Sprint(name, i); subjects.Lane(subjects.Partition(sid)) == 0 {
				bad = append(bad, sid)
				break
			}
		}
	}
	l.publish(bad[0], "one")
	l.publish(sidOn(0, 0), "1")
	l.publish(bad[1], "two")
	l.publish(bad[2], "three")
	l.publish(sidOn(0, 0), "2")
	l.publish(bad[0], "four")
	bustest.Until(t, "all are acked", l.floor(0, 6))
	if got, want := h.texts(), []string{"1", "2"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := h.skips(); len(got) != 4 || !strings.HasSuffix(got[1], ".in."+bad[1]) {
		t.Errorf("skipped: got %q, want the subjects of %q", got, bad)
	}
}

// Publishers may set any headers, even malformed ones; neither stops a lane.
func TestLaneHostileHeaders(t *testing.T) {
	t.Parallel()
	l := newLanes(t, ttlNever)
	sid := sidOn(0, 0)
	for i, header := range []string{
		"NATS/1.0\r\nNats-Pin-Id: evil\r\n\r\n",
		"NATS/1.0 423 Nats-Wrong-Pin-Id\r\n\r\n",
		"NATS/1.0\r\nno colon\r\n\r\n",
		"nonsense\r\n\r\n",
		"NATS/1.0\r\nStatus: 408\r\n\r\n",
	} {
		testbus.PublishRaw(t, l.node, "refold.in."+sid, header, fmt.Sprint(i+1))
	}
	for start := 1; start <= 5; start++ {
		// Each begins on a lane whose first event has another of the headers.
		h := runLane(t, l.node, 0, func(d delivery.Delivery) {
			if number(d) == start {
				d.Ack()
			}
		})
		bustest.Until(t, "all are delivered", h.has(numbered(start, 5)...))
		bustest.Until(t, "one is acked", func() bool { return l.info(0).AckFloor.Stream == uint64(start) })
		h.stop() // gives the lane back
	}
}
