package natsio

import (
	"bytes"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/nats-io/nats.go"
)

// refusable is a connection of which a failed write says why the server closed it. A
// server that takes no more connections says so and closes before it has read anything,
// and the client library reports the failed write alone.
type refusable struct {
	net.Conn
	seen int                    // bytes that were read; the reader's goroutine only
	said atomic.Pointer[[]byte] // the server's error
}

// refusalWithin is how many bytes are searched for an error: those of the handshake.
const refusalWithin = 8 << 10

func (c *refusable) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.seen < refusalWithin {
		c.seen += n
		if _, said, found := bytes.Cut(p[:n], []byte("-ERR ")); found {
			said, _, _ = bytes.Cut(bytes.Clone(said), []byte("\r\n"))
			c.said.Store(&said)
		}
	}
	return n, err
}

func (c *refusable) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if said := c.said.Load(); err != nil && said != nil {
		err = fmt.Errorf("the server said %s (%w)", *said, err)
	}
	return n, err
}

// dialer opens connections and counts them. Incarnation is read several times for
// each effect; the client library's own count takes the lock that publishing takes,
// which cost 10 us of a run with 1,000 runs in flight.
type dialer struct {
	net.Dialer
	server nats.InProcessConnProvider // nil: connect over TCP
	opened atomic.Uint64
}

// Dial implements nats.CustomDialer.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	return d.count(d.Dialer.Dial(network, address))
}

// InProcessConn implements nats.InProcessConnProvider.
func (d *dialer) InProcessConn() (net.Conn, error) { return d.count(d.server.InProcessConn()) }

func (d *dialer) count(conn net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	d.opened.Add(1)
	return &refusable{Conn: conn}, nil
}
