package delivery_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/delivery"
)

// A lane's window is also bounded in bytes, and no event is too large for it.

// padded returns a number in size bytes.
func padded(n, size int) string {
	return fmt.Sprint(n) + string(bytes.Repeat([]byte{' '}, size-len(fmt.Sprint(n))))
}

func TestLaneLargeEvents(t *testing.T) {
	t.Parallel()
	const (
		events     = 24
		size       = 1 << 20
		windowFits = 16 // a window has 16 MiB; subjects and replies take some
	)
	node := bustest.Server(t, func(o *server.Options) { o.MaxPayload = 32 << 20 })
	provisionLanes(t, node, ttlNever, 1)
	_, js := testbus.JS(t, node)
	l := &lanes{t: t, node: node, js: js}
	for n := 1; n <= events; n++ {
		l.publish(sidOn(0, 0), padded(n, size))
	}
	// Larger than a whole window, and not alone.
	l.publish(sidOn(0, 0), padded(events+1, 20<<20))
	l.publish(sidOn(0, 0), padded(events+2, 20<<20), fmt.Sprint(events+3))

	still := make(chan struct{})
	h := runLane(t, node, 0, func(d delivery.Delivery) {
		<-still
		d.Ack()
	})
	release := sync.OnceFunc(func() { close(still) })
	t.Cleanup(release)
	bustest.Until(t, "the window is full", func() bool { return l.info(0).NumAckPending >= windowFits*3/4 })
	if got := l.info(0).NumAckPending; got > windowFits {
		t.Errorf("got %d MiB received and not acked, want at most %d", got, windowFits)
	}
	release()
	bustest.Until(t, "all are acked", l.floor(0, events+3))
	if err := inOrder(h.all()); err != nil {
		t.Error(err)
	}
	if got := len(h.all()); got != events+3 {
		t.Errorf("got %d deliveries, want %d", got, events+3)
	}
}
