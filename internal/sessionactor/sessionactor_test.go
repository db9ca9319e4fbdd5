package sessionactor_test

// A session-actor on a server of its own: what it makes before a session can open, in
// which order, and why it does not start. cmd/session-actor and internal/devserver test
// closed connections.

import (
	"context"
	"errors"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/sessionactor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStreamsExistBeforePrepareAndTheRecordAfterIt(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	a := sessionactor.New(sessionactor.Options{
		Connect: natsio.Options{URL: node.URL()}, Install: session.BuiltinInstall(),
		Consumers: []sessionactor.Consumer{{Class: session.ClassTool, Target: "host"}},
		Prepare: func(ctx context.Context, b *bus.Bus) error {
			if targets, err := b.BridgeTargets(ctx, session.ClassTool); err != nil || !slices.Equal(targets, []string{"host"}) {
				t.Errorf("consumers: got %q (%v), want host", targets, err)
			}
			if _, stored, err := b.PublishInstall(ctx, session.BuiltinInstall(), true); err != nil || !stored {
				t.Errorf("an install record is there before Prepare (%v)", err)
			}
			return nil
		},
	})
	if got := a.NotReady(t.Context()); !slices.Equal(got, []string{"it starts"}) {
		t.Errorf("before Run: not ready: %q", got)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	select {
	case <-a.Ready():
	case err := <-ended:
		t.Fatalf("it ended: %v", err)
	}
	if got := a.NotReady(ctx); len(got) > 0 {
		t.Errorf("ready: not ready: %q", got)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("stopped: %v", err)
	}
}

func TestErrorOfPrepareEndsTheStart(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	broken := errors.New("it is broken")
	a := sessionactor.New(sessionactor.Options{
		Connect: natsio.Options{URL: node.URL()}, Install: session.BuiltinInstall(), ClosedExit: sessionactor.ClosedExit,
		Prepare: func(context.Context, *bus.Bus) error { return broken },
	})
	if err := a.Run(t.Context()); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}
