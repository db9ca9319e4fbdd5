package natsio

import (
	"context"
	"fmt"
)

// IsConnected reports whether the connection is there now. While it is not, it is
// being made again.
func (c *Conn) IsConnected() bool { return c.NC.IsConnected() }

// NotReady returns why nothing can be stored now: there is no connection, or a
// stream is missing. It is empty if all is well.
func (c *Conn) NotReady(ctx context.Context) (reasons []string) {
	if !c.IsConnected() {
		return []string{"NATS is not connected"}
	}
	for _, stream := range []string{c.names.LogStream(), c.names.EffectsStream()} {
		if _, err := c.JS.Stream(ctx, stream); err != nil {
			reasons = append(reasons, fmt.Sprintf("stream %s: %v", stream, err))
		}
	}
	return reasons
}
