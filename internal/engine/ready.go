package engine

import (
	"context"
	"slices"
)

// NotReady returns why the host runs no sessions now, in sentences for people: NATS
// is not connected, a stream is missing or was changed, a lane stalls, or it has no share of the lanes yet, or
// none any more. It is empty if the host runs lanes or stands by for them. It asks
// the server, until ctx ends.
func (h *Host) NotReady(ctx context.Context) []string {
	reasons := h.bus.NotReady(ctx)
	switch _, joining, leaving := h.assignment.now(); {
	case joining:
		reasons = append(reasons, "it has not taken its share of the lanes yet")
	case leaving:
		reasons = append(reasons, "it hands its lanes over")
	}
	for _, why := range h.wrong.reasons() {
		if !slices.Contains(reasons, why) {
			reasons = append(reasons, why)
		}
	}
	return reasons
}
