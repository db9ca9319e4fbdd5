package bridge

import (
	"errors"
	"testing"

	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/streams"
)

// TestLostLogStopsBridge: NATS is back with an empty store, and somebody has started
// anew. The bridge worked for the former log, and stops.
func TestLostLogStopsBridge(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	own := testbus.Provisioned(t, node)
	ctx := testbus.Context(t)
	b, err := Connect(ctx, Options{InProcess: node})
	bustest.OK(t, err)
	defer b.Close()
	bustest.OK(t, b.Model("p", answerFunc(nil)))
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	_, js := testbus.JS(t, node)
	bustest.Until(t, "the bridge serves its target, and knows its log", func() bool {
		_, err := js.Consumer(ctx, own.Names().EffectsStream(), "llm-p")
		return err == nil && b.bus.LogID() != ""
	})
	for _, stream := range own.Names().Streams() {
		bustest.OK(t, js.DeleteStream(ctx, stream))
	}
	fresh := testbus.Provisioned(t, node)
	var lost *streams.LogLostError
	if err := <-done; !errors.As(err, &lost) || lost.ID != own.LogID() || lost.Now != fresh.LogID() {
		t.Errorf("got %v, want that %s is lost, and %s in its place", err, own.LogID(), fresh.LogID())
	}
}
