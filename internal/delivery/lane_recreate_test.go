package delivery_test

// Hosts recreate the deleted consumer of a lane that they run, at its ack floor.

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/delivery"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// runProvisionedLane is runLane by a process that provisioned the lanes.
func runProvisionedLane(t *testing.T, node *bustest.Node, replicas, lane int, on func(delivery.Delivery)) (*host, *testbus.Log) {
	t.Helper()
	said := &testbus.Log{}
	b := testbus.ConnectWith(t, natsio.Options{URL: node.URL(), Logger: slog.New(slog.NewTextHandler(said, nil))})
	bustest.OK(t, b.Provision(testbus.Context(t), testbus.Conf(t, "", setting("priority_timeout", ttlShort.String())...), replicas))
	return runLaneOf(t, b, lane, on), said
}

func (l *lanes) delete(lane int) {
	l.t.Helper()
	if err := l.js.DeleteConsumer(testbus.Context(l.t), "REFOLD_LOG", subjects.LaneName(lane)); err != nil {
		l.t.Fatal(err)
	}
}

// made waits until a lane exists again, and returns the sequence from which it delivers.
func (l *lanes) made(lane int) (from uint64) {
	l.t.Helper()
	return max(l.info(lane).Config.OptStartSeq, 1)
}

// TestLaneIsMadeAgain: the owner recreates a deleted lane after the events that it has
// acknowledged. Only the unacknowledged events are delivered again, with events in
// progress and without, on one server and on three.
func TestLaneIsMadeAgain(t *testing.T) {
	t.Parallel()
	for servers, nodes := range map[int][]*bustest.Node{1: {bustest.Server(t)}, 3: bustest.Cluster(t, 3)} {
		provisionLanes(t, nodes[0], ttlShort, servers)
		_, js := testbus.JS(t, nodes[0])
		l := &lanes{t: t, node: nodes[0], js: js}
		sid := sidOn(0, 0)
		hold := make(chan struct{})
		h, said := runProvisionedLane(t, nodes[0], servers, 0, func(d delivery.Delivery) {
			if n := number(d); n > 3 && n <= 5 && d.Epoch == 1 {
				<-hold
				return // never acked
			}
			d.Ack()
		})
		l.publish(sid, numbered(1, 5)...)
		bustest.Until(t, "the owner has 4, and has acked 3", func() bool { return h.saw("4") && l.info(0).AckFloor.Stream == 3 })
		l.delete(0)
		l.publish(sid, "6")
		close(hold)
		bustest.Until(t, "made again, it delivers what was not acked", h.has("4", "5", "6"))
		bustest.Until(t, "6 are acked", l.floor(0, 6))
		if got := l.made(0); got != 4 {
			t.Errorf("%d servers: the lane begins at %d, want 4", servers, got)
		}
		l.delete(0) // nothing is under way
		bustest.Until(t, "made again, it begins at 7", func() bool { return l.made(0) == 7 })
		l.publish(sid, "7")
		bustest.Until(t, "7 alone comes", h.has("7"))
		if err := inOrder(h.all()); err != nil {
			t.Errorf("%d servers: %v", servers, err)
		}
		lines := said.Lines("lane_made_again")
		if len(lines) != 2 || !strings.Contains(lines[0], "lane=l0 from=4 ") || !strings.Contains(lines[1], "lane=l0 from=7 ") {
			t.Errorf("%d servers: it says %q, want l0 from 4 and from 7", servers, lines)
		}
		// Who starts next takes it for the lane that it is.
		if err := testbus.Connect(t, nodes[0], "").Provision(testbus.Context(t), testbus.Conf(t, ""), 0); err != nil {
			t.Errorf("%d servers: provisioned after that: %v", servers, err)
		}
	}
}

