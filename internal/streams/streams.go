package streams

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// Streams provisions the streams and consumers of one connection. All methods may
// be called from several goroutines at once. The zero value provisioned nothing.
type Streams struct {
	conn  *natsio.Conn
	names subjects.Names

	durable     atomic.Pointer[durable]                // found out by New; the copies by Provision
	bucket      atomic.Pointer[jetstream.StreamConfig] // of snapshots, as Provision made it
	provisioned atomic.Pointer[Conf]
}

// New finds out how the servers of a connection sync, as o says where to ask, and
// compares that with what o wants: the error wraps ErrDurability then.
func New(ctx context.Context, conn *natsio.Conn, o natsio.Options) (*Streams, error) {
	s := &Streams{conn: conn, names: conn.Names()}
	if o.CoreOnly {
		return s, nil
	}
	return s, s.findDurability(ctx, o)
}

// KeepsSnapshots reports whether this process provisioned the bucket of snapshots,
// and so makes it again when it is gone.
func (s *Streams) KeepsSnapshots() bool { return s.bucket.Load() != nil }

// bucketLookFor is for how long it is asked whether the bucket is gone, so that the
// next leader is heard as soon as it is there.
const bucketLookFor = time.Second

// RemakeSnapshots makes the bucket of snapshots if it is gone, with as many copies as
// the log has. What was in it is not there: snapshots, and what stopped sessions.
func (s *Streams) RemakeSnapshots(ctx context.Context) error {
	cfg := *s.bucket.Load()
	ctx, cancel := context.WithTimeout(ctx, bucketLookFor)
	defer cancel()
	_, err := s.conn.JS.Stream(ctx, cfg.Name)
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return err
	}
	if d := s.durable.Load(); d != nil {
		cfg.Replicas = max(cfg.Replicas, d.log)
	}
	if _, err = s.conn.JS.CreateStream(ctx, cfg); err == nil {
		s.conn.Log.Warn("snapshots_made_again", "stream", cfg.Name, "replicas", cfg.Replicas,
			"note", "the bucket was gone: sessions load from the log, and what stopped sessions is forgotten")
	}
	return err
}
