package host

import (
	"context"
	"fmt"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
)

// putDescriptors stores what an install record's tools look like to a model:
// model bridges fetch descriptors by hash.
func putDescriptors(ctx context.Context, w world, install *session.Install) error {
	for _, blob := range install.Registry.Blobs() {
		if _, err := w.PutBlob(ctx, blob.Content); err != nil {
			return fmt.Errorf("store descriptor %s: %w", blob.Ref, err)
		}
	}
	return nil
}

// EnsureInstall publishes record as the log's first install record if the log
// has none, and reports whether it did. It refuses a record with a fault.
func EnsureInstall(ctx context.Context, b *bus.Bus, record []byte) (bool, error) {
	if _, err := session.ParseInstall(record); err != nil {
		return false, err
	}
	_, stored, err := b.PublishInstall(ctx, record, true)
	return stored, err
}
