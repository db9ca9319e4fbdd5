package delivery

import (
	"sync"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/streams"
	"github.com/refold/refold/subjects"
)

// Source is where the deliveries of one connection come from. All methods may be
// called from several goroutines at once.
type Source struct {
	conn    *natsio.Conn
	names   subjects.Names
	streams *streams.Streams

	resets chan struct{} // has room for the one lane that is being reset
	floors sync.Map      // the laneFloor of each lane's consumer, as far as it is known
}

// New returns the source of a connection.
func New(conn *natsio.Conn, s *streams.Streams) *Source {
	return &Source{conn: conn, names: conn.Names(), streams: s, resets: make(chan struct{}, 1)}
}
