package delivery

import (
	"sync"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/streams"
	"github.com/refold/refold/subjects"
)

// Source makes the lanes and pullers of one connection. It is safe for concurrent use.
type Source struct {
	conn    *natsio.Conn
	names   subjects.Names
	streams *streams.Streams

	resets chan struct{} // of capacity 1: full while a lane is reset
	floors sync.Map      // the known laneFloor of each lane's consumer
}

// New returns the source of a connection.
func New(conn *natsio.Conn, s *streams.Streams) *Source {
	return &Source{conn: conn, names: conn.Names(), streams: s, resets: make(chan struct{}, 1)}
}
