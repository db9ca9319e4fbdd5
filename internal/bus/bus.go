package bus

import (
	"cmp"
	"context"

	"github.com/refold/refold/internal/delivery"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/internal/streams"
	"github.com/refold/refold/subjects"
)

// Bus is one connection and everything that uses it. It is safe for concurrent use.
type Bus struct {
	*natsio.Conn
	*streams.Streams
	*journal.Journal
	*delivery.Source
	*presence.Presence
}

// Connect connects, checks the server, and asks how the servers sync. Its errors are
// those of natsio.Connect and of streams.New. Options without a domain have that of
// streams.conf.
func Connect(ctx context.Context, o natsio.Options) (*Bus, error) {
	names, err := subjects.New(o.Prefix)
	if err != nil {
		return nil, err
	}
	conf, err := streams.ParseConf(streams.File, names)
	if err != nil {
		return nil, err
	}
	o.Domain = cmp.Or(o.Domain, conf.Domain())
	conn, err := natsio.Connect(ctx, o)
	if err != nil {
		return nil, err
	}
	s, err := streams.New(ctx, conn, o)
	if err != nil {
		conn.Close()
		return nil, err
	}
	s.Identify(ctx)
	return &Bus{conn, s, journal.New(conn, s, o.CoreOnly), delivery.New(conn, s), presence.New(conn)}, nil
}

// Close closes the connection. Calls that wait on it return an error.
func (b *Bus) Close() {
	b.Journal.Close()
	b.Conn.Close()
}
