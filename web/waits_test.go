package web_test

// What a stream says while something that a run needs is away, and that it goes on.

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/web"
)

// carry runs a session-actor on a server until stop is called.
func carry(t testing.TB, node *bustest.Node) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(testbus.Context(t))
	b, err := bus.Connect(ctx, natsio.Options{URL: node.URL()})
	bustest.OK(t, err)
	bustest.OK(t, b.Provision(ctx, testbus.Conf(t, ""), 1))
	_, err = engine.EnsureInstall(ctx, b, []byte(`{"v":1,"rules":1,"tools":[]}`))
	bustest.OK(t, err)
	h := engine.New(b, slog.New(slog.DiscardHandler), engine.Options{})
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	<-h.Ready()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("session-actor: %v", err)
		}
		b.Close()
	}
}

// moody is a model that fails while it is down, and else answers when it is let.
type moody struct {
	down atomic.Bool
	let  chan struct{}
}

func (m *moody) Generate(ctx context.Context, _ executor.Request, _ func(string)) (executor.Answer, error) {
	if m.down.Load() {
		return executor.Answer{}, &executor.Error{Code: "overloaded", Detail: "too much to do", Retryable: true}
	}
	select {
	case <-m.let:
		return executor.Answer{Text: "here I am"}, nil
	case <-ctx.Done():
		return executor.Answer{}, ctx.Err()
	}
}

// FD-09: the stream says what is away, and goes on when it is back: a provider, the
// session-actor, the server.
func TestStreamSaysWhatIsAway(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	stop := carry(t, node)
	defer func() { stop() }()
	nc, err := nats.Connect(node.URL())
	bustest.OK(t, err)
	defer nc.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	rt, err := refold.Open(ctx, refold.NATS(nc), refold.Grace(time.Second))
	bustest.OK(t, err)
	defer rt.Close()
	m := &moody{let: make(chan struct{})}
	_, err = rt.Agent("helper",
		refold.Model(refold.ModelRef{Provider: "moody", Model: "moody", Open: func() (executor.Model, error) { return m, nil }}),
		refold.Config(refold.RunConfig{Retry: &session.Retry{Attempts: 10, BackoffMS: 100, BackoffMaxMS: 3000}}))
	bustest.OK(t, err)
	w := &world{t: t, ctx: ctx, rt: rt}
	w.url = w.handler(web.Options{})
	s := w.follow("all", "/v1/sessions/s/updates")
	await := func(what string, holds func(web.Update) bool) {
		t.Helper()
		var seen []string
		for range 1000 {
			u, _ := w.update(s)
			if holds(u) {
				return
			}
			seen = append(seen, fmt.Sprintf("%s %s %s", u.Type, u.For, u.Cause))
		}
		t.Fatalf("%s: got %q", what, seen)
	}
	ask := func() {
		t.Helper()
		w.want(http.StatusAccepted, nil, "all", "POST", "/v1/sessions/s/runs", `{"agent": "helper", "input": "Are you there?"}`)
	}
	ended := func(u web.Update) bool { return u.Type == "run_ended" && u.Lifecycle == session.Completed }

	m.down.Store(true)
	ask()
	await("the provider is down", func(u web.Update) bool { return u.Type == "waiting" && u.For == "model" && u.Cause == "overloaded" })
	m.down.Store(false)
	m.let <- struct{}{}
	await("the provider is back", ended)

	stop()
	ask()
	await("no session-actor", func(u web.Update) bool { return u.Type == "waiting" && u.For == "session-actor" && u.Cause == "silent" })
	w.refuse(http.StatusServiceUnavailable, "no_session_actor", "all", "GET", "/v1/sessions/s", "")
	stop = carry(t, node)
	await("the session-actor is heard", func(u web.Update) bool { return u.Type == "waiting" && u.For == "session-actor" && u.Cause == "" })
	m.let <- struct{}{}
	await("the session-actor is back", ended)

	ask()
	await("the run began", func(u web.Update) bool { return u.Type == "run_started" })
	node.Stop()
	await("no server", func(u web.Update) bool { return u.Type == "waiting" && u.For == "session-actor" && u.Cause == "silent" })
	node.Start()
	m.let <- struct{}{}
	await("the server is back", ended)
}
