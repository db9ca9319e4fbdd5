package bus_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// wire stands between a client and a server: it can swallow what the server
// says, and cut all connections.
type wire struct {
	url   string
	muted atomic.Bool

	mu    sync.Mutex
	conns []net.Conn
}

func newWire(t *testing.T, server string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{url: "nats://" + l.Addr().String()}
	t.Cleanup(func() { l.Close(); w.cut() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			behind, err := net.Dial("tcp", strings.TrimPrefix(server, "nats://"))
			if err != nil {
				client.Close()
				continue
			}
			w.mu.Lock()
			w.conns = append(w.conns, client, behind)
			w.mu.Unlock()
			go pass(behind, client, behind)
			go pass(&answers{w, client}, behind, client)
		}
	}()
	return w
}

// pass copies one way until either side is closed, and closes the other side.
func pass(to io.Writer, from io.Reader, other io.Closer) {
	_, _ = io.Copy(to, from) // how a connection ends is what these tests vary
	other.Close()
}

// mute swallows all answers from now on, or lets them through again.
func (w *wire) mute(on bool) { w.muted.Store(on) }

// cut closes every connection.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		c.Close()
	}
	w.conns = nil
}

// answers is the way from the server to a client.
type answers struct {
	w      *wire
	client net.Conn
}

func (a *answers) Write(p []byte) (int, error) {
	if a.w.muted.Load() {
		return len(p), nil
	}
	return a.client.Write(p)
}
