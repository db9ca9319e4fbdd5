package erase_test

// Deletions of sessions that a host runs, on a server with files. In them nothing waits
// after a delete: that is tested apart.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/internal/erase"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/meter"
	"github.com/refold/refold/subjects"
)

const marker = "the-planted-marker"

var unpaced = erase.Options{Share: 1}

type world struct {
	*client.Client
	t   testing.TB
	ctx context.Context
	bus *bus.Bus

	log    *logged
	meters *meter.Registry // of the host
}

// logged keeps what the host logs, at every level.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newWorld(t testing.TB, node *bustest.Node) *world {
	t.Helper()
	w := &world{t: t, ctx: testbus.Context(t), bus: testbus.Provisioned(t, node), log: new(logged), meters: meter.New()}
	_, err := engine.EnsureInstall(w.ctx, w.bus, []byte(`{"v":1,"rules":1,"tools":[],"config":{"provider":"p","model":"m"}}`))
	bustest.OK(t, err)
	w.Client, err = client.Connect(w.ctx, client.Options{URL: node.URL(), Name: "test"})
	bustest.OK(t, err)
	t.Cleanup(w.Close)
	ctx, cancel := context.WithCancel(w.ctx)
	log := slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	h := engine.New(w.bus, log, engine.Options{SnapshotEach: 1, Meters: engine.Register(w.meters, subjects.LanesDefault)})
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		bustest.OK(t, <-done)
	})
	<-h.Ready()
	return w
}

// talk gives a session some texts with the marker.
func (w *world) talk(sid string, n int) {
	w.t.Helper()
	for i := range n {
		text := fmt.Sprint(marker, " ", i)
		config := fmt.Sprintf(`{"provider":"p","model":"m","system":%q}`, text)
		_, err := w.Run(w.ctx, sid, text, client.RunOptions{Config: []byte(config), Operator: true})
		bustest.OK(w.t, err)
		_, err = w.View(w.ctx, sid)
		bustest.OK(w.t, err)
	}
	w.folded(sid)
}

// folded waits until the session's snapshot is at its last event.
func (w *world) folded(sid string) {
	w.t.Helper()
	bustest.Until(w.t, "a snapshot of "+sid, func() bool {
		seqs, err := w.bus.EventSeqs(w.ctx, sid, 0)
		bustest.OK(w.t, err)
		data, found, err := w.bus.GetSnapshot(w.ctx, sid)
		snap, bad := session.ParseSnapshot(data)
		return err == nil && found && bad == nil && snap.Seq == seqs[len(seqs)-1]
	})
}

// erased erases a session as Delete does, and returns the event's sequence.
func (w *world) erased(sid string) uint64 {
	w.t.Helper()
	seq, err := w.Erase(w.ctx, sid, "they asked", "")
	bustest.OK(w.t, err)
	return seq
}

// wantGone checks that nothing is left of a session but its tombstone and its last notice,
// and that no other session has to be verified.
func (w *world) wantGone(sid string) {
	w.t.Helper()
	left, err := erase.Count(w.ctx, w.bus, sid)
	if err != nil || left != (erase.Counts{Events: 1}) {
		w.t.Errorf("%s: %+v are left (%v), want one event", sid, left, err)
	}
	if missing, err := w.bus.LogMissing(w.ctx); err != nil || missing != 0 {
		w.t.Errorf("%d events count as lost (%v), want none", missing, err)
	}
	r, err := w.Replay(w.ctx, sid, 0, nil)
	if err != nil || !r.Identical() || !r.State.IsErased() {
		w.t.Errorf("replay of %s: %+v, %v: want an erased session, identical", sid, r, err)
	}
}

// stopping is a store whose requests are counted; from the nth one on they fail.
type stopping struct {
	erase.Store
	n    int
	lost bool // the nth is carried out, and its answer is lost
}

var errStopped = errors.New("stopped")

func (s *stopping) next(f func() error) error {
	s.n--
	if s.n > 0 {
		return f()
	}
	if s.n == 0 && s.lost {
		_ = f()
	}
	return errStopped
}

func (s *stopping) PutErasure(ctx context.Context, e journal.Erasure, after uint64) (at uint64, err error) {
	err = s.next(func() (err error) { at, err = s.Store.PutErasure(ctx, e, after); return err })
	return at, err
}

func (s *stopping) Erase(ctx context.Context, stream string, seq uint64, plain bool) error {
	return s.next(func() error { return s.Store.Erase(ctx, stream, seq, plain) })
}

