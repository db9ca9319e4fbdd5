package cli

// Two systems with one prefix, in two JetStream domains that a leafnode joins: each
// server stores the messages of both, and each system works with its own only.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

const unsafeRecord = `{"v":1,"rules":1,"default_profile":"all","profiles":[{"profile":"all","tools":["bank.pay"]}],
"tools":[{"tool_id":"bank.pay","tool_name":"pay","description":"Pays.","args_schema":{"type":"object"},
"executor":{"kind":"effect","target":"bank"},"access":"write"}],
"config":{"provider":"p","model":"m"}}`

// system is a world with a bridge, whose model calls an unsafe tool once in each run.
type system struct {
	*world
	paid atomic.Int32
	log  text
}

func (s *system) Execute(context.Context, executor.Call) (executor.Result, error) {
	s.paid.Add(1)
	return executor.Result{Output: "paid"}, nil
}

func (s *system) Generate(_ context.Context, r executor.Request, _ func(string)) (executor.Answer, error) {
	if r.Messages[len(r.Messages)-1].Role == "user" {
		return executor.Answer{Calls: []executor.AnswerCall{{Name: "pay", Arguments: "{}"}}}, nil
	}
	return executor.Answer{Text: "done"}, nil
}

func newSystem(t *testing.T, domain string) *system {
	t.Helper()
	return newSystemOn(t, bustest.Server(t, bustest.Interval, bustest.Domain(domain)))
}

func newSystemOn(t *testing.T, node *bustest.Node) *system {
	t.Helper()
	s := &system{}
	s.world = newWorldOn(t, node, unsafeRecord, slog.New(slog.NewTextHandler(&s.log, nil)))
	b, err := bridge.Connect(s.ctx, bridge.Options{URL: s.node.URL()})
	bustest.OK(t, err)
	t.Cleanup(b.Close)
	bustest.OK(t, errors.Join(b.Tool("bank", s), b.Model("p", s)))
	running, stop := context.WithCancel(s.ctx)
	done := make(chan error, 1)
	go func() { done <- b.Run(running) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("bridge: %v", err)
		}
	})
	return s
}

// join makes leaf's server a leafnode of hub's. Neither system refuses: they have started.
func join(t *testing.T, hub, leaf *system) {
	t.Helper()
	ready := time.Now()
	bustest.Until(t, "both have started beside nobody", func() bool { return time.Since(ready) > natsio.RefuseWithin })
	bustest.Join(t, hub.node, leaf.node)
}

// ends waits until a session has no run any more.
func (s *system) ends(sid string) {
	s.t.Helper()
	bustest.Until(s.t, sid+" ends", func() bool {
		v, err := s.View(s.ctx, sid)
		return err == nil && v.Lifecycle == session.Completed
	})
}

