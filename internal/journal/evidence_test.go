package journal_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/natsio"
)

// A large snapshot is a blob, which is deleted when another snapshot replaces it. If its
// content is stored again after that, it stays.
func TestKeptBlobOutlivesItsSnapshot(t *testing.T) {
	t.Parallel()
	b, ctx := testbus.Provisioned(t, bustest.Server(t)), testbus.Context(t)
	wrong := append([]byte{0x81}, bytes.Repeat([]byte("x"), 600<<10)...)
	right := append([]byte{0x81}, bytes.Repeat([]byte("y"), 600<<10)...)
	for _, data := range [][]byte{wrong, right} {
		bustest.OK(t, b.PutSnapshot(ctx, "s1", 5, data))
	}
	if _, err := b.GetBlob(ctx, codec.RefOf(wrong)); !errors.Is(err, natsio.ErrNotFound) {
		t.Errorf("replaced: got %v, want ErrNotFound", err)
	}
	kept, err := b.PutBlob(ctx, wrong)
	bustest.OK(t, err)
	if err := b.PutSnapshot(ctx, "s1", 6, append(right, 'z')); err != nil { // of the released session
		t.Fatal(err)
	}
	if got, err := b.GetBlob(ctx, kept); err != nil || !bytes.Equal(got, wrong) {
		t.Errorf("kept: got %d bytes, %v, want the %d of the wrong one", len(got), err, len(wrong))
	}
}
