package journal_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/journal"
)

// poison is a client that may write to the object store, as every bridge may.
type poison struct {
	t  *testing.T
	b  *bus.Bus
	js jetstream.JetStream
}

func newPoison(t *testing.T) (context.Context, *bus.Bus, poison) {
	t.Helper()
	node := bustest.Server(t)
	b, ctx := testbus.Provisioned(t, node), testbus.Context(t)
	_, js := testbus.JS(t, node)
	return ctx, b, poison{t, b, js}
}

// describes adds a description of a blob.
func (p poison) describes(ref codec.Ref, info jetstream.ObjectInfo) {
	p.t.Helper()
	info.Name, info.Bucket = ref.String(), p.b.Names().BlobsBucket()
	data, err := json.Marshal(info)
	if err != nil {
		p.t.Fatal(err)
	}
	msg := nats.NewMsg(p.b.Names().BlobSubject(base64.URLEncoding.EncodeToString([]byte(ref.String()))))
	msg.Data = data
	if _, err := p.js.PublishMsg(p.t.Context(), msg); err != nil {
		p.t.Fatal(err)
	}
}

// chunks stores chunks under a name.
func (p poison) chunks(name string, n int, data []byte) {
	p.t.Helper()
	for range n {
		if _, err := p.js.PublishAsync(p.b.Names().BlobChunks(name), data); err != nil {
			p.t.Fatal(err)
		}
	}
	<-p.js.PublishAsyncComplete()
}

func digest(ref codec.Ref) string {
	return "SHA-256=" + base64.URLEncoding.EncodeToString(ref.Hash[:])
}

// TestAttackBlobSize: a description that claims a huge size allocates no memory, and
// reading endless chunks stops.
func TestAttackBlobSize(t *testing.T) {
	t.Parallel()
	ctx, b, p := newPoison(t)
	ref := codec.RefOf([]byte("content"))
	for _, size := range []uint64{1 << 62, 1 << 40, 1<<64 - 1} {
		p.describes(ref, jetstream.ObjectInfo{NUID: "small", Size: size, Chunks: 1, Digest: digest(ref)})
		if got, err := b.GetBlob(ctx, ref); err == nil || got != nil || !strings.Contains(err.Error(), "bytes") {
			t.Errorf("size %d: got %q, %v, want an error", size, got, err)
		}
	}
	p.chunks("endless", 64, make([]byte, 128<<10))
	ref = codec.RefOf([]byte("endless"))
	p.describes(ref, jetstream.ObjectInfo{NUID: "endless", Size: 7, Chunks: 1, Digest: digest(ref)})
	if got, err := b.GetBlob(ctx, ref); err == nil || got != nil || !strings.Contains(err.Error(), "more than 7 bytes") {
		t.Errorf("endless: got %d bytes, %v, want an error that says how many bytes were expected", len(got), err)
	}
	large := bytes.Repeat([]byte("x"), 1<<20)
	at, err := b.PutBlob(ctx, large)
	bustest.OK(t, err)
	if got, err := b.GetBlobUpTo(ctx, at, 1<<19); !errors.Is(err, journal.ErrTooLarge) || got != nil {
		t.Errorf("larger than the reader takes: got %d bytes, %v", len(got), err)
	}
	if got, err := b.GetBlobUpTo(ctx, at, 1<<20); err != nil || !bytes.Equal(got, large) {
		t.Errorf("as large as the reader takes: got %d bytes, %v", len(got), err)
	}
}

// TestAttackBlobChunks: a description that claims the chunks of all blobs does not cause
// their deletion when it is replaced, nor are they read.
func TestAttackBlobChunks(t *testing.T) {
	t.Parallel()
	ctx, b, p := newPoison(t)
	kept, err := b.PutBlob(ctx, []byte("somebody's"))
	bustest.OK(t, err)
	for _, name := range []string{">", "*", "", "a.b", "a b"} {
		content := []byte("content " + name)
		ref := codec.RefOf(content)
		p.describes(ref, jetstream.ObjectInfo{NUID: name, Size: 10, Chunks: 1})
		if got, err := b.GetBlob(ctx, ref); err == nil || got != nil {
			t.Errorf("chunks %q: got %q", name, got)
		}
		if _, err := b.PutBlob(ctx, content); err != nil {
			t.Errorf("chunks %q: put right: %v", name, err)
		}
		if got, err := b.GetBlob(ctx, ref); err != nil || !bytes.Equal(got, content) {
			t.Errorf("chunks %q: after it was put right: got %q, %v", name, got, err)
		}
		if got, err := b.GetBlob(ctx, kept); err != nil || string(got) != "somebody's" {
			t.Fatalf("chunks %q: another blob: got %q, %v", name, got, err)
		}
	}
}

// TestAttackSnapshotBlob: a snapshot whose blob is described again is read as it was
// stored; one whose blob never had the right bytes is ignored, so the session is folded
// from its events.
func TestAttackSnapshotBlob(t *testing.T) {
	t.Parallel()
	ctx, b, p := newPoison(t)
	data := append([]byte{0x81}, bytes.Repeat([]byte("x"), 600<<10)...)
	bustest.OK(t, b.PutSnapshot(ctx, "s1", 5, data))
	p.chunks("false", 1, []byte("false"))
	p.describes(codec.RefOf(data), jetstream.ObjectInfo{NUID: "false", Size: 5, Chunks: 1, Digest: digest(codec.RefOf(data))})
	if got, found, err := b.GetSnapshot(ctx, "s1"); err != nil || !found || !bytes.Equal(got, data) {
		t.Errorf("described again: got %d bytes, found %v, %v; want the snapshot", len(got), found, err)
	}
	for i, size := range []uint64{5, uint64(len(data)) + 1, 1 << 62} {
		data := slices.Concat(data, []byte{byte(i)})
		ref := codec.RefOf(data)
		p.describes(ref, jetstream.ObjectInfo{NUID: "false", Size: size, Chunks: 1, Digest: digest(ref)})
		bustest.OK(t, b.PutSnapshot(ctx, "s1", 6, data))
		got, found, err := b.GetSnapshot(ctx, "s1")
		if err != nil || found && !bytes.Equal(got, data) {
			t.Errorf("size %d: got %d bytes, found %v, %v; want none, or the snapshot", size, len(got), found, err)
		}
	}
}
