package streams_test

// The identity of a log: who makes it, where it is kept, and who knows it.

import (
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/oklog/ulid/v2"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// forget removes the identity from the log's stream, as older releases left it.
func forget(t *testing.T, js jetstream.JetStream, stream string) {
	t.Helper()
	testbus.Reconfigure(t, js, stream, func(cfg *jetstream.StreamConfig) { delete(cfg.Metadata, subjects.MetadataLog) })
}

func TestALogGetsItsIdentityWhenItIsCreated(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	ctx, conf := testbus.Context(t), testbus.Conf(t, "")
	before := testbus.Connect(t, node, "")
	if got := before.LogID(); got != "" {
		t.Errorf("without streams: got %q, want none", got)
	}
	b := testbus.Connect(t, node, "")
	bustest.OK(t, b.Provision(ctx, conf, 0))
	id := b.LogID()
	if _, err := ulid.ParseStrict(id); err != nil {
		t.Errorf("got %q (%v), want a ULID", id, err)
	}
	if got, err := b.ReadLogID(ctx); got != id || err != nil {
		t.Errorf("on the server: got %q (%v), want %q", got, err, id)
	}
	bustest.OK(t, b.Provision(ctx, conf, 0))
	if got := b.LogID(); got != id {
		t.Errorf("provisioned again: got %q, want %q", got, id)
	}
	bustest.Until(t, "one that was there before learns it", func() bool {
		before.Identify(ctx)
		return before.LogID() == id
	})
	other := testbus.Connect(t, node, "other")
	bustest.OK(t, other.Provision(ctx, testbus.Conf(t, "other"), 0))
	if got := other.LogID(); got == id || got == "" {
		t.Errorf("another prefix: got %q, want another identity than %q", got, id)
	}
}

func TestDaemonsThatProvisionAtOnceAgreeOnTheIdentity(t *testing.T) {
	t.Parallel()
	for name, older := range map[string]bool{"a new log": false, "a log without one": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := bustest.Server(t)
			ctx, conf := testbus.Context(t), testbus.Conf(t, "")
			if older {
				b := testbus.Provisioned(t, node)
				_, js := testbus.JS(t, node)
				forget(t, js, b.Names().LogStream())
			}
			ids := make([]string, 8)
			var all sync.WaitGroup
			for i := range ids {
				b := testbus.Connect(t, node, "")
				all.Go(func() {
					if err := b.Provision(ctx, conf, 0); err != nil {
						t.Error(err)
					}
					ids[i] = b.LogID()
				})
			}
			all.Wait()
			want, err := testbus.Connect(t, node, "").ReadLogID(ctx)
			bustest.OK(t, err)
			for _, got := range ids {
				if got != want || got == "" {
					t.Errorf("got %q, want what the stream has, %q", got, want)
				}
			}
		})
	}
}

// A copy of a log without the stream's metadata is the same log.
func TestALogThatLostItsMetadataKeepsItsIdentity(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	ctx, conf := testbus.Context(t), testbus.Conf(t, "")
	b := testbus.Provisioned(t, node)
	_, js := testbus.JS(t, node)
	id := b.LogID()
	forget(t, js, b.Names().LogStream())
	again := testbus.Connect(t, node, "")
	bustest.OK(t, again.Provision(ctx, conf, 0))
	if got, err := again.ReadLogID(ctx); got != id || err != nil {
		t.Errorf("got %q (%v), want %q", got, err, id)
	}
}

// A header that is no identity does not become one.
func TestOddHeaderIsNoIdentity(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	ctx, conf := testbus.Context(t), testbus.Conf(t, "")
	_, js := testbus.JS(t, node)
	b := testbus.Provisioned(t, node)
	names := b.Names()
	for _, stream := range []string{names.LogStream(), names.EffectsStream(), names.TimersStream()} {
		forget(t, js, stream)
	}
	subject, err := names.Log(session.DoorIn, "s1")
	bustest.OK(t, err)
	first := nats.NewMsg(subject)
	first.Header.Set(subjects.HeaderLog, strings.Repeat("x", 40))
	if _, err := js.PublishMsg(ctx, first); err != nil {
		t.Fatal(err)
	}
	again := testbus.Connect(t, node, "")
	bustest.OK(t, again.Provision(ctx, conf, 0))
	if got := again.LogID(); len(got) != 26 {
		t.Errorf("got the identity %q, want a ULID", got)
	}
}

// A copy of only the events is the same log, since they name it: with another identity
// it would skip them all.
func TestCopiedEventsKeepTheirIdentity(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	ctx, conf := testbus.Context(t), testbus.Conf(t, "")
	b := testbus.Provisioned(t, node)
	_, js := testbus.JS(t, node)
	id, names := b.LogID(), b.Names()
	_, err := b.Publish(ctx, session.DoorIn, "s1", []byte("{}"), "")
	bustest.OK(t, err)
	for _, stream := range []string{names.LogStream(), names.EffectsStream(), names.TimersStream()} {
		forget(t, js, stream)
	}
	again := testbus.Connect(t, node, "")
	bustest.OK(t, again.Provision(ctx, conf, 0))
	if got := again.LogID(); got != id {
		t.Errorf("got %q, want %q", got, id)
	}
}

// A user without the permission to read the log's info is asked once, and connects.
func TestADeniedUserKnowsNoIdentity(t *testing.T) {
	t.Parallel()
	node := bustest.Configured(t, `
		jetstream { store_dir: DIR }
		authorization { users: [
			{user: a, password: a}
			{user: u, password: p, permissions: { publish: { deny: ["$JS.API.STREAM.INFO.>"] } }}
		] }
	`)
	at := func(user string) string { return "nats://" + user + "@" + node.URL()[len("nats://"):] }
	admin := testbus.ConnectWith(t, natsio.Options{URL: at("a:a")})
	bustest.OK(t, admin.Provision(testbus.Context(t), testbus.Conf(t, ""), 0))
	b := testbus.ConnectWith(t, natsio.Options{URL: at("u:p"), CoreOnly: true})
	if got := b.LogID(); got != "" {
		t.Errorf("got %q, want none", got)
	}
}
