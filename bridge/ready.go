package bridge

import "context"

// NotReady returns why the bridge pulls no effects now, in sentences for people:
// NATS is not connected, a stream is missing, or Run has not begun or has ended.
// It returns nothing if the bridge pulls effects. It requests the server's state,
// until ctx ends.
func (b *Bridge) NotReady(ctx context.Context) []string {
	reasons := b.bus.NotReady(ctx)
	if !b.pulls.Load() {
		reasons = append(reasons, "the bridge does not pull effects")
	}
	return reasons
}
