package bus

import (
	"context"
	"fmt"
)

// IsConnected reports whether the connection is there now. While it is not, it is
// being made again.
func (b *Bus) IsConnected() bool { return b.nc.IsConnected() }

// NotReady returns why nothing can be stored now: there is no connection, or a
// stream is missing. It is empty if all is well.
func (b *Bus) NotReady(ctx context.Context) (reasons []string) {
	if !b.IsConnected() {
		return []string{"NATS is not connected"}
	}
	for _, stream := range []string{b.names.LogStream(), b.names.EffectsStream()} {
		if _, err := b.js.Stream(ctx, stream); err != nil {
			reasons = append(reasons, fmt.Sprintf("stream %s: %v", stream, err))
		}
	}
	return reasons
}
