package engine_test

// Hard edges against a real server: streams without room, a client that does
// not read, a very long session.

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/subjects"
)

// state returns what a stream has.
func (w *world) state(js jetstream.JetStream, stream string) jetstream.StreamState {
	w.t.Helper()
	s, err := js.Stream(w.ctx, stream)
	if err != nil {
		w.t.Fatal(err)
	}
	return s.CachedInfo().State
}

// limit changes limits of a stream.
func (w *world) limit(js jetstream.JetStream, stream string, change func(*jetstream.StreamConfig)) {
	w.t.Helper()
	s, err := js.Stream(w.ctx, stream)
	if err != nil {
		w.t.Fatal(err)
	}
	cfg := s.CachedInfo().Config
	change(&cfg)
	if _, err := js.UpdateStream(w.ctx, cfg); err != nil {
		w.t.Fatal(err)
	}
}

// lanes returns the lanes of these sessions.
func (w *world) lanes(js jetstream.JetStream, sids ...string) (all []jetstream.Consumer) {
	w.t.Helper()
	seen := map[int]bool{}
	for _, sid := range sids {
		lane := subjects.Lane(subjects.Partition(sid))
		if seen[lane] {
			continue
		}
		seen[lane] = true
		c, err := js.Consumer(w.ctx, "REFOLD_LOG", subjects.LaneName(lane))
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// unacked returns how many events lanes delivered that are not acknowledged, and
// how many they did not deliver. A server that is not there has delivered none.
func (w *world) unacked(lanes []jetstream.Consumer) (unacked int, pending uint64) {
	for _, c := range lanes {
		info, err := c.Info(w.ctx)
		if err != nil {
			return 0, 1
		}
		unacked, pending = unacked+info.NumAckPending, pending+info.NumPending
	}
	return unacked, pending
}

// done waits until lanes have nothing left. A count may be of a moment ago, so
// it is believed when it is said twice.
func (w *world) done(lanes []jetstream.Consumer) {
	w.t.Helper()
	said := 0
	bustest.Until(w.t, "all is acknowledged", func() bool {
		if unacked, pending := w.unacked(lanes); unacked != 0 || pending != 0 {
			said = 0
			return false
		}
		said++
		return said > 1
	})
}

// While REFOLD_FX is full, events wait unacknowledged, and nothing is dropped or
// published too early. When there is room again the host goes on by itself. A full
// bucket of snapshots delays nothing.
func TestEdgeEffectsStreamFull(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, js := testbus.JS(t, w.node)
	w.limit(js, "REFOLD_FX", func(c *jetstream.StreamConfig) { c.MaxMsgs = 5 })
	w.limit(js, "KV_REFOLD_SNAPSHOTS", func(c *jetstream.StreamConfig) { c.MaxMsgs = 1 }) // a cache, and for good
	h := w.host(engine.Options{SnapshotEach: 1})
	const sessions = 16
	var sids []string
	for i := range sessions {
		sids = append(sids, fmt.Sprintf("s%d", i))
		w.run(sids[i], "hi")
	}
	lanes := w.lanes(js, sids...)
	bustest.Until(t, "the stream is full", func() bool { return w.state(js, "REFOLD_FX").Msgs == 5 })
	bustest.Until(t, "all is delivered", func() bool {
		unacked, pending := w.unacked(lanes)
		return pending == 0 && unacked >= sessions-5
	})
	select {
	case err := <-h.done:
		t.Fatalf("the host ended: %v", err)
	default:
	}
	w.limit(js, "REFOLD_FX", func(c *jetstream.StreamConfig) { c.MaxMsgs = -1 })
	for _, sid := range sids {
		w.asked(session.ClassLLM, "openai", sid, "r1t1")
		if got, want := w.notices(sid, 2), "SessionOpened RunStarted"; got != want {
			t.Errorf("%s: notices: got %q, want %q", sid, got, want)
		}
	}
	w.done(lanes)
	for _, stream := range []string{"REFOLD_FX", "REFOLD_TIMERS"} {
		if got := w.state(js, stream).Msgs; got != sessions {
			t.Errorf("%s has %d messages, want one for each of %d sessions", stream, got, sessions)
		}
	}
}

// The server cuts off a client that subscribes to everything and does not read.
// Sessions go on, and a client that reads receives everything.
func TestEdgeSlowConsumer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.host(engine.Options{})
	slow, err := net.Dial("tcp", strings.TrimPrefix(w.node.URL(), "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if err := slow.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	// Each message comes to it many times, so that it alone is behind. It also
	// asks for a view, and reads no answer.
	var says strings.Builder
	says.WriteString("CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true,\"no_responders\":true}\r\n")
	for sub := range 64 {
		fmt.Fprintf(&says, "SUB > %d\r\n", sub)
	}
	says.WriteString("PUB refold.view.s0 answers 0\r\n\r\nPING\r\n")
	if _, err := slow.Write([]byte(says.String())); err != nil {
		t.Fatal(err)
	}
	before := w.node.Raw().NumSlowConsumers()
	// What it is sent is more than its buffers and the server's for it hold.
	text := strings.Repeat("x", session.TextBytesMax/2)
	rounds := 0
	for ; w.node.Raw().NumSlowConsumers() == before; rounds++ {
		if rounds == 200 {
			t.Fatalf("after %d answers of %d bytes the server has cut nobody off", rounds, len(text))
		}
		sid := fmt.Sprintf("s%d", rounds)
		w.run(sid, "hi")
		w.asked(session.ClassLLM, "openai", sid, "r1t1")
		w.answer(sid, "r1t1", text)
	}
	for i := range rounds {
		if got, want := w.notices(fmt.Sprintf("s%d", i), 3), "SessionOpened RunStarted RunFinished"; got != want {
			t.Errorf("s%d: notices: got %q, want %q", i, got, want)
		}
	}
	if v := w.view("s0"); v.Lifecycle != session.Completed {
		t.Errorf("view: got %s", v.Lifecycle)
	}
}

// A session of very many events is loaded from zero and from its snapshot, folded
// by the lane, and stays small whatever its length.
func TestEdgeLongSession(t *testing.T) {
	t.Parallel()
	// The events are there before the host, and a server that syncs each would
	// need the time for itself.
	w := newWorld(t, func(o *server.Options) { o.SyncAlways, o.SyncInterval = false, time.Minute })
	nc, js := testbus.JS(t, w.node)
	w.run("s1", "hi")
	for i := range longSession {
		subject := "refold.ctl.s1"
		if err := nc.Publish(subject, fmt.Appendf(nil, `{"type":"FactsSet","data":{"facts":{"f%d":"%d"}}}`, i%8, i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.FlushWithContext(w.ctx); err != nil {
		t.Fatal(err)
	}
	bustest.Until(t, "all is in the log", func() bool { return w.state(js, "REFOLD_LOG").LastSeq == longSession+2 })
	first := w.host(engine.Options{})
	w.done(w.lanes(js, "s1"))
	want := w.folded("s1")
	if v := w.view("s1"); v.Hash != want.Hash().String() || v.Seq != longSession+2 {
		t.Errorf("view: got %s at %d, want %s at %d", v.Hash, v.Seq, want.Hash(), longSession+2)
	}
	first.stop(w)
	snapshot, found, err := w.bus.GetSnapshot(w.ctx, "s1")
	if err != nil || !found {
		t.Fatalf("snapshot: %t %v", found, err)
	}
	if most := 16 << 10; len(snapshot) > most {
		t.Errorf("a snapshot of %d bytes: a session with one run and eight facts has at most %d, whatever its length", len(snapshot), most)
	}
	// The next host has the snapshot, the last one has not.
	second := w.host(engine.Options{})
	w.answer("s1", "r1t1", "one")
	w.run("s1", "two")
	w.asked(session.ClassLLM, "openai", "s1", "r2t1")
	second.stop(w)
	kv, err := js.KeyValue(w.ctx, "REFOLD_SNAPSHOTS")
	if err != nil {
		t.Fatal(err)
	}
	if err := kv.Delete(w.ctx, "s.s1"); err != nil {
		t.Fatal(err)
	}
	w.host(engine.Options{})
	w.answer("s1", "r2t1", "two")
	if got, want := w.notices("s1", 5), "SessionOpened RunStarted RunFinished RunStarted RunFinished"; got != want {
		t.Errorf("notices: got %q, want %q", got, want)
	}
	if got, want := w.view("s1").Hash, w.folded("s1").Hash().String(); got != want {
		t.Errorf("view: got %s, want %s", got, want)
	}
}
