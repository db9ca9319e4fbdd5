package journal

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/natsio"
)

// errBucketThere says that the bucket of snapshots, which was not there, is: what
// was asked of it can be asked again.
const errBucketThere = natsio.Retryable("the bucket of snapshots is there again")

// Nobody responds for a stream that is gone, nor for one whose leader is being
// elected: whether it is gone is asked after so many times, some 0.2 s.
const silentMax = 6

// askBucket is Retry for what is asked of the bucket of snapshots. Who provisioned
// the bucket makes it again when it is gone: a cache is nothing to wait for.
func (j *Journal) askBucket(ctx context.Context, f func(context.Context) error) error {
	silent := 0
	return j.conn.Retry(ctx, func(ctx context.Context) error {
		err := f(ctx)
		if err == nil || !j.streams.KeepsSnapshots() {
			return err
		}
		switch {
		case saysNoStream(err), errors.Is(err, jetstream.ErrNoStreamResponse): // that was tried for half a second
		case errors.Is(err, nats.ErrNoResponders):
			if silent++; silent < silentMax {
				return err
			}
		default:
			return err
		}
		if missing := j.streams.RemakeSnapshots(ctx); missing != nil {
			return missing
		}
		return errBucketThere // without err, which trying again can't help
	})
}

// saysNoStream reports whether the server has answered that there is no such stream.
func saysNoStream(err error) bool {
	return natsio.CodeOf(err) == natsio.CodeStreamMissing || errors.Is(err, jetstream.ErrBucketNotFound)
}

// leaderKey reads what the bucket's leader has last under a key; ErrNotFound if
// nothing ever was there.
func (j *Journal) leaderKey(ctx context.Context, key string) (stored, error) {
	req := getRequest{LastFor: j.names.SnapshotsSubject(key)}
	m, err := j.leaderGet(ctx, j.names.SnapshotsStream(), req)
	if j.streams.KeepsSnapshots() && errors.Is(err, natsio.ErrNoStream) {
		if err = j.conn.Retry(ctx, j.streams.RemakeSnapshots); err == nil {
			m, err = j.leaderGet(ctx, j.names.SnapshotsStream(), req)
		}
	}
	return m, err
}
