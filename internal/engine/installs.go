package engine

import (
	"context"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
)

// EnsureInstall publishes record as the log's first install record if there is
// none, and reports whether it did. It refuses an invalid record.
func EnsureInstall(ctx context.Context, b *bus.Bus, record []byte) (bool, error) {
	if _, err := session.ParseInstall(record); err != nil {
		return false, err
	}
	_, stored, err := b.PublishInstall(ctx, record, true)
	return stored, err
}
