package natsio

import (
	"bytes"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// refusable is a connection of which a failed write says why the server closed it. A
// server that takes no more connections says so and closes before it has read anything,
// and the client library reports the failed write alone.
type refusable struct {
	net.Conn
	seen atomic.Int64           // bytes that were read
	said atomic.Pointer[[]byte] // the server's error
	open atomic.Bool            // the handshake is over: the server has answered a ping, or sent more than an error

	refused func(said string) // is called with the server's error, if that ends the handshake
}

// refusalWithin is how many bytes are searched for an error: those of the handshake.
const refusalWithin = 8 << 10

// unreadWithin is how long a failed write waits for the server's error.
const unreadWithin = 100 * time.Millisecond

func (c *refusable) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.seen.Load() >= refusalWithin {
		c.open.Store(true)
		return n, err
	}
	c.seen.Add(int64(n))
	if bytes.Contains(p[:n], []byte("PONG\r\n")) {
		c.open.Store(true)
	}
	if _, said, found := bytes.Cut(p[:n], []byte("-ERR ")); found {
		said, _, _ = bytes.Cut(bytes.Clone(said), []byte("\r\n"))
		if c.said.Store(&said); !c.open.Load() {
			c.refused(string(said))
		}
	}
	return n, err
}

// Write reads what the server has sent if a write of the handshake fails: the same
// goroutine reads and writes then, and has not read the error.
func (c *refusable) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if err == nil {
		return n, nil
	}
	for !c.open.Load() && c.said.Load() == nil && c.SetReadDeadline(time.Now().Add(unreadWithin)) == nil {
		if _, failed := c.Read(make([]byte, refusalWithin)); failed != nil {
			break
		}
	}
	if said := c.said.Load(); said != nil {
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
	custom nats.CustomDialer          // dials instead; nil: the Dialer
	opened atomic.Uint64

	refused func(said string)
}

// Dial implements nats.CustomDialer.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	if d.custom != nil {
		return d.count(d.custom.Dial(network, address))
	}
	return d.count(d.Dialer.Dial(network, address))
}

// InProcessConn implements nats.InProcessConnProvider.
func (d *dialer) InProcessConn() (net.Conn, error) { return d.count(d.server.InProcessConn()) }

func (d *dialer) count(conn net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	d.opened.Add(1)
	return &refusable{Conn: conn, refused: d.refused}, nil
}
