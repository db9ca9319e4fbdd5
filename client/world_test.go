package client_test

// A server in the test, with a host or without one; the test plays the bridges.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/internal/journal"
)

const testTimeout = 5 * time.Minute

type world struct {
	*client.Client
	t    *testing.T
	ctx  context.Context
	node *bustest.Node
	bus  *bus.Bus
}

// newWorld starts a server with streams and an install record.
func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldWith(t, record)
}

// newWorldWith starts a server with the given install record and edits of streams.conf.
func newWorldWith(t *testing.T, record string, edits ...string) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	node := bustest.Server(t)
	w := &world{t: t, ctx: ctx, node: node, bus: testbus.Provisioned(t, node, edits...)}
	if _, err := engine.EnsureInstall(ctx, w.bus, []byte(record)); err != nil {
		t.Fatal(err)
	}
	var err error
	w.Client, err = client.Connect(ctx, client.Options{URL: w.node.URL(), Name: "test"})
	bustest.OK(t, err)
	t.Cleanup(w.Close)
	return w
}

// record is an install record whose config names a model.
const record = `{"v":1,"rules":1,"tools":[],"config":{"provider":"p","model":"m"}}`

// toolsRecord has a tool that needs a person's approval, and one that a host loop
// executes.
const toolsRecord = `{"v":1,"rules":1,"config":{"provider":"p","model":"m"},"tools":[
	{"tool_id":"mail.send","tool_name":"send","args_schema":{"type":"object","properties":{"to":{"type":"string"}},"required":["to"]},
	 "executor":{"kind":"effect","target":"mail"},"approval":"always"},
	{"tool_id":"ui.show","tool_name":"show","args_schema":{"type":"object"},"executor":{"kind":"host_loop","target":"editor"}}]}`

// host runs a host until the test ends. It answers views when this returns.
func (w *world) host() *world {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	h := engine.New(w.bus, slog.New(slog.DiscardHandler), engine.Options{SnapshotEach: 4})
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("host: %v", err)
		}
	})
	select {
	case <-h.Ready():
	case <-w.ctx.Done():
		w.t.Fatal("the host is not ready")
	}
	return w
}

// say publishes an event.
func (w *world) say(door session.Door, sid, typ string, data any) uint64 {
	w.t.Helper()
	payload, err := json.Marshal(map[string]any{"type": typ, "data": data})
	bustest.OK(w.t, err)
	seq, err := w.Publish(w.ctx, door, sid, payload, "")
	bustest.OK(w.t, err)
	return seq
}

func (w *world) ask(sid, text string) uint64 {
	w.t.Helper()
	seq, err := w.Run(w.ctx, sid, text, client.RunOptions{})
	bustest.OK(w.t, err)
	return seq
}

// answer ends turn 1 of a run.
func (w *world) answer(sid string, run int, text string) uint64 {
	w.t.Helper()
	return w.say(session.DoorLLM, sid, session.TypeGenerationSettled, map[string]any{
		"effect": fmt.Sprintf("r%dt1", run), "status": "ok", "text": map[string]any{"text": text},
	})
}

// end waits for the end of the run requested at seq.
func (w *world) end(sid string, seq uint64) client.RunEnd {
	w.t.Helper()
	end, err := w.End(w.ctx, sid, seq, 0, nil)
	bustest.OK(w.t, err)
	return end
}

// forge stores an effect that no fold opened.
func (w *world) forge(sid, effect string, payload []byte) {
	w.t.Helper()
	err := errors.Join(w.bus.Store(w.ctx, []journal.Output{{Session: sid, Effect: &session.Effect{Name: effect, Class: session.ClassLLM, Target: "p", Payload: payload}}})...)
	bustest.OK(w.t, err)
}

// stored waits until an effect is stored.
func (w *world) stored(sid, effect string) {
	w.t.Helper()
	bustest.Until(w.t, effect+" of "+sid+" is stored", func() bool {
		all, err := w.bus.ListEffects(w.ctx, sid)
		return err == nil && slices.ContainsFunc(all, func(e journal.StoredEffect) bool { return e.Name.Effect == effect })
	})
}

func (w *world) replay(sid string, to uint64) *client.Replayed {
	w.t.Helper()
	r, err := w.Replay(w.ctx, sid, to, nil)
	bustest.OK(w.t, err)
	return r
}
