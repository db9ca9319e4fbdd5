package streams_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/natsio"
)

// provisioned returns a connection to a server with the streams, and a plain client.
func provisioned(t *testing.T, node *bustest.Node) (*bus.Bus, jetstream.JetStream) {
	t.Helper()
	b := testbus.Provisioned(t, node)
	_, js := testbus.JS(t, node)
	return b, js
}

// keepRoom runs KeepRoom until the test ends.
func keepRoom(t *testing.T, b *bus.Bus, mine *atomic.Bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(testbus.Context(t))
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.KeepRoom(ctx, mine.Load)
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// fill publishes as a client until the log refuses, and returns that error.
func fill(t *testing.T, b *bus.Bus) error {
	t.Helper()
	ctx, body := testbus.Context(t), make([]byte, 1<<10)
	var err error
	bustest.Until(t, "the log refuses a client", func() bool {
		_, err = b.Publish(ctx, session.DoorIn, "s1", body, "")
		return errors.Is(err, natsio.ErrStreamFull)
	})
	return err
}

// takes reports whether the log stores events of a door.
func takes(t *testing.T, b *bus.Bus, door session.Door) bool {
	t.Helper()
	_, err := b.Publish(testbus.Context(t), door, "s1", []byte("x"), "")
	if err != nil && !errors.Is(err, natsio.ErrStreamFull) {
		t.Fatal(err)
	}
	return err == nil
}

func TestRoomIsKeptOfTheStream(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	b, js := provisioned(t, node)
	keeper := testbus.Connect(t, node, "")
	var mine atomic.Bool
	keepRoom(t, keeper, &mine)

	testbus.Reconfigure(t, js, "REFOLD_LOG", func(c *jetstream.StreamConfig) { c.MaxBytes = 256 << 10 })
	if err := fill(t, b); strings.Contains(err.Error(), "tenth") {
		t.Errorf("room is kept by a process that is not to do so: %v", err)
	}

	testbus.Reconfigure(t, js, "REFOLD_LOG", func(c *jetstream.StreamConfig) { c.MaxBytes = 270 << 10 })
	mine.Store(true)
	bustest.Until(t, "the log has no door for clients", func() bool {
		stream, err := js.Stream(testbus.Context(t), "REFOLD_LOG")
		return err == nil && !slices.Contains(stream.CachedInfo().Config.Subjects, "refold.in.*")
	})
	_, err := b.Publish(testbus.Context(t), session.DoorIn, "s1", []byte("x"), "")
	if !errors.Is(err, natsio.ErrStreamFull) || !strings.Contains(err.Error(), "the last tenth is kept") {
		t.Errorf("clients are told %v", err)
	}
	for _, door := range []session.Door{session.DoorTool, session.DoorLLM, session.DoorCtl} {
		if _, err := b.Publish(testbus.Context(t), door, "s1", []byte("x"), ""); err != nil {
			t.Errorf("through %s: %v", door, err)
		}
	}
	// A daemon that starts does not open the door.
	bustest.OK(t, b.Provision(testbus.Context(t), testbus.Conf(t, ""), 1))
	if takes(t, b, session.DoorIn) {
		t.Error("the log takes a client's request after a daemon has started")
	}
	// Another process goes on where this one stopped.
	mine.Store(false)
	var others atomic.Bool
	others.Store(true)
	keepRoom(t, testbus.Connect(t, node, ""), &others)
	bustest.Until(t, "the other process answers", func() bool {
		_, err := b.Publish(testbus.Context(t), session.DoorIn, "s1", []byte("x"), "")
		return errors.Is(err, natsio.ErrStreamFull)
	})

	testbus.Reconfigure(t, js, "REFOLD_LOG", func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 20 })
	bustest.Until(t, "clients are heard again", func() bool { return takes(t, b, session.DoorIn) })
}

func TestRoomIsKeptOfTheAccount(t *testing.T) {
	t.Parallel()
	node := bustest.Configured(t, `
jetstream { store_dir: "DIR", sync_interval: always }
accounts { A { jetstream { max_store: 1MB }, users: [{user: a, password: a}] } }
no_auth_user: a
`)
	b, js := provisioned(t, node)
	var mine atomic.Bool
	mine.Store(true)
	keepRoom(t, testbus.Connect(t, node, ""), &mine)
	bustest.Until(t, "the log refuses a client", func() bool {
		for range 100 {
			if _, err := b.Publish(testbus.Context(t), session.DoorIn, "s1", make([]byte, 1<<10), ""); err != nil {
				return strings.Contains(err.Error(), "tenth")
			}
			if stored, err := js.Stream(testbus.Context(t), "REFOLD_LOG"); err != nil || stored.CachedInfo().State.Bytes > 930<<10 {
				return false // what is left is for the doors below
			}
		}
		return false
	})
	if !takes(t, b, session.DoorTool) {
		t.Error("the log does not take what a bridge settles")
	}
}