// TestEraserStoppedAtEachRequest: on one server and on three, an eraser that is stopped
// before or after any of its writes leaves no event that counts as lost, a session that is
// loaded and replayed as an erased one, and work that the next eraser completes.
func TestEraserStoppedAtEachRequest(t *testing.T) {
	t.Parallel()
	for _, servers := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d servers", servers), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nodesOf(t, servers)[0])
			w.talk("other", 2)
			w.stopsErasers(t)
		})
	}
}

// nodesOf starts that many servers.
func nodesOf(t testing.TB, servers int) []*bustest.Node {
	t.Helper()
	if servers == 1 {
		return []*bustest.Node{bustest.Server(t)}
	}
	return bustest.Cluster(t, servers)
}

// stopsErasers stops erasers at each of their requests.
func (w *world) stopsErasers(t *testing.T) {
	t.Helper()
	for _, lost := range []bool{false, true} {
		for n := 1; ; n++ {
			sid := fmt.Sprintf("s%d-%v", n, lost)
			w.talk(sid, 2)
			store := &stopping{Store: w.bus, n: n, lost: lost}
			_, err := erase.New(store, unpaced).Session(w.ctx, sid, w.erased(sid))
			if err == nil {
				w.wantGone(sid)
				break
			}
			if !errors.Is(err, errStopped) {
				t.Fatal(err)
			}
			if missing, err := w.bus.LogMissing(w.ctx); err != nil || missing != 0 {
				t.Errorf("%s: stopped at request %d, %d events count as lost (%v)", sid, n, missing, err)
			}
			if r, err := w.Replay(w.ctx, sid, 0, nil); err != nil || !r.Identical() || !r.State.IsErased() {
				t.Errorf("%s: stopped at request %d, its replay is %+v, %v", sid, n, r, err)
			}
			v, err := w.Verify(w.ctx, client.VerifyOptions{})
			if err != nil || !v.Identical() {
				t.Errorf("%s: stopped at request %d, verify finds %+v, %v", sid, n, v, err)
			}
			_, err = erase.New(w.bus, unpaced).Session(w.ctx, sid, 0)
			bustest.OK(t, err)
			w.wantGone(sid)
		}
	}
}

// TestTextPublishedAfterADeletion: it is stored and rejected, and the next deletion deletes
// it with the former tombstone.
func TestTextPublishedAfterADeletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bustest.Server(t))
	w.talk("s1", 1)
	d := w.Deleter(client.DeleteOptions{Share: 1})
	_, err := d.Delete(w.ctx, "s1", "they asked")
	bustest.OK(t, err)
	w.wantGone("s1")
	before, err := w.bus.EventSeqs(w.ctx, "s1", 0)
	bustest.OK(t, err)
	if again, err := d.Delete(w.ctx, "s1", ""); err != nil || again.All() != 0 {
		t.Errorf("deleted again: %+v, %v, want nothing", again, err)
	}
	_, err = w.Run(w.ctx, "s1", marker, client.RunOptions{})
	bustest.OK(t, err)
	if again, err := d.Delete(w.ctx, "s1", ""); err != nil || again.Events != 3 { // the tombstone, the text, SessionErased
		t.Errorf("deleted with text: %+v, %v, want three events", again, err)
	}
	w.wantGone("s1")
	if after, err := w.bus.EventSeqs(w.ctx, "s1", 0); err != nil || after[0] <= before[0] {
		t.Errorf("the tombstone is at %v (%v), was at %v: want a later one", after, err, before)
	}
}

// TestRefusedDeletions: a held session and an unknown one are refused, and lose nothing.
func TestRefusedDeletions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, bustest.Server(t))
	w.talk("s1", 1)
	_, err := w.Hold(w.ctx, "s1", true, "case 4711", "")
	bustest.OK(t, err)
	var refused *client.RejectedError
	if _, err := w.Deleter(client.DeleteOptions{Share: 1}).Delete(w.ctx, "s1", ""); !errors.As(err, &refused) || refused.Code != session.RejectSessionHeld {
		t.Errorf("a held session: got %v, want session_held", err)
	}
	if _, err := w.Deletable(w.ctx, "s2", client.DeleteOptions{}); !errors.Is(err, client.ErrNoSession) {
		t.Errorf("an unknown session: got %v, want ErrNoSession", err)
	}
	d, err := w.Deletable(w.ctx, "s1", client.DeleteOptions{})
	for err == nil && d.Notices == 0 { // they are stored after the event is taken; w.ctx bounds it
		d, err = w.Deletable(w.ctx, "s1", client.DeleteOptions{})
	}
	if err != nil || d.Events != 3 || d.Notices == 0 || d.Expected < (erase.Options{}).Expected(4) {
		t.Errorf("got %+v (%v), want three events, notices and a duration", d, err)
	}
}

