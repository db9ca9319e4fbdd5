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

// Streams provisions the streams and consumers of one connection. It is safe for
// concurrent use. The zero value has provisioned nothing.
type Streams struct {
	conn  *natsio.Conn
	names subjects.Names

	durable     atomic.Pointer[durable]                // stored by New; Provision adds the copies
	bucket      atomic.Pointer[jetstream.StreamConfig] // of snapshots, as Provision created it
	provisioned atomic.Pointer[Conf]

	identifyNext atomic.Int64 // Unix nanoseconds: Identify does not ask before
	unidentified atomic.Bool  // this user may not read the log's identity
	replicas     atomic.Int64 // of each stream, as Provision was told; 0: any number
}

// New asks the servers of a connection, at the places in o, how they sync. If that
// contradicts o.Durability, the error wraps ErrDurability.
func New(ctx context.Context, conn *natsio.Conn, o natsio.Options) (*Streams, error) {
	s := &Streams{conn: conn, names: conn.Names()}
	if o.CoreOnly {
		return s, nil
	}
	return s, s.findDurability(ctx, o)
}

// Provisioned returns the configuration that this process provisioned, nil without one.
func (s *Streams) Provisioned() *Conf { return s.provisioned.Load() }

// KeepsSnapshots reports whether this process provisioned the bucket of snapshots and
// may call RemakeSnapshots.
func (s *Streams) KeepsSnapshots() bool { return s.bucket.Load() != nil }

// bucketTimeout bounds RemakeSnapshots. It is short, so that the caller soon retries
// with a new leader.
const bucketTimeout = time.Second

// RemakeSnapshots recreates the bucket of snapshots if it does not exist, with as many
// copies as the log has. The former snapshots and quarantines are lost.
func (s *Streams) RemakeSnapshots(ctx context.Context) error {
	cfg := *s.bucket.Load()
	ctx, cancel := context.WithTimeout(ctx, bucketTimeout)
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
			"note", "the bucket was deleted: sessions load from the log, and quarantines are lost")
	}
	return err
}
