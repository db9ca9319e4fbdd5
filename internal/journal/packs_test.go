package journal_test

// A published version never changes; a selector finds the newest version that it
// matches.

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
)

// packs returns a bus with the stream of packs.
func packs(t *testing.T) *bus.Bus {
	t.Helper()
	b := testbus.Provisioned(t, bustest.Server(t))
	return b
}

func TestVersionIsPublishedOnce(t *testing.T) {
	t.Parallel()
	b := packs(t)
	p := journal.Published{Pack: "crm", Version: "1.4.2", Manifest: []byte("one"), Signature: session.Signature{Key: "UKEY", Sig: "c2ln"}}
	first, again, err := b.PublishPack(t.Context(), p)
	if err != nil || again || first.Seq != 1 || first.Pack != "crm" || first.Version != "1.4.2" || string(first.Manifest) != "one" || first.Signature != p.Signature {
		t.Fatalf("got %+v, %t, %v", first, again, err)
	}
	p.Signature.Key = "UOTHER"
	if stands, again, err := b.PublishPack(t.Context(), p); err != nil || !again || stands.Seq != 1 || stands.Signature.Key != "UKEY" {
		t.Errorf("the same content again: got %+v, %t, %v", stands, again, err)
	}
	p.Manifest = []byte("two")
	var taken *journal.VersionTakenError
	if _, _, err := b.PublishPack(t.Context(), p); !errors.As(err, &taken) || taken.Seq != 1 || taken.Hash != codec.Sum([]byte("one")) {
		t.Errorf("other content: got %v", err)
	}
	all, err := b.Packs(t.Context())
	if err != nil || len(all) != 1 || string(all[0].Manifest) != "one" {
		t.Errorf("the list: got %+v, %v", all, err)
	}
	p.Version, p.Manifest = "1.4.3", make([]byte, 768<<10+1)
	var large *natsio.MaxPayloadError
	if _, _, err := b.PublishPack(t.Context(), p); !errors.As(err, &large) {
		t.Errorf("too large: got %v", err)
	}
	for _, bad := range []journal.Published{{Pack: "host", Version: "1.0.0"}, {Pack: "crm", Version: "1.0"}, {Pack: "a.b", Version: "1.0.0"}} {
		if _, _, err := b.PublishPack(t.Context(), bad); err == nil {
			t.Errorf("%s %s is published", bad.Pack, bad.Version)
		}
	}
}

// TestTwoPublishers: of two concurrent publishers of a version one wins, and the other
// gets a *VersionTakenError.
func TestTwoPublishers(t *testing.T) {
	t.Parallel()
	b := packs(t)
	errs := make(chan error, 8)
	for i := range cap(errs) {
		go func() {
			_, _, err := b.PublishPack(context.WithoutCancel(t.Context()), journal.Published{Pack: "crm", Version: "1.0.0", Manifest: []byte{byte(i)}})
			errs <- err
		}()
	}
	won := 0
	for range cap(errs) {
		var taken *journal.VersionTakenError
		if err := <-errs; err == nil {
			won++
		} else if !errors.As(err, &taken) {
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d of %d won, want 1", won, cap(errs))
	}
}

func TestSelectorsFindTheNewestVersion(t *testing.T) {
	t.Parallel()
	b := packs(t)
	versions := []string{"1.4.2", "1.10.0", "0.9.0", "2.0.0-rc.1", "1.4.10", "1.9.9"}
	for _, v := range versions {
		if _, _, err := b.PublishPack(t.Context(), journal.Published{Pack: "crm", Version: v, Manifest: []byte(v)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := b.PublishPack(t.Context(), journal.Published{Pack: "crm2", Version: "3.0.0", Manifest: []byte("3")}); err != nil {
		t.Fatal(err)
	}
	for selector, want := range map[string]string{
		"": "1.10.0", "1": "1.10.0", "1.4": "1.4.10", "1.4.2": "1.4.2", "0": "0.9.0", "2.0.0-rc.1": "2.0.0-rc.1", "2": "", "2.0.0": "", "x": "", "1.4.3": "",
	} {
		got, known, err := b.FindPack(t.Context(), "crm", selector)
		if got.Version != want || (err == nil) != (want != "") || err != nil && !errors.Is(err, natsio.ErrNotFound) {
			t.Errorf("%q: got %s, %v, want %q", selector, got.Version, err, want)
		}
		if slices.Sort(known); len(known) != len(versions) {
			t.Errorf("%q: known are %v", selector, known)
		}
	}
	if _, known, err := b.FindPack(t.Context(), "nobody", ""); !errors.Is(err, natsio.ErrNotFound) || len(known) != 0 {
		t.Errorf("no such pack: got %v, %v", known, err)
	}
}

// TestPublishedVersionsCantBeDeleted: not even by a user with all permissions.
func TestPublishedVersionsCantBeDeleted(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	b := testbus.Provisioned(t, node)
	if _, _, err := b.PublishPack(t.Context(), journal.Published{Pack: "crm", Version: "1.0.0", Manifest: []byte("one")}); err != nil {
		t.Fatal(err)
	}
	_, js := testbus.JS(t, node)
	stream, err := js.Stream(t.Context(), b.Names().PacksStream())
	bustest.OK(t, err)
	if err := stream.DeleteMsg(t.Context(), 1); err == nil {
		t.Error("the message is deleted")
	}
	if err := stream.Purge(t.Context()); err == nil {
		t.Error("the stream is purged")
	}
	if _, err := js.Publish(t.Context(), "refold.pack.crm.1_0_0", []byte("two")); err == nil {
		t.Error("a second message is stored")
	}
}
