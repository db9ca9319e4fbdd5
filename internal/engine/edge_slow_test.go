package engine_test

// A host that the server takes for a slow consumer: nothing of what it is sent
// arrives for a while, as on a machine that is out of memory or of network.

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/internal/natsio"
)

// strait is a way to a server on which what the server sends can be held back.
type strait struct {
	net.Listener
	held sync.RWMutex // locked while it is
}

// newStrait begins to lead connections to a server at an address.
func newStrait(t *testing.T, to string) *strait {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &strait{Listener: listener}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go s.lead(client, to)
		}
	}()
	return s
}

// lead carries one connection until either side ends it.
func (s *strait) lead(client net.Conn, to string) {
	defer client.Close()
	behind, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer behind.Close()
	go func() {
		_, _ = io.Copy(behind, client)
		_ = behind.Close()
	}()
	room := make([]byte, 32<<10)
	for {
		n, err := behind.Read(room)
		if err != nil {
			return
		}
		s.held.RLock()
		_, err = client.Write(room[:n])
		s.held.RUnlock()
		if err != nil {
			return
		}
	}
}

// The server cuts off the only host, which has active runs and receives more
// events. It reconnects, and does everything once.
func TestEdgeSlowHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *server.Options) { o.MaxPending = 2 << 20 })
	nc, js := testbus.JS(t, w.node)
	way := newStrait(t, strings.TrimPrefix(w.node.URL(), "nats://"))
	b := testbus.ConnectWith(t, natsio.Options{URL: "nats://" + way.Addr().String()})
	r := w.beginAt(b, engine.Options{})
	t.Cleanup(func() { r.stop(w) })

	before := []string{"a0", "a1", "a2", "a3"}
	w.turn(1, before...)
	for _, sid := range before {
		w.run(sid, "again")
		w.asked(session.ClassLLM, "openai", sid, "r2t1")
	}
	cut := w.node.Raw().NumSlowConsumers()
	way.held.Lock()
	all := before
	for _, sid := range before {
		w.answer(sid, "r2t1", "answer 2")
	}
	// It is asked for views, by people who send far too much along.
	much := make([]byte, 512<<10)
	for n := 0; w.node.Raw().NumSlowConsumers() == cut; n++ {
		if n == 400 {
			t.Errorf("after %d requests of %d bytes the server has cut nobody off", n, len(much))
			break
		}
		if err := nc.Publish("refold.view.a0", much); err != nil {
			t.Fatal(err)
		}
		if err := nc.FlushWithContext(w.ctx); err != nil {
			t.Fatal(err)
		}
		if n%16 == 0 {
			sid := fmt.Sprintf("b%d", n/16)
			w.run(sid, "hi")
			all = append(all, sid)
		}
	}
	way.held.Unlock()
	for _, sid := range before {
		if got, want := w.notices(sid, 5), "SessionOpened RunStarted RunFinished RunStarted RunFinished"; got != want {
			t.Errorf("%s: notices: got %q, want %q", sid, got, want)
		}
	}
	for _, sid := range all[len(before):] {
		w.asked(session.ClassLLM, "openai", sid, "r1t1")
	}
	w.done(w.lanes(js, all...))
	bustest.Until(t, "the view of a0 as it is in the log", func() bool { return w.view("a0").Hash == w.folded("a0").Hash().String() })
}
