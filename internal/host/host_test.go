package host_test

// A host against a real server on disk, the test playing clients and bridges:
// effects are asked once, settlements go on to the end, a second host takes
// over after a kill or a drain, and what is stored folds again to the same.

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	refold "github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/host"
	"github.com/refold/refold/subjects"
)

const testTimeout = 60 * time.Second

// world is a server with Refold's streams and a connection to it.
type world struct {
	t    *testing.T
	ctx  context.Context
	node *bustest.Node
	bus  *bus.Bus
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	w := &world{t: t, ctx: ctx, node: bustest.Server(t)}
	w.bus = w.connect()
	names := w.bus.Names()
	conf, err := bus.ParseConf(refold.StreamsConf, names)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.bus.Provision(ctx, conf, 1); err != nil {
		t.Fatal(err)
	}
	if stored, err := host.EnsureInstall(ctx, w.bus, session.BuiltinInstall()); err != nil || !stored {
		t.Fatalf("install: %v %v", stored, err)
	}
	return w
}

func (w *world) connect() *bus.Bus {
	w.t.Helper()
	b, err := bus.Connect(w.ctx, bus.Options{URL: w.node.URL(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.t.Fatal(err)
	}
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
func (w *world) host(opts host.Options) *running {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	r := &running{bus: w.connect(), cancel: cancel, done: make(chan error, 1)}
	h := host.New(r.bus, slog.New(slog.DiscardHandler), opts)
	go func() { r.done <- h.Run(ctx) }()
	w.t.Cleanup(func() { r.stop(w) })
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
		var said struct {
			N    uint64 `json:"n"`
			Type string `json:"type"`
		}
		if err := json.Unmarshal(notice.Payload, &said); err != nil {
			w.t.Fatal(err)
		}
		if seen[said.N] {
			continue
		}
		seen[said.N] = true
		if said.N != uint64(len(types)+1) && said.N != 0 {
			w.t.Fatalf("%s: notice %d comes after %v", sid, said.N, types)
		}
		if types = append(types, said.Type); len(types) == n {
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
	bustest.Until(w.t, subject, func() bool {
		_, found, err := w.bus.EffectStored(w.ctx, subject)
		return err == nil && found
	})
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

func TestRunFromRequestToAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.host(host.Options{})
	w.run("s1", "hi")
	w.asked(session.ClassLLM, "openai", "s1", "r1t1")
	w.asked(session.ClassWake, "-", "s1", "w1")
	w.publish(session.DoorLLM, "s1", session.TypeToolCallsObserved, map[string]any{
		"effect": "r1t1", "calls": []any{map[string]any{"tool_name": "open_session", "arguments": "{}"}},
	})
	w.asked(session.ClassTool, "host", "s1", "r1t1c0")
	w.publish(session.DoorTool, "s1", session.TypeToolCallSettled, map[string]any{
		"effect": "r1t1c0", "status": "succeeded", "host_session": map[string]any{"id": "h", "status": "ready"},
	})
	w.asked(session.ClassLLM, "openai", "s1", "r1t2")
	w.publish(session.DoorLLM, "s1", session.TypeGenerationSettled, map[string]any{
		"effect": "r1t2", "status": "ok", "text": map[string]any{"text": "done"},
	})
	if got, want := w.notices("s1", 3), "SessionOpened RunStarted RunFinished"; got != want {
		t.Errorf("notices: got %q, want %q", got, want)
	}
	answer, err := w.bus.RequestView(w.ctx, "s1")
	if err != nil {
		t.Fatal(err)
	}
	var view session.View
	if err := json.Unmarshal(answer, &view); err != nil {
		t.Fatal(err)
	}
	if want := w.folded("s1").Hash().String(); view.Hash != want || view.Lifecycle != session.Completed {
		t.Errorf("view: %s %s, want completed %s", view.Lifecycle, view.Hash, want)
	}
}

func TestAnotherHostGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.host(host.Options{SnapshotEach: 2})
	const sessions = 12
	for i := range sessions {
		sid := fmt.Sprintf("s%d", i)
		w.run(sid, "hi")
		w.asked(session.ClassLLM, "openai", sid, "r1t1")
	}
	first.stop(w)
	// What arrives meanwhile waits in the log.
	for i := range sessions {
		w.publish(session.DoorLLM, fmt.Sprintf("s%d", i), session.TypeGenerationSettled, map[string]any{
			"effect": "r1t1", "status": "ok", "text": map[string]any{"text": "done"},
		})
	}
	w.host(host.Options{SnapshotEach: 2})
	for i := range sessions {
		if got, want := w.notices(fmt.Sprintf("s%d", i), 3), "SessionOpened RunStarted RunFinished"; got != want {
			t.Errorf("s%d: got %q, want %q", i, got, want)
		}
	}
}

func TestKilledHostLosesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.host(host.Options{})
	w.run("s1", "one")
	w.asked(session.ClassLLM, "openai", "s1", "r1t1")
	first.bus.Close() // its lanes are not handed over: the pins run out
	w.publish(session.DoorLLM, "s1", session.TypeGenerationSettled, map[string]any{
		"effect": "r1t1", "status": "ok", "text": map[string]any{"text": "1"},
	})
	w.run("s1", "two")
	w.host(host.Options{})
	w.asked(session.ClassLLM, "openai", "s1", "r2t1")
	if got, want := w.notices("s1", 4), "SessionOpened RunStarted RunFinished RunStarted"; got != want {
		t.Errorf("notices: got %q, want %q", got, want)
	}
}

func TestBadBytesAreSaidAndTheSessionGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.host(host.Options{})
	if _, err := w.bus.Publish(w.ctx, session.DoorIn, "s1", []byte("{\"type\": \xff"), ""); err != nil {
		t.Fatal(err)
	}
	w.run("s1", "hi")
	if got, want := w.notices("s1", 3), "SessionOpened EventRejected RunStarted"; got != want {
		t.Errorf("notices: got %q, want %q", got, want)
	}
}

func TestOtherBytesUnderANameQuarantine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	forged := session.Effect{Name: "r1t1", Class: session.ClassLLM, Target: "openai", Payload: []byte{0x80}}
	if err := w.bus.Ask(w.ctx, "s1", forged); err != nil {
		t.Fatal(err)
	}
	w.host(host.Options{})
	w.run("s1", "hi")
	w.run("s2", "hi") // another session of the same host goes on
	w.asked(session.ClassLLM, "openai", "s2", "r1t1")
	bustest.Until(t, "a quarantine", func() bool {
		_, found, err := w.bus.GetQuarantine(w.ctx, "s1")
		return err == nil && found
	})
	if got := w.notices("s1", 1); got != session.NoticeSessionQuarantined {
		t.Errorf("notices: got %q", got)
	}
}
