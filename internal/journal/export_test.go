package journal

import (
	"context"
	"math"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/codec"
)

// Groups makes j store in groups, or one by one, until its connection is made again.
// After that it takes samples, and no sample proves single messages fast.
func (j *Journal) Groups(groups bool) {
	for _, c := range []*committer{j.logs, j.effects, j.timers, j.notices} {
		c.slowFrom, c.pace = 0, pace{fast: !groups, since: time.Now().Add(time.Hour), due: math.MaxInt}
	}
}

// DescribeDeleted stores the description with which a sweep deletes a blob whose last one it
// has read at a sequence.
func (j *Journal) DescribeDeleted(ctx context.Context, ref codec.Ref, read uint64) error {
	return j.putDescription(ctx, ref, read, jetstream.ObjectInfo{ObjectMeta: jetstream.ObjectMeta{Name: ref.String()}, Bucket: j.names.BlobsBucket(), Deleted: true})
}