// TestLaneIsMadeAgainByOneOfTwo: both of two hosts try to recreate a lane. One consumer
// is used, and no event is left out.
func TestLaneIsMadeAgainByOneOfTwo(t *testing.T) {
	t.Parallel()
	l := newLanes(t, ttlShort)
	sid := sidOn(0, 0)
	a, _ := runProvisionedLane(t, l.node, 1, 0, ackAll)
	b, _ := runProvisionedLane(t, l.node, 1, 0, ackAll)
	seen := func(text string) func() bool { return func() bool { return a.saw(text) || b.saw(text) } }
	last := 0
	for range 10 {
		for range 5 {
			last++
			l.publish(sid, numbered(last, last)...)
		}
		l.delete(0)
		l.publish(sid, numbered(last+1, last+2)...)
		last += 2
		bustest.Until(t, "the last event is delivered", seen(numbered(last, last)[0]))
	}
	bustest.Until(t, "all are acked", l.floor(0, uint64(last)))
	for _, text := range numbered(1, last) {
		if !seen(text)() {
			t.Errorf("%s was not delivered", text)
		}
	}
	for _, h := range []*host{a, b} {
		if err := inOrder(h.all()); err != nil {
			t.Error(err)
		}
	}
}

// TestLaneIsMadeAgainByAnotherOwner: the lane is deleted while no process runs it. A
// process that has read its state knows its ack floor. One that has not, but provisioned
// the lanes, recreates it from the log's beginning. One that did not provision does not.
func TestLaneIsMadeAgainByAnotherOwner(t *testing.T) {
	t.Parallel()
	l := newLanes(t, ttlShort)
	sid := sidOn(0, 0)
	first := runLane(t, l.node, 0, ackAll)
	l.publish(sid, numbered(1, 3)...)
	bustest.Until(t, "3 are acked", l.floor(0, 3))
	looks := testbus.Provisioned(t, l.node, setting("priority_timeout", ttlShort.String())...)
	if _, err := looks.Lane(0).Stray(testbus.Context(t)); err != nil { // as a session-actor does
		t.Fatal(err)
	}
	first.die()
	l.delete(0)
	if err := testbus.Connect(t, l.node, "").Lane(0).Run(testbus.Context(t), &owner{}); !errors.Is(err, natsio.ErrNotFound) {
		t.Errorf("who did not provision: got %v, want ErrNotFound", err)
	}
	l.publish(sid, "4")
	second := runLaneOf(t, looks, 0, ackAll)
	bustest.Until(t, "who looked has 4 alone", second.has("4"))
	bustest.Until(t, "4 are acked", l.floor(0, 4))
	second.die()
	l.delete(0)
	third, _ := runProvisionedLane(t, l.node, 1, 0, ackAll)
	bustest.Until(t, "who starts has all", third.has("1", "2", "3", "4"))
}

// TestLaneIsMadeAgainFromTheStart: an ack floor from another connection is not used.
func TestLaneIsMadeAgainFromTheStart(t *testing.T) {
	t.Parallel()
	l := newLanes(t, ttlShort)
	b := testbus.Provisioned(t, l.node, setting("priority_timeout", ttlShort.String())...)
	first := runLane(t, l.node, 0, ackAll)
	l.publish(sidOn(0, 0), numbered(1, 3)...)
	bustest.Until(t, "3 are acked", l.floor(0, 3))
	if _, err := b.Lane(0).Stray(testbus.Context(t)); err != nil { // it learns the ack floor
		t.Fatal(err)
	}
	first.die()
	l.node.Stop()
	l.node.Start()
	bustest.Until(t, "the lane is deleted", func() bool {
		ctx, cancel := context.WithTimeout(testbus.Context(t), time.Second) // the answer may be lost with the server
		defer cancel()
		err := l.js.DeleteConsumer(ctx, "REFOLD_LOG", "l0")
		return err == nil || errors.Is(err, jetstream.ErrConsumerNotFound)
	})
	h := runLaneOf(t, b, 0, ackAll)
	bustest.Until(t, "all comes again", h.has("1", "2", "3"))
}