func TestJoinedSystemsIgnoreEachOther(t *testing.T) {
	t.Parallel()
	hub, leaf := newSystem(t, "hub"), newSystem(t, "leaf")
	join(t, hub, leaf)

	// One after the other, so that the names of the session's effects are taken.
	for _, s := range []*system{hub, leaf} {
		sid := "only-" + s.bus.LogID()
		for _, sid := range []string{"same", sid} {
			s.does(0, "run", sid, "pay", "--no-follow")
			s.ends(sid)
		}
		if got := s.paid.Load(); got != 2 {
			t.Errorf("a tool ran %d times in 2 runs, want once in each", got)
		}
	}
	for _, s := range []*system{hub, leaf} {
		s.does(0, "run", "at-once", "pay", "--no-follow")
	}
	for _, s := range []*system{hub, leaf} {
		s.ends("at-once")
		if got := s.paid.Load(); got != 3 {
			t.Errorf("a tool ran %d times in 3 runs, want once in each", got)
		}
	}
	for _, s := range []*system{hub, leaf} {
		out, _ := s.does(0, "replay", "--all", "--verify")
		own := fmt.Sprintf("same|only-%s|at-once", s.bus.LogID())
		like(t, "replay", out, `^(replay: identical  session (`+own+`) [^\n]*\n){3}$`)
		out, _ = s.does(0, "tail", "same", "--all")
		like(t, "notices", out, `^[^\n]* 1  SessionOpened[^\n]*\n[^\n]* 2  RunStarted`)
	}

	hub.log.shows(t, `level=ERROR msg=foreign_system .*where="server server-leaf, domain leaf, account \$G"`)
	out, _ := hub.does(statusFailed, "bridge", "doctor")
	like(t, "doctor", out, `\nforeign: another Refold system .* at server server-leaf, domain leaf, account \$G, publishes`)

	second := testbus.ConnectWith(t, natsio.Options{URL: hub.node.URL()})
	bustest.OK(t, second.Provision(hub.ctx, testbus.Conf(t, ""), 0))
	err := engine.New(second, slog.New(slog.DiscardHandler), engine.Options{}).Run(hub.ctx)
	var foreign *natsio.ForeignError
	if !errors.As(err, &foreign) {
		t.Errorf("a session-actor that starts: got %v, want a *natsio.ForeignError", err)
	}
	b, err := bridge.Connect(hub.ctx, bridge.Options{URL: hub.node.URL()})
	bustest.OK(t, err)
	t.Cleanup(b.Close)
	bustest.OK(t, b.Tool("other", hub))
	if err := b.Run(hub.ctx); !errors.As(err, &foreign) {
		t.Errorf("a bridge that starts: got %v, want a *natsio.ForeignError", err)
	}
}

// Clusters that gateways connect have one JetStream, so their programs are one system.
func TestGatewaysConnectOneSystem(t *testing.T) {
	t.Parallel()
	nodes := bustest.SuperCluster(t)
	s := newSystemOn(t, nodes[0])
	there := nodes[1].URL()
	s.does(0, "--nats", there, "run", "s1", "pay")
	if got := s.paid.Load(); got != 1 {
		t.Errorf("a tool ran %d times, want once", got)
	}
	at := testbus.ConnectWith(t, natsio.Options{URL: there})
	bustest.OK(t, at.Provision(s.ctx, testbus.Conf(t, ""), 0))
	if at.LogID() == "" || at.LogID() != s.bus.LogID() {
		t.Errorf("the clusters have the logs %q and %q, want one", s.bus.LogID(), at.LogID())
	}
	second := engine.New(at, slog.New(slog.DiscardHandler), engine.Options{})
	running, stop := context.WithCancel(s.ctx)
	done := make(chan error, 1)
	go func() { done <- second.Run(running) }()
	<-second.Ready()
	began := time.Now()
	bustest.Until(t, "neither refuses", func() bool { return time.Since(began) > natsio.RefuseWithin })
	s.does(0, "--nats", there, "run", "s1", "pay")
	for _, heard := range [][]natsio.Foreign{s.bus.Foreigners(), at.Foreigners()} {
		if len(heard) > 0 {
			t.Errorf("a session-actor hears %v", heard)
		}
	}
	stop()
	bustest.OK(t, <-done)
}

// A mirror of the log in another domain is not the log, also with its name and identity:
// clients beside it reach the log, and no session-actor works with it.
func TestMirrorIsNotTheLog(t *testing.T) {
	t.Parallel()
	s := newSystem(t, "hub")
	leaf := bustest.Server(t, bustest.Interval, bustest.Domain("leaf"))
	bustest.Join(t, s.node, leaf)
	at := testbus.ConnectWith(t, natsio.Options{URL: leaf.URL()})
	_, err := at.JS.CreateStream(s.ctx, jetstream.StreamConfig{
		Name: "REFOLD_LOG", Mirror: &jetstream.StreamSource{Name: "REFOLD_LOG", Domain: "hub"}, AllowDirect: true,
		Metadata: map[string]string{subjects.MetadataLog: s.bus.LogID()},
	})
	bustest.OK(t, err)

	s.does(0, "--nats", leaf.URL(), "run", "s1", "pay")
	if got := s.paid.Load(); got != 1 {
		t.Errorf("a tool ran %d times, want once", got)
	}
	bustest.Until(t, "the mirror has what the log has", func() bool {
		log, err := s.bus.JS.Stream(s.ctx, "REFOLD_LOG")
		bustest.OK(t, err)
		mirror, err := at.JS.Stream(s.ctx, "REFOLD_LOG")
		return err == nil && mirror.CachedInfo().State.LastSeq == log.CachedInfo().State.LastSeq
	})
	out, _ := s.does(0, "--nats", leaf.URL(), "log", "s1")
	like(t, "the log at the leaf", out, `RunRequested`)
	err = at.Provision(s.ctx, testbus.Conf(t, ""), 0)
	if err == nil || !strings.Contains(err.Error(), "REFOLD_LOG is a mirror of REFOLD_LOG in the domain hub") {
		t.Errorf("a session-actor at the mirror: %v", err)
	}
	if heard := s.bus.Foreigners(); len(heard) > 0 {
		t.Errorf("the hub hears %v", heard)
	}
}

