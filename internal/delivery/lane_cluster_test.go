package delivery_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
)

// In a cluster, a pin is lost whenever the consumer's leader changes, and deliveries
// may be lost with it.

// ackSoon is a short lease: an ack that is lost with a leader holds back the ack floor
// until the event is redelivered.
var ackSoon = setting("ack_wait", "3s")

func TestLaneLeaderChanges(t *testing.T) {
	t.Parallel()
	nodes := bustest.Cluster(t, 3)
	provisionLanes(t, nodes[0], ttlShort, 3, ackSoon...)
	nc, js := testbus.JS(t, nodes[0])
	l := &lanes{t: t, node: nodes[0], js: js}
	sid := sidOn(0, 0)
	h := runLane(t, nodes[0], 0, ackAll)
	last := 0
	more := func() {
		last++
		l.publish(sid, fmt.Sprint(last))
	}
	for change := range 3 {
		for range 20 {
			more()
		}
		leader := l.info(0).Cluster.Leader
		answer, err := nc.RequestWithContext(testbus.Context(t), "$JS.API.CONSUMER.LEADER.STEPDOWN.REFOLD_LOG.l0", nil)
		if err != nil || strings.Contains(string(answer.Data), `"error"`) {
			t.Fatalf("change %d: %v, %v", change, answer, err)
		}
		bustest.Until(t, "another leads", func() bool {
			more()
			c := l.info(0).Cluster
			return c != nil && c.Leader != "" && c.Leader != leader
		})
	}
	bustest.Until(t, "all are acked", l.floor(0, uint64(last)))
	if err := inOrder(h.all()); err != nil {
		t.Error(err)
	}
	if !h.saw(fmt.Sprint(last)) {
		t.Errorf("%d is acked, and was not delivered", last)
	}
}

// The owner's server dies, and its client reconnects to another.
func TestLaneNodeDies(t *testing.T) {
	t.Parallel()
	nodes := bustest.Cluster(t, 3)
	provisionLanes(t, nodes[0], ttlShort, 3, ackSoon...)
	_, js := testbus.JS(t, nodes[1])
	l := &lanes{t: t, node: nodes[0], js: js}
	sid := sidOn(0, 0)
	h := runLane(t, nodes[0], 0, ackAll)
	l.publish(sid, numbered(1, 20)...)
	bustest.Until(t, "20 are acked", l.floor(0, 20))
	nodes[0].Stop()
	for n := 21; n <= 40; n++ {
		bustest.Until(t, "an event is stored", func() bool { return storeOnce(t, js, sid, n) })
	}
	bustest.Until(t, "the owner has 40", func() bool { return h.saw("40") })
	bustest.Until(t, "all are acked", l.floor(0, 40))
	if err := inOrder(h.all()); err != nil {
		t.Error(err)
	}
}
