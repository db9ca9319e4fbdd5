package natsio

import (
	"bytes"
	"encoding/json"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"
)

// infoBytesMax is how much of a server's first words is looked at.
const infoBytesMax = 16 << 10

// dialer connects, and listens in on the first line that the server says: it
// has the server's version even if the handshake fails later. It counts the
// connections that were begun.
type dialer struct {
	begun  atomic.Uint64
	server nats.InProcessConnProvider // nil: none in this process

	mu      sync.Mutex
	version string
}

// InProcessConn implements nats.InProcessConnProvider.
func (d *dialer) InProcessConn() (net.Conn, error) {
	d.begun.Add(1)
	return d.server.InProcessConn()
}

// Dial implements nats.CustomDialer.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	d.begun.Add(1)
	conn, err := net.DialTimeout(network, address, connectTimeout)
	if err != nil {
		return nil, err
	}
	return &infoConn{Conn: conn, dialer: d}, nil
}

func (d *dialer) serverVersion() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.version
}

// heard takes the first line: INFO {json}.
func (d *dialer) heard(line []byte) {
	text, ok := bytes.CutPrefix(line, []byte("INFO "))
	if !ok {
		return
	}
	var info struct {
		Version string `json:"version"`
	}
	if json.Unmarshal(bytes.TrimSpace(text), &info) == nil {
		d.mu.Lock()
		d.version = info.Version
		d.mu.Unlock()
	}
}

// infoConn passes everything through, and its first line to the dialer too.
type infoConn struct {
	net.Conn
	dialer *dialer
	line   []byte
	done   bool
}

func (c *infoConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.done {
		return n, err
	}
	c.line = append(c.line, p[:n]...)
	if end := bytes.IndexByte(c.line, '\n'); end >= 0 {
		c.dialer.heard(c.line[:end])
		c.done, c.line = true, nil
	} else if len(c.line) > infoBytesMax {
		c.done, c.line = true, nil
	}
	return n, err
}

// redact takes user, password and token out of addresses.
func redact(urls string) string {
	all := strings.Split(urls, ",")
	for i, one := range all {
		if u, err := url.Parse(strings.TrimSpace(one)); err == nil && u.User != nil {
			u.User = nil
			all[i] = u.String()
		}
	}
	return strings.Join(all, ",")
}
