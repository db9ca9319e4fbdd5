package bus

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// errBucketThere says that the bucket of snapshots, which was not there, is: what
// was asked of it can be asked again.
var errBucketThere = errors.New("the bucket of snapshots is there again")

// Nobody responds for a stream that is gone, nor for one whose leader is being
// elected: whether it is gone is asked after so many times, some 0.2 s, and for so
// long, so that the next leader is heard as soon as it is there.
const (
	silentMax     = 6
	bucketLookFor = time.Second
)

// askBucket is retry for what is asked of the bucket of snapshots. Who provisioned
// the bucket makes it again when it is gone: a cache is nothing to wait for.
func (b *Bus) askBucket(ctx context.Context, f func(context.Context) error) error {
	silent := 0
	return b.retry(ctx, func(ctx context.Context) error {
		err := f(ctx)
		conf := b.bucket.Load()
		if err == nil || conf == nil {
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
		if missing := b.makeBucket(ctx, conf); missing != nil {
			return missing
		}
		return errBucketThere // without err, which trying again can't help
	})
}

// saysNoStream reports whether the server has answered that there is no such stream.
func saysNoStream(err error) bool {
	return codeOf(err) == codeStreamMissing || errors.Is(err, jetstream.ErrBucketNotFound)
}

// makeBucket makes the bucket of snapshots if it is gone, with as many copies as
// the log has. What was in it is not there: snapshots, and what stopped sessions.
func (b *Bus) makeBucket(ctx context.Context, conf *jetstream.StreamConfig) error {
	ctx, cancel := context.WithTimeout(ctx, bucketLookFor)
	defer cancel()
	_, err := b.js.Stream(ctx, conf.Name)
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return err
	}
	cfg := *conf
	if d := b.durable.Load(); d != nil {
		cfg.Replicas = max(cfg.Replicas, d.log)
	}
	if _, err = b.js.CreateStream(ctx, cfg); err == nil {
		b.log.Warn("snapshots_made_again", "stream", cfg.Name, "replicas", cfg.Replicas,
			"note", "the bucket was gone: sessions load from the log, and what stopped sessions is forgotten")
	}
	return err
}

// leaderKey reads what the bucket's leader has last under a key; ErrNotFound if
// nothing ever was there.
func (b *Bus) leaderKey(ctx context.Context, key string) (stored, error) {
	req := getRequest{LastFor: b.names.SnapshotsSubject(key)}
	m, err := b.leaderGet(ctx, b.names.SnapshotsStream(), req)
	if conf := b.bucket.Load(); conf != nil && errors.Is(err, ErrNoStream) {
		if err = b.retry(ctx, func(ctx context.Context) error { return b.makeBucket(ctx, conf) }); err == nil {
			m, err = b.leaderGet(ctx, b.names.SnapshotsStream(), req)
		}
	}
	return m, err
}
