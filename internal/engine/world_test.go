package engine_test

// A host against a real server on disk, the test playing clients and bridges.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// TestMain checks that all goroutines of a host have ended when Run has returned.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testTimeout = 9 * time.Minute

// world is a server with Refold's streams and a connection to it.
type world struct {
	t    testing.TB
	ctx  context.Context
	node *bustest.Node
	bus  *bus.Bus
}

func newWorld(t testing.TB, options ...bustest.Option) *world {
	t.Helper()
	return newWorldOn(t, []*bustest.Node{bustest.Server(t, options...)})
}

// newWorldOn is newWorld with servers that run, and with edits of streams.conf.
func newWorldOn(t testing.TB, nodes []*bustest.Node, edits ...string) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	w := &world{t: t, ctx: ctx, node: nodes[0]}
	w.bus = w.connect()
	bustest.OK(t, w.bus.Provision(ctx, testbus.Conf(t, "", edits...), len(nodes)))
	if stored, err := engine.EnsureInstall(ctx, w.bus, session.BuiltinInstall()); err != nil || !stored {
		t.Fatalf("install: %v %v", stored, err)
	}
	return w
}

func (w *world) connect() *bus.Bus {
	w.t.Helper()
	var b *bus.Bus
	// A busy machine may take longer to dial than a program waits.
	bustest.Until(w.t, "a connection", func() (connected bool) {
		var err error
		if b, err = bus.Connect(w.ctx, natsio.Options{URL: w.node.URL(), Logger: slog.New(slog.DiscardHandler)}); err != nil && !errors.Is(err, natsio.ErrNoServer) {
			w.t.Fatal(err)
		}
		return err == nil
	})
	w.t.Cleanup(b.Close)
	return b
}

// running is a host with a connection of its own.
type running struct {
	bus    *bus.Bus
	cancel context.CancelFunc
	done   chan error
}

// host starts a host.
func (w *world) host(opts engine.Options) *running {
	w.t.Helper()
	r := w.begin(opts)
	w.t.Cleanup(func() { r.stop(w) })
	return r
}

// begin starts a host that the test ends.
func (w *world) begin(opts engine.Options) *running {
	w.t.Helper()
	return w.beginAt(w.connect(), opts)
}

// beginAt is begin over a connection that is made already.
func (w *world) beginAt(b *bus.Bus, opts engine.Options) *running {
	ctx, cancel := context.WithCancel(w.ctx)
	r := &running{bus: b, cancel: cancel, done: make(chan error, 1)}
	h := engine.New(r.bus, slog.New(slog.DiscardHandler), opts)
	h.RecheckEvery(100 * time.Millisecond)
	go func() { r.done <- h.Run(ctx) }()
	return r
}

// stop drains the host and waits for it.
func (r *running) stop(w *world) {
	r.cancel()
	select {
	case err := <-r.done:
		r.done <- err
		if err != nil {
			w.t.Errorf("host: %v", err)
		}
	case <-w.ctx.Done():
		w.t.Errorf("host does not end")
	}
}

func (w *world) publish(door session.Door, sid, typ string, data any) uint64 {
	w.t.Helper()
	payload, err := json.Marshal(map[string]any{"type": typ, "data": data})
	if err != nil {
		w.t.Fatal(err)
	}
	seq, err := w.bus.Publish(w.ctx, door, sid, payload, "")
	if err != nil {
		w.t.Fatal(err)
	}
	return seq
}

// run asks for a run.
func (w *world) run(sid, text string) {
	w.publish(session.DoorIn, sid, session.TypeRunRequested, map[string]any{
		"input": map[string]any{"text": text}, "config": map[string]any{"provider": "openai", "model": "m"},
	})
}

// notices waits for n notices of a session and returns their types.
func (w *world) notices(sid string, n int) string {
	w.t.Helper()
	var types []string
	seen := map[uint64]bool{}
	for notice, err := range w.bus.FollowNotices(w.ctx, sid, 0) {
		if err != nil {
			w.t.Fatalf("%s: waiting for %d notices, have %v: %v", sid, n, types, err)
		}
		for line := range bytes.Lines(notice.Payload) {
			var said struct {
				N    uint64 `json:"n"`
				Type string `json:"type"`
			}
			if err := json.Unmarshal(line, &said); err != nil {
				w.t.Fatal(err)
			}
			if said.N > 0 && seen[said.N] {
				continue
			}
			seen[said.N] = true
			if said.N != uint64(len(types)+1) && said.N != 0 {
				w.t.Fatalf("%s: notice %d comes after %v", sid, said.N, types)
			}
			types = append(types, said.Type)
		}
		if len(types) >= n {
			break
		}
	}
	return strings.Join(types, " ")
}

// asked waits until an effect is stored.
func (w *world) asked(class session.Class, target, sid, effect string) {
	w.t.Helper()
	subject, err := w.bus.Names().Effect(subjects.EffectName{Class: class, Target: target, Session: sid, Effect: effect})
	if err != nil {
		w.t.Fatal(err)
	}
	w.effect(subject)
}

// effect waits until an effect is stored, and returns its bytes.
func (w *world) effect(subject string) (data []byte) {
	w.t.Helper()
	name, err := w.bus.Names().ParseEffect(subject)
	if err != nil {
		w.t.Fatal(err)
	}
	bustest.Until(w.t, subject, func() bool {
		all, err := w.bus.ListEffects(w.ctx, name.Session)
		i := slices.IndexFunc(all, func(e journal.StoredEffect) bool { return e.Name == name })
		if i >= 0 {
			data = all[i].Payload
		}
		return err == nil && i >= 0
	})
	return data
}

// folded reads the session's events and folds them here.
func (w *world) folded(sid string) *session.State {
	w.t.Helper()
	last, err := w.bus.LastSeq(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	install, err := session.ParseInstall(session.BuiltinInstall())
	if err != nil {
		w.t.Fatal(err)
	}
	return session.Fold(install, sid, func(yield func(session.Event) bool) {
		for e, err := range w.bus.ReadSession(w.ctx, sid, 1, last, true) {
			if err != nil {
				w.t.Fatal(err)
			}
			if !yield(e) {
				return
			}
		}
	})
}

// answer ends a turn.
func (w *world) answer(sid, effect, text string) {
	w.t.Helper()
	w.publish(session.DoorLLM, sid, session.TypeGenerationSettled, map[string]any{
		"effect": effect, "status": "ok", "text": map[string]any{"text": text},
	})
}

// view waits for an answer.
func (w *world) view(sid string) session.View {
	w.t.Helper()
	var v session.View
	bustest.Until(w.t, "the view of "+sid, func() bool {
		answer, err := w.bus.RequestView(w.ctx, sid)
		return err == nil && json.Unmarshal(answer, &v) == nil
	})
	return v
}