// TestNothingIsLeftInTheFiles: the marker, which several snapshots, events and notices had,
// is in no file of the server's streams after the deletion, except in effects, which empty by
// age, and in no line of the session-actor's log and in none of its metrics.
func TestNothingIsLeftInTheFiles(t *testing.T) {
	t.Parallel()
	for _, servers := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d servers", servers), func(t *testing.T) {
			t.Parallel()
			nodes := nodesOf(t, servers)
			w := newWorld(t, nodes[0])
			w.talk("other", 2)
			w.talk("s1", 5)
			if at := filesWith(t, nodes, marker+" 3"); !strings.Contains(at, "REFOLD_LOG") || !strings.Contains(at, "KV_REFOLD_SNAPSHOTS") {
				t.Fatalf("before: the marker is in %q, want the log and the snapshots: the search does not find it", at)
			}
			d := w.Deleter(client.DeleteOptions{Share: 1})
			_, err := d.Delete(w.ctx, "s1", marker+" 3")
			bustest.OK(t, err)
			_, err = d.Close(w.ctx)
			bustest.OK(t, err)
			w.wantGone("s1")
			bustest.Until(t, "no file with the marker", func() bool {
				return filesWith(t, nodes, marker+" 3") == ""
			})
			if text := w.log.String(); strings.Contains(text, marker) || !strings.Contains(text, "lanes_shared") {
				t.Errorf("the session-actor has logged the marker, or nothing at all:\n%s", text)
			}
			if text := fmt.Sprintf("%+v", w.meters.Collect()); strings.Contains(text, marker) || !strings.Contains(text, session.TypeSessionErased) {
				t.Errorf("the metrics have the marker, or nothing about the erasure: %s", text)
			}
			if v, err := w.View(w.ctx, "other"); err != nil || v.Run == nil {
				t.Errorf("the other session: %+v, %v", v, err)
			}
		})
	}
}

// filesWith returns the streams, except for that of effects, in whose block files a text is.
func filesWith(t testing.TB, nodes []*bustest.Node, text string) string {
	t.Helper()
	var found []string
	for _, node := range nodes {
		err := filepath.WalkDir(node.Raw().JetStreamConfig().StoreDir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.Contains(path, "/streams/") || strings.Contains(path, "REFOLD_FX") {
				return nil //nolint:nilerr // the server removes files meanwhile
			}
			data, _ := os.ReadFile(path)
			if bytes.Contains(data, []byte(text)) {
				found = append(found, path)
			}
			return nil
		})
		bustest.OK(t, err)
	}
	return strings.Join(found, " ")
}

// TestNothingIsAuditedAfterErasures: a hundred erasures make no session of the log be read
// from its beginning, and an event that is lost beside them still does.
func TestNothingIsAuditedAfterErasures(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	w := newWorld(t, node)
	w.talk("other", 2)
	d := w.Deleter(client.DeleteOptions{Share: 1})
	for i := range 100 {
		sid := fmt.Sprint("gone", i)
		w.talk(sid, 1)
		_, err := d.Delete(w.ctx, sid, "")
		bustest.OK(t, err)
		seqs, err := w.bus.EventSeqs(w.ctx, "other", 0)
		bustest.OK(t, err)
		if n, err := w.bus.CountEvents(w.ctx, "other", seqs[len(seqs)-1]); err != nil || int(n) != len(seqs) {
			t.Fatalf("after %d erasures %d events of another session count (%v), want %d", i+1, n, err, len(seqs))
		}
	}
	v, err := w.Verify(w.ctx, client.VerifyOptions{})
	if err != nil || !v.Identical() || v.Sessions != 101 {
		t.Errorf("verify: %+v, %v, want 101 identical sessions", v, err)
	}
	seqs, err := w.bus.EventSeqs(w.ctx, "other", 0)
	bustest.OK(t, err)
	bustest.OK(t, w.bus.Erase(w.ctx, "REFOLD_LOG", seqs[0], false))
	if missing, err := w.bus.LogMissing(w.ctx); err != nil || missing != 1 {
		t.Errorf("%d events count as lost (%v), want the one that was deleted without an entry in the ledger", missing, err)
	}
	v, err = w.Verify(w.ctx, client.VerifyOptions{})
	if err != nil || len(v.Holes) != 1 || v.Holes[0] != (client.Hole{First: seqs[0], Last: seqs[0]}) || v.Differ != 1 {
		t.Errorf("verify: %+v, %v, want the hole at %d and one session that differs", v, err, seqs[0])
	}
}