// Any publisher may name any log in its messages. It is not heard then, and nobody else
// is concerned: neither sessions, nor daemons that start, nor the terminal of a person.
func TestAttackForgedLog(t *testing.T) {
	t.Parallel()
	s := newSystem(t, "hub")
	forger := testbus.ConnectWith(t, natsio.Options{URL: s.node.URL()})
	input := []byte(`{"type":"` + session.TypeRunRequested + `","data":{"input":{"text":"pay"}}}`)
	result := []byte(`{"type":"` + session.TypeToolCallSettled + `","data":{"effect":"r1t1c0","status":"succeeded","output":{"text":"forged"}}}`)
	logs := []string{"01ARZ3NDEKTSV4RRFFQ69G5FAV", "\x1b[2J", strings.Repeat("x", 60<<10)}
	for _, log := range logs {
		forger.SetLogID(log)
		for door, payload := range map[session.Door][]byte{session.DoorIn: input, session.DoorTool: result} {
			_, err := forger.Publish(s.ctx, door, "s1", payload, "")
			bustest.OK(t, err)
		}
		bustest.OK(t, forger.PublishCancel(s.ctx, "s1", []byte(`{"effects":["r1t1c0"]}`)))
		for _, subject := range []string{"refold.alive.bridge.X", "refold.view.s1", "refold.out.s1"} {
			bustest.OK(t, forger.PublishWith(subject, nats.Header{subjects.HeaderWhere: {"\x1b[2J"}}, nil))
		}
	}

	s.does(0, "run", "s1", "pay", "--no-follow")
	s.ends("s1")
	if got := s.paid.Load(); got != 1 {
		t.Errorf("a tool ran %d times, want once", got)
	}
	out, _ := s.does(0, "replay", "--all", "--verify")
	like(t, "replay", out, `^replay: identical  session s1 [^\n]*\n$`)
	out, _ = s.does(0, "bridge", "doctor")
	like(t, "doctor", out, `\nskipped: 6 of the newest \d+ events of REFOLD_LOG name another log, .* nobody folds them`)
	if strings.Contains(out, "\x1b") {
		t.Errorf("doctor prints a terminal's control sequence: %q", out)
	}

	var log text
	logger := slog.New(slog.NewTextHandler(&log, nil))
	second := testbus.ConnectWith(t, natsio.Options{URL: s.node.URL(), Logger: logger})
	bustest.OK(t, second.Provision(s.ctx, testbus.Conf(t, ""), 0))
	running, stop := context.WithCancel(s.ctx)
	done := make(chan error, 1)
	go func() { done <- engine.New(second, logger, engine.Options{}).Run(running) }()
	log.shows(t, `level=WARN msg=foreign_events .*note="6 of the newest`)
	began := time.Now()
	bustest.Until(t, "it would have refused", func() bool {
		bustest.OK(t, forger.PublishWith("refold.alive.bridge.X", nil, nil))
		return time.Since(began) > natsio.RefuseWithin
	})
	stop()
	if err := <-done; err != nil {
		t.Errorf("a session-actor that starts: %v", err)
	}
}
