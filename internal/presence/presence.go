package presence

import (
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// Presence tells others that this process is there, and finds who else is, over one
// connection. All methods may be called from several goroutines at once.
type Presence struct {
	conn  *natsio.Conn
	names subjects.Names
}

// New returns the presence of a connection.
func New(conn *natsio.Conn) *Presence { return &Presence{conn, conn.Names()} }
