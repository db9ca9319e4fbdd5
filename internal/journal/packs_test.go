package journal_test

// A published version never changes; a selector finds the newest version that it
// matches.

import (
	"context"
	"encoding/base64"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/space"
)

// packs returns a bus with the stream of packs.
func packs(t *testing.T) *bus.Bus {
	t.Helper()
	b := testbus.Provisioned(t, bustest.Server(t))
	return b
}

// signer is a publisher's key.
type signer struct {
	nkeys.KeyPair
	key string
}

func newSigner(t *testing.T) signer {
	t.Helper()
	pair, err := nkeys.CreateUser()
	bustest.OK(t, err)
	key, err := pair.PublicKey()
	bustest.OK(t, err)
	return signer{pair, key}
}

func (s signer) sign(t *testing.T, manifest []byte) space.Signature {
	t.Helper()
	sig, err := s.Sign(space.SignedText(manifest))
	bustest.OK(t, err)
	return space.Signature{Key: s.key, Sig: base64.RawURLEncoding.EncodeToString(sig)}
}

func manifest(pack, version, description string) []byte {
	return (&space.Manifest{V: 1, Kind: space.Pack, Space: pack, Version: version, Description: description}).Bytes()
}

// publish publishes a manifest as a version, signed by all signers.
func publish(t *testing.T, b *bus.Bus, pack, version string, manifest []byte, by ...signer) journal.Published {
	t.Helper()
	p := journal.Published{Pack: pack, Version: version, Manifest: manifest}
	for _, s := range by {
		p.Signatures = append(p.Signatures, s.sign(t, manifest))
	}
	current, _, err := b.PublishPack(t.Context(), p)
	bustest.OK(t, err)
	return current
}

func TestVersionIsPublishedOnce(t *testing.T) {
	t.Parallel()
	b := packs(t)
	ours, other := newSigner(t), newSigner(t)
	p := journal.Published{Pack: "crm", Version: "1.4.2", Manifest: []byte("one"), Signatures: []space.Signature{ours.sign(t, []byte("one"))}}
	first, again, err := b.PublishPack(t.Context(), p)
	if err != nil || again || !reflect.DeepEqual(first, journal.Published{Pack: "crm", Version: "1.4.2", Seq: 1, Manifest: []byte("one"), Signatures: p.Signatures}) {
		t.Fatalf("got %+v, %t, %v", first, again, err)
	}
	if stands, again, err := b.PublishPack(t.Context(), p); err != nil || !again || !reflect.DeepEqual(stands, first) {
		t.Errorf("the same again: got %+v, %t, %v", stands, again, err)
	}
	p.Signatures = []space.Signature{other.sign(t, []byte("one"))}
	stands, again, err := b.PublishPack(t.Context(), p)
	if err != nil || !again || stands.Seq != 1 || len(stands.Signatures) != 2 || !slices.Contains(stands.Signatures, p.Signatures[0]) || !slices.Contains(stands.Signatures, first.Signatures[0]) {
		t.Errorf("the same content, signed by another: got %+v, %t, %v", stands, again, err)
	}
	p.Manifest = []byte("two")
	var taken *journal.VersionTakenError
	if _, _, err := b.PublishPack(t.Context(), p); !errors.As(err, &taken) || taken.Seq != 1 || taken.Hash != codec.Sum([]byte("one")) {
		t.Errorf("other content: got %v", err)
	}
	all, err := b.Packs(t.Context(), "")
	if err != nil || len(all) != 1 || string(all[0].Manifest) != "one" || len(all[0].Signatures) != 2 {
		t.Errorf("the list: got %+v, %v", all, err)
	}
	p.Version, p.Manifest = "1.4.3", make([]byte, 768<<10+1)
	var large *natsio.MaxPayloadError
	if _, _, err := b.PublishPack(t.Context(), p); !errors.As(err, &large) {
		t.Errorf("too large: got %v", err)
	}
	for _, bad := range []journal.Published{
		{Pack: "host", Version: "1.0.0"}, {Pack: "crm", Version: "1.0"}, {Pack: "a.b", Version: "1.0.0"},
		{Pack: "crm", Version: "9.0.0", Signatures: []space.Signature{{Key: "UKEY", Sig: p.Signatures[0].Sig}}},
		{Pack: "crm", Version: "9.0.0", Signatures: []space.Signature{{Key: ours.key, Sig: "c2ln"}}},
	} {
		if _, _, err := b.PublishPack(t.Context(), bad); err == nil {
			t.Errorf("%s %s is published", bad.Pack, bad.Version)
		}
	}
	if _, err := b.Pack(t.Context(), "crm", "9.0.0"); !errors.Is(err, natsio.ErrNotFound) {
		t.Errorf("after a signature that is none: got %v", err)
	}
}

