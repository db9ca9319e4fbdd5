package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/presence"
)

// listen finds the running bridges, as Presence.Fleet does, and shows that it does.
func listen(ctx context.Context, s streams, b *bus.Bus, within time.Duration, enough func(*presence.Fleet) bool) (*presence.Fleet, error) {
	shown := newDisplay(s)
	defer shown.show("")
	return b.Fleet(ctx, within, enough, func(took time.Duration) {
		shown.show(fmt.Sprintf("listening to bridges: %s of %s at most", seconds(took), within))
	})
}

// hears reports whether a session-actor runs. One that is frozen still has its
// subscriptions, so only its heartbeats count.
func hears(ctx context.Context, actors *presence.Members) bool {
	ctx, cancel := context.WithTimeout(ctx, presence.GoneAfter)
	defer cancel()
	for len(actors.Known()) == 0 {
		select {
		case <-actors.Heartbeats():
		case <-ctx.Done():
			return false
		}
	}
	return true
}
