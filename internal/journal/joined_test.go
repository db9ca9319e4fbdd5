package journal_test

// Blobs and packs of two systems with one prefix, whose accounts a leafnode joins.

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/journal"
)

// joined returns connections to two systems.
func joined(t *testing.T) (hub, leaf *bus.Bus) {
	t.Helper()
	at := bustest.Server(t, bustest.Interval, bustest.Domain("hub"))
	there := bustest.Server(t, bustest.Interval, bustest.Domain("leaf"))
	bustest.Join(t, at, there)
	return testbus.Provisioned(t, at), testbus.Provisioned(t, there)
}

// A version that one system publishes is taken in the other too.
func TestPacksOfJoinedSystems(t *testing.T) {
	t.Parallel()
	hub, leaf := joined(t)
	ctx := testbus.Context(t)
	of := journal.Published{Pack: "crm", Version: "1.0.0", Manifest: []byte("hub's")}
	_, _, err := hub.PublishPack(ctx, of)
	bustest.OK(t, err)
	bustest.Until(t, "the version crosses", func() bool {
		got, err := leaf.Pack(ctx, of.Pack, of.Version)
		return err == nil && string(got.Manifest) == "hub's"
	})
	_, again, err := leaf.PublishPack(ctx, of)
	if err != nil || !again {
		t.Errorf("the same content: again %t (%v)", again, err)
	}
	of.Manifest = []byte("leaf's")
	var taken *journal.VersionTakenError
	if _, _, err := leaf.PublishPack(ctx, of); !errors.As(err, &taken) {
		t.Errorf("another content: got %v, want a *VersionTakenError", err)
	}
}

func TestBlobsOfJoinedSystems(t *testing.T) {
	t.Parallel()
	hub, leaf := joined(t)
	ctx := testbus.Context(t)
	stores := func(b *bus.Bus, content []byte) {
		t.Helper()
		ref, err := b.PutBlob(ctx, content)
		bustest.OK(t, err)
		if got, err := b.GetBlob(ctx, ref); err != nil || !bytes.Equal(got, content) {
			t.Errorf("got %d bytes (%v), want those that were stored", len(got), err)
		}
	}
	for _, b := range []*bus.Bus{hub, leaf} {
		stores(b, bytes.Repeat([]byte("both"), 1<<18))
		stores(b, bytes.Repeat([]byte(b.LogID()), 1<<14))
	}

	// The leaf has the description of a content whose chunks were lost on the way.
	content := []byte("lost on the way")
	subjectsOf(t, leaf, "$O.REFOLD_BLOBS.M.>")
	_, err := hub.PutBlob(ctx, content)
	bustest.OK(t, err)
	bustest.Until(t, "the description crosses", func() bool {
		s, err := leaf.JS.Stream(ctx, "OBJ_REFOLD_BLOBS")
		bustest.OK(t, err)
		info, err := s.Info(ctx, jetstream.WithSubjectFilter(leaf.Names().BlobSubject("*")))
		return err == nil && len(info.State.Subjects) == 4
	})
	if _, err := leaf.GetBlob(ctx, codec.RefOf(content)); err == nil {
		t.Error("the leaf reads a content whose chunks it does not have")
	}
	// An acknowledgement of the hub says nothing of the leaf, which stores no chunks.
	soon, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if _, err := leaf.PutBlob(soon, []byte("no room for chunks")); err == nil {
		t.Error("a content is stored without chunks")
	}
	subjectsOf(t, leaf, "$O.REFOLD_BLOBS.C.>", "$O.REFOLD_BLOBS.M.>")
	stores(leaf, content)
	stores(hub, content)
}

// subjectsOf sets what the blobs' stream stores.
func subjectsOf(t *testing.T, b *bus.Bus, subjects ...string) {
	t.Helper()
	testbus.Reconfigure(t, b.JS, "OBJ_REFOLD_BLOBS", func(cfg *jetstream.StreamConfig) { cfg.Subjects = subjects })
}