// TestAttackPublishedVersions: whatever somebody else publishes, a grant finds the
// newest version that it trusts, and a publisher can add its signature.
func TestAttackPublishedVersions(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	b := testbus.Provisioned(t, node)
	ours, renewed, other := newSigner(t), newSigner(t), newSigner(t)
	publish(t, b, "crm", "1.0.0", manifest("crm", "1.0.0", ""), ours)
	pinned := manifest("crm", "1.1.0", "")
	publish(t, b, "crm", "1.1.0", pinned, ours)
	publish(t, b, "crm", "2.0.0", manifest("crm", "2.0.0", ""), ours)
	first := manifest("crm", "1.2.0", "")
	publish(t, b, "crm", "1.2.0", first, other) // somebody else publishes our content first

	publish(t, b, "crm", "1.999999.0", manifest("crm", "1.999999.0", ""), other)
	publish(t, b, "crm", "1.5.0", pinned, ours)                        // our manifest under another version
	publish(t, b, "crm", "1.6.0", manifest("shop", "1.6.0", ""), ours) // our manifest of another pack
	publish(t, b, "crm", "1.7.0", []byte("no manifest"), other)        // not a manifest
	_, js := testbus.JS(t, node)
	for _, subject := range []string{
		"refold.pack.crm.1_8_0." + ours.key + "." + ours.sign(t, pinned).Sig,                                   // a signature of a version that is not published
		"refold.pack.crm.1_999999_0." + ours.key + "." + ours.sign(t, pinned).Sig,                              // our signature of another manifest
		"refold.pack.crm.1_2_0." + ours.key + "." + other.sign(t, first).Sig,                                   // another's signature under our key
		"refold.pack.crm.1_2_0." + ours.key + ".x", "refold.pack.crm.1_2_0.nobody." + other.sign(t, first).Sig, // no signatures at all
	} {
		if _, err := js.Publish(t.Context(), subject, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	grant := func(version string, keys ...string) *space.Trust { return &space.Trust{Keys: keys, Version: version} }
	for name, c := range map[string]struct {
		selector string
		trust    *space.Trust
		want     string
		by       string
	}{
		"any version":           {"", grant("", ours.key), "2.0.0", ours.key},
		"the grant's version":   {"", grant("1", ours.key), "1.1.0", ours.key},
		"a selector":            {"1", grant("", ours.key), "1.1.0", ours.key},
		"exactly":               {"1.0.0", grant("1", ours.key), "1.0.0", ours.key},
		"outside the grant":     {"2", grant("1", ours.key), "", ""},
		"another's version":     {"1.999999", grant("", ours.key), "", ""},
		"our content elsewhere": {"1.5.0", grant("", ours.key), "", ""},
		"another's signature":   {"1.2", grant("", ours.key), "", ""},
		"a digest":              {"", &space.Trust{Digests: []string{codec.Sum(pinned).String()}}, "1.1.0", ""},
		"a digest and a key":    {"1", &space.Trust{Digests: []string{codec.Sum(pinned).String()}, Keys: []string{renewed.key}}, "1.1.0", ""},
		"a digest of nothing":   {"", &space.Trust{Digests: []string{codec.Sum(nil).String()}}, "", ""},
		"the other":             {"", grant("", other.key), "1.999999.0", other.key},
	} {
		got, err := b.FindPack(t.Context(), "crm", c.selector, c.trust)
		by := ""
		if len(got.Signatures) > 0 {
			by = got.Signatures[0].Key
		}
		if got.Version != c.want || by != c.by || (err == nil) != (c.want != "") {
			t.Errorf("%s: got %q by %q, %v, want %q by %q", name, got.Version, by, err, c.want, c.by)
		}
	}
	// Our key adds its signature to what somebody else published.
	if stands := publish(t, b, "crm", "1.2.0", first, ours); len(stands.Signatures) != 2 {
		t.Errorf("signed by both: got %+v", stands.Signatures)
	}
	// Rotation: a new key, then both, then the old one is revoked.
	publish(t, b, "crm", "1.2.0", first, renewed)
	for name, trust := range map[string]*space.Trust{"the old key": grant("1", ours.key), "both": grant("1", ours.key, renewed.key), "the new key": grant("1", renewed.key)} {
		if got, err := b.FindPack(t.Context(), "crm", "", trust); err != nil || got.Version != "1.2.0" {
			t.Errorf("%s: got %q, %v", name, got.Version, err)
		}
	}
	if got, err := b.NewestPacks(t.Context(), "c", grant("", renewed.key), 8); err != nil || len(got) != 1 || got[0].Version != "1.2.0" {
		t.Errorf("the newest packs: got %+v, %v", got, err)
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
		got, err := b.FindPack(t.Context(), "crm", selector, nil)
		if got.Version != want || (err == nil) != (want != "") || err != nil && !errors.Is(err, journal.ErrVersion) {
			t.Errorf("%q: got %s, %v, want %q", selector, got.Version, err, want)
		}
	}
	if _, err := b.FindPack(t.Context(), "nobody", "", nil); !errors.Is(err, natsio.ErrNotFound) {
		t.Errorf("no such pack: got %v", err)
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
