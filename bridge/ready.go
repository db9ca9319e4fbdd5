package bridge

import "context"

// NotReady returns why the bridge takes no effects now, in sentences for people:
// NATS is not connected, a stream is missing, or Run has not begun or has ended.
// It is empty if the bridge takes effects. It asks the server, until ctx ends.
func (b *Bridge) NotReady(ctx context.Context) []string {
	reasons := b.bus.NotReady(ctx)
	if !b.pulls.Load() {
		reasons = append(reasons, "the bridge does not pull effects")
	}
	return reasons
}
