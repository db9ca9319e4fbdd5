package engine

import (
	"context"
	"time"
)

// Chunks of blobs that no description names are deleted once a day, when they are
// older than that: an upload takes seconds.
const (
	reclaimEvery = 24 * time.Hour
	reclaimAge   = 24 * time.Hour
)

// reclaim deletes what failed uploads have left, until ctx ends. The owner of lane 0
// does it: bridges and clients store blobs too, and may delete nothing.
func (d *driver) reclaim(ctx context.Context) {
	for next := scrubFirst; pause(ctx, next); {
		next = scrubFirst
		if !d.owned() {
			continue
		}
		n, err := d.host.world.SweepBlobs(ctx, d.host.now().Add(-reclaimAge))
		if err != nil && ctx.Err() == nil {
			d.log.Warn("unused chunks of blobs not deleted", "error", err)
		}
		if n > 0 {
			d.log.Info("unused chunks of blobs deleted", "uploads", n)
		}
		next = reclaimEvery
	}
}
