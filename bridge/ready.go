package bridge

import "context"

func (b *Bridge) setPulls(yes bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pulls = yes
}

// NotReady returns why the bridge takes no effects now, in sentences for people:
// NATS is not connected, a stream is missing, or Run has not begun or has ended.
// It is empty if the bridge takes effects. It asks the server, until ctx ends.
func (b *Bridge) NotReady(ctx context.Context) []string {
	reasons := b.bus.NotReady(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.pulls {
		reasons = append(reasons, "the bridge does not pull effects")
	}
	return reasons
}
