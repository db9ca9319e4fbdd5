package testbus

import (
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Wire is a proxy between a client and a server. It can drop the server's messages,
// and close all connections.
type Wire struct {
	URL            string
	muted, dropped atomic.Bool

	mu    sync.Mutex
	conns []net.Conn
}

// NewWire returns a wire to a server. It ends with the test.
func NewWire(t *testing.T, server string) *Wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &Wire{URL: "nats://" + l.Addr().String()}
	t.Cleanup(func() { l.Close(); w.Cut() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			upstream, err := net.Dial("tcp", strings.TrimPrefix(server, "nats://"))
			if err != nil {
				client.Close()
				continue
			}
			w.mu.Lock()
			w.conns = append(w.conns, client, upstream)
			w.mu.Unlock()
			go pass(upstream, client, upstream)
			go pass(&answers{w, client}, upstream, client)
		}
	}()
	return w
}

// pass copies one way until either side is closed, and closes the other side.
func pass(to io.Writer, from io.Reader, other io.Closer) {
	_, _ = io.Copy(to, from) // tests end connections in any way
	other.Close()
}

// Mute drops the server's messages from now on, or passes them again.
func (w *Wire) Mute(on bool) { w.muted.Store(on) }

// Dropped reports whether a message of the server was dropped.
func (w *Wire) Dropped() bool { return w.dropped.Load() }

// Cut closes every connection.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		c.Close()
	}
	w.conns = nil
}

// answers writes the server's messages to a client.
type answers struct {
	w      *Wire
	client net.Conn
}

func (a *answers) Write(p []byte) (int, error) {
	if a.w.muted.Load() {
		a.w.dropped.Store(true)
		return len(p), nil
	}
	return a.client.Write(p)
}
