package engine_test

// Streams are deleted or sealed while a host runs.

import (
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/internal/streams"
	"github.com/refold/refold/subjects"
)

// TestDerivedStreamsAreMadeAgain: notices and timers are deleted while a run waits. The
// host creates both streams again, asks the open wake again, and settles it in time.
func TestDerivedStreamsAreMadeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, js := testbus.JS(t, w.node)
	w.provisioned(engine.Options{})
	w.publish(session.DoorCtl, "s1", session.TypeRunRequested, map[string]any{
		"input": map[string]any{"text": "hi"}, "config": map[string]any{
			"provider": "openai", "model": "m", "deadlines_ms": map[string]any{"turn": 20_000},
		},
	})
	bustest.Until(t, "a wake is scheduled", func() bool { return w.state(js, "REFOLD_TIMERS").LastSeq >= 1 })
	for _, stream := range []string{"REFOLD_TIMERS", "REFOLD_OUT"} {
		bustest.OK(t, js.DeleteStream(w.ctx, stream))
	}
	w.run("s2", "hello") // its notices can't be stored now
	bustest.Until(t, "notices are stored", func() bool {
		out, err := js.Stream(w.ctx, "REFOLD_OUT")
		return err == nil && out.CachedInfo().State.Msgs > 0
	})
	bustest.Until(t, "the deadline is settled", func() bool {
		state := w.folded("s1")
		return state.Run == nil
	})
	if got, err := w.bus.Check(w.ctx, testbus.Conf(t, "")); err != nil || len(got) > 0 {
		t.Errorf("got %v, %v; want all streams as they were", got, err)
	}
}

// TestSealedStreamIsTold: a lane that can't store says so within seconds, with the cause.
func TestSealedStreamIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, js := testbus.JS(t, w.node)
	b := w.connect()
	bustest.OK(t, b.Provision(w.ctx, testbus.Conf(t, ""), 1))
	h := engine.New(b, slog.New(slog.DiscardHandler), engine.Options{})
	done := make(chan error, 1)
	go func() { done <- h.Run(w.ctx) }()
	bustest.Until(t, "it is ready", func() bool { return len(h.NotReady(w.ctx)) == 0 })
	w.limit(js, "REFOLD_OUT", func(c *jetstream.StreamConfig) { c.Sealed = true })
	w.run("s1", "hello")
	began := time.Now()
	var reasons []string
	bustest.Until(t, "it is not ready", func() bool {
		reasons = h.NotReady(w.ctx)
		return slices.ContainsFunc(reasons, func(r string) bool { return strings.Contains(r, "stores nothing") && strings.Contains(r, "sealed") })
	})
	if !slices.ContainsFunc(reasons, func(r string) bool { return strings.Contains(r, "REFOLD_OUT has sealed true") }) {
		t.Errorf("after %v: got %q, want the sealed stream too", time.Since(began), reasons)
	}
	data, err := h.View(w.ctx, "s1")
	var v session.View
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil || len(v.Troubles) != 1 || v.Troubles[0].Code != session.TroubleStalled || !slices.Equal(v.Troubles[0].Effects, []string{"r1t1"}) || !strings.Contains(v.Troubles[0].Detail, "sealed") {
		t.Errorf("view: got %+v, %v; want that its lane stalls", v.Troubles, err)
	}
	if beat := string(h.Heartbeat()); !strings.Contains(beat, "not_ready") || !strings.Contains(beat, "stores nothing") {
		t.Errorf("heartbeat: got %s, want that a lane stores nothing", beat)
	}
}

// TestPausedConsumerIsToldInViews: the consumer of a session's lane, or that of its model's
// bridges.
func TestPausedConsumerIsToldInViews(t *testing.T) {
	t.Parallel()
	for _, consumer := range []string{"REFOLD_LOG lane", "REFOLD_FX llm-openai"} {
		t.Run(consumer, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			_, js := testbus.JS(t, w.node)
			b := w.connect()
			bustest.OK(t, b.Provision(w.ctx, testbus.Conf(t, ""), 1))
			_, err := b.EnsureBridge(w.ctx, testbus.Conf(t, ""), session.ClassLLM, "openai")
			bustest.OK(t, err)
			stream, name, _ := strings.Cut(consumer, " ")
			if name == "lane" {
				name = subjects.LaneName(subjects.Lane(subjects.Partition("s1")))
			}
			_, err = js.PauseConsumer(w.ctx, stream, name, time.Now().Add(time.Hour))
			bustest.OK(t, err)
			r := w.beginAt(b, engine.Options{})
			t.Cleanup(func() { r.stop(w) })
			w.run("s1", "hello")
			var got []session.Trouble
			bustest.Until(t, "its view has a trouble", func() bool {
				data, err := w.bus.RequestView(w.ctx, "s1")
				var v session.View
				if err == nil && json.Unmarshal(data, &v) == nil {
					got = v.Troubles
				}
				return len(got) > 0
			})
			if got[0].Code != session.TroubleStalled || got[0].Target != "llm/openai" || !strings.HasPrefix(got[0].Detail, "consumer "+name+" of "+stream+" is paused") {
				t.Errorf("got %+v, want that %s is paused", got, name)
			}
		})
	}
}

// TestLostLogStopsHost: an empty log is no fresh start.
func TestLostLogStopsHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, js := testbus.JS(t, w.node)
	b := w.connect()
	bustest.OK(t, b.Provision(w.ctx, testbus.Conf(t, ""), 1))
	r := w.beginAt(b, engine.Options{})
	w.turn(1, "s1")
	id := b.LogID()
	bustest.OK(t, js.DeleteStream(w.ctx, "REFOLD_LOG"))
	select {
	case err := <-r.done:
		var lost *streams.LogLostError
		if !errors.As(err, &lost) || lost.ID != id {
			t.Errorf("got %v, want that the log %s is lost", err, id)
		}
	case <-w.ctx.Done():
		t.Error("the host goes on without a log")
	}
}
