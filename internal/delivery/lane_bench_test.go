package delivery_test

import (
	"context"
	"testing"

	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/delivery"
)

type ackingOwner struct{ left chan struct{} }

func (ackingOwner) Epoch(uint64)           {}
func (ackingOwner) Skipped(uint64, string) {}

func (o ackingOwner) Deliver(d delivery.Delivery) {
	d.Take()
	d.Ack()
	o.left <- struct{}{}
}

// BenchmarkLane receives, delivers and acks one event.
func BenchmarkLane(b *testing.B) {
	node := bustest.Server(b)
	c := testbus.Provisioned(b, node)
	_, js := testbus.JS(b, node)
	for n := range b.N {
		if _, err := js.PublishAsync("refold.in."+sidOn(0, 0), []byte(`{"type":"RunRequested"}`)); err != nil {
			b.Fatal(err)
		}
		if n%256 == 0 {
			<-js.PublishAsyncComplete()
		}
	}
	<-js.PublishAsyncComplete()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	o := ackingOwner{left: make(chan struct{}, 1024)}
	b.ResetTimer()
	go func() { _ = c.Lane(0).Run(ctx, o) }()
	for range b.N {
		<-o.left
	}
}
