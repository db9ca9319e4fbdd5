package natsio_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/natsio"
)

func TestViolationClosesConnectionForGood(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	b := testbus.Connect(t, node, "")
	open, stop := b.WhileOpen(t.Context())
	defer stop()
	node.Reload(bustest.MaxPayload(16))
	if err := b.PublishCore("refold.live.s1", make([]byte, 17)); err != nil {
		t.Fatalf("the client does not know the new limit: %v", err)
	}
	select {
	case <-open.Done():
	case <-testbus.Context(t).Done():
		t.Fatal("the connection is not closed")
	}
	err := b.ClosedForGood()
	if !errors.Is(err, natsio.ErrClosed) || !strings.Contains(err.Error(), "Maximum Payload Violation") {
		t.Errorf("got %v, want an ErrClosed with the server's reason", err)
	}
	if got := b.NotReady(t.Context()); len(got) != 1 || got[0] != err.Error() {
		t.Errorf("not ready: got %q, want %q", got, err)
	}
	other := testbus.Connect(t, bustest.Server(t), "")
	if other.Close(); other.ClosedForGood() != nil {
		t.Errorf("after Close: got %v, want nil", other.ClosedForGood())
	}
}

// TestFlushOutlivesALostConnection: a connection that is lost while a flush waits is made
// anew, and so is the flush. A daemon that registered itself at that moment ended.
func TestFlushOutlivesALostConnection(t *testing.T) {
	t.Parallel()
	wire := testbus.NewWire(t, bustest.Server(t).URL())
	b := testbus.ConnectWith(t, natsio.Options{URL: wire.URL})
	wire.Mute(true)
	flushed := make(chan error, 1)
	go func() { flushed <- b.Flush(testbus.Context(t)) }()
	bustest.Until(t, "its answer is dropped", wire.Dropped)
	wire.Mute(false)
	wire.Cut()
	if err := testbus.Within(t, flushed); err != nil {
		t.Errorf("got %v, want that it succeeds on the next connection", err)
	}
}

// TestLowServerLimitIsNoFaultOfMessage: a limit that is below Refold's need is the
// operator's to raise. The same message succeeds then, so it is not given up.
func TestLowServerLimitIsNoFaultOfMessage(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	b := testbus.Provisioned(t, node)
	node.Stop()
	node.Start(bustest.MaxPayload(64 << 10))
	bustest.Until(t, "it is connected again", b.IsConnected)
	for _, publish := range map[string]func() error{
		"event": func() error {
			_, err := b.Publish(testbus.Context(t), session.DoorIn, "s1", make([]byte, 100<<10), "1")
			return err
		},
		"core": func() error { return b.PublishCore("refold.live.s1", make([]byte, 100<<10)) },
	} {
		err := publish()
		var large *natsio.MaxPayloadError
		if errors.As(err, &large) || !natsio.IsTransient(err) || !strings.Contains(err.Error(), "raise max_payload") {
			t.Errorf("got %v, want a transient error that says what to do", err)
		}
	}
	if got := b.NotReady(t.Context()); len(got) != 1 || !strings.Contains(got[0], "raise max_payload") {
		t.Errorf("not ready: got %q, want the limit", got)
	}
}
