package e2e_test

import (
	"net"
	"sync"
	"testing"
	"time"
)

// wire stands between who connects to it and a server, and can be cut, in one
// direction or both: as on a network, nobody is told. What is sent waits, and
// arrives when the wire is whole again, if somebody still listens.
type wire struct {
	listener net.Listener
	target   string
	serving  sync.WaitGroup

	mu    sync.Mutex
	whole sync.Cond // something changed
	cut   [2]bool   // by direction
	ended bool
	conns map[net.Conn]bool
}

// Directions of a wire.
const (
	toward = iota // to the server
	back          // from it
)

// newWire listens on loopback; it ends with the test.
func newWire(t testing.TB, target string) *wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{listener: listener, target: target, conns: map[net.Conn]bool{}}
	w.whole.L = &w.mu
	w.serving.Go(w.accept)
	t.Cleanup(w.end)
	return w
}

// address is where to connect.
func (w *wire) address() string { return w.listener.Addr().String() }

// set cuts directions, or makes them whole.
func (w *wire) set(cut bool, directions ...int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range directions {
		w.cut[d] = cut
	}
	w.whole.Broadcast()
}

// end ends it with all connections through it.
func (w *wire) end() {
	w.listener.Close()
	w.mu.Lock()
	w.ended = true
	for conn := range w.conns {
		conn.Close()
	}
	w.whole.Broadcast()
	w.mu.Unlock()
	w.serving.Wait()
}

// passes waits until nothing is cut of these directions; false: it has ended.
func (w *wire) passes(directions ...int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range directions {
		for w.cut[d] && !w.ended {
			w.whole.Wait()
		}
	}
	return !w.ended
}

func (w *wire) accept() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return
		}
		w.serving.Go(func() { w.serve(client) })
	}
}

// serve passes one connection on until it has ended on both sides.
func (w *wire) serve(client net.Conn) {
	defer client.Close()
	if !w.passes(toward, back) {
		return
	}
	server, err := net.DialTimeout("tcp", w.target, time.Second)
	if err != nil {
		return // who connects tries again
	}
	defer server.Close()
	w.mu.Lock()
	if w.ended {
		w.mu.Unlock()
		return
	}
	w.conns[client], w.conns[server] = true, true
	w.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { w.pump(server, client, toward) })
	both.Go(func() { w.pump(client, server, back) })
	both.Wait()
	w.mu.Lock()
	delete(w.conns, client)
	delete(w.conns, server)
	w.mu.Unlock()
}

// pump passes bytes on, and the end of them, while the wire is whole.
func (w *wire) pump(to, from net.Conn, direction int) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if !w.passes(direction) {
			return
		}
		if n > 0 {
			if _, failed := to.Write(buf[:n]); failed != nil {
				err = failed
			}
		}
		if err != nil {
			to.Close()
			if w.passes(toward, back) {
				from.Close()
			}
			return
		}
	}
}
