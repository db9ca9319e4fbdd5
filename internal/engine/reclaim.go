package engine

import (
	"context"
	"time"
)

// reclaimAge is the age at which chunks of blobs that no description names are
// deleted: an upload takes seconds.
const reclaimAge = 24 * time.Hour

// reclaim deletes what failed uploads have left. The owner of lane 0 does it:
// bridges and clients store blobs too, and may delete nothing.
func (d *driver) reclaim(ctx context.Context) error {
	n, err := d.host.world.SweepBlobs(ctx, d.host.now().Add(-reclaimAge))
	if err != nil && ctx.Err() == nil {
		d.log.Warn("unused chunks of blobs not deleted", "error", err)
	}
	if n > 0 {
		d.log.Info("unused chunks of blobs deleted", "uploads", n)
	}
	return err
}
