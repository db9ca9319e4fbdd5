package bridge

// Whole bridges against a server; the test plays the session-actors. Leases last a
// second, so that their end is soon noticed.

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/internal/streams"
	"github.com/refold/refold/subjects"
)

const testPatience = 30 * time.Second

// actor plays the session-actors.
type actor struct {
	*bus.Bus
	server *bustest.Node
}

func newActor(t *testing.T) *actor {
	t.Helper()
	server := bustest.Server(t)
	return &actor{Bus: testbus.Provisioned(t, server), server: server}
}

// bridge connects a bridge whose leases last a second.
func (a *actor) bridge(t *testing.T, name string) *Bridge {
	t.Helper()
	b, err := Connect(t.Context(), Options{URL: a.server.URL(), Name: name, Version: "1.2.3", Grace: time.Second, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	lease := regexp.MustCompile(`(?m)^(  (?:every|step) \{.*ack_wait: )"[^"]*"`)
	if n := len(lease.FindAll(streams.File, -1)); n != 2 {
		t.Fatalf("streams.conf has %d leases of every class and of step where this test looks for them", n)
	}
	short := lease.ReplaceAll(streams.File, []byte(`${1}"1s"`))
	if b.conf, err = streams.ParseConf(short, b.bus.Names()); err != nil {
		t.Fatal(err)
	}
	return b
}

// run runs a bridge; stop ends it as SIGTERM does.
func run(t *testing.T, b *Bridge) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Run: %v", err)
			}
		case <-time.After(testPatience):
			t.Error("Run does not return")
		}
		b.Close()
	})
	t.Cleanup(stop)
	return stop
}

// serveView answers every request for a view, as a session-actor does.
func (a *actor) serveView(t *testing.T, view []byte) {
	t.Helper()
	_, err := a.Register(t.Context(), presence.Service{Kind: "session-actor", Version: "1.0.0"}, presence.Endpoint{
		Name: "view", Subject: a.Names().ViewAll(),
		Answer: func(string, []byte) ([]byte, error) { return view, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
}

// ask stores an effect.
func (a *actor) ask(t *testing.T, class session.Class, target, name string, payload any) {
	t.Helper()
	data, err := codec.Marshal(payload)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.Store(t.Context(), []journal.Output{{Session: "s1", Effect: &session.Effect{Name: name, Class: class, Target: target, Payload: data}}})...); err != nil {
		t.Fatal(err)
	}
}

// settled returns the settlements, once there are at least n.
func (a *actor) settled(t *testing.T, n int) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testPatience)
	defer cancel()
	for {
		var all []string
		for e, err := range a.ReadSession(ctx, "s1", 1, 0, true) {
			if err != nil {
				t.Fatalf("waiting for %d settlements, have %q: %v", n, all, err)
			}
			if e.Door == session.DoorLLM || e.Door == session.DoorTool || e.Door == session.DoorStep {
				all = append(all, settledAs(t, e))
			}
		}
		if len(all) >= n {
			return all
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func TestBridge(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	b := a.bridge(t, "one")
	released := make(chan struct{})
	started := make(chan executor.Call, 10)
	errs := errors.Join(
		b.Tool("host", toolFunc(func(ctx context.Context, c executor.Call) (executor.Result, error) {
			started <- c
			if c.Effect == "r1t1c2" {
				<-ctx.Done() // until it is withdrawn
				return executor.Result{}, ctx.Err()
			}
			select {
			case <-released:
			case <-ctx.Done():
			}
			return executor.Result{Output: "done " + c.Effect}, nil
		}), Concurrency(3)),
		b.Model("p", answerFunc(func(_ context.Context, r executor.Request, delta func(string)) (executor.Answer, error) {
			delta("hel")
			delta("lo")
			return executor.Answer{Text: "hello, " + r.Messages[0].Text}, nil
		})),
	)
	if errs != nil {
		t.Fatal(errs)
	}
	deltas := make(chan string, 10)
	if err := a.SubscribeLive(t.Context(), "s1", func(_ string, payload []byte) { deltas <- string(payload) }); err != nil {
		t.Fatal(err)
	}
	stop := run(t, b)

	seq, err := a.Publish(t.Context(), session.DoorIn, "s1", eventOf(t, session.TypeRunRequested, session.RunRequested{Input: *contentOf("world")}), "")
	if err != nil {
		t.Fatal(err)
	}
	a.ask(t, session.ClassLLM, "p", "r1t1", turnAsked("r1t1", session.Item{Role: session.RoleUser, Seq: seq}))
	if got, want := a.settled(t, 1), []string{"r1t1 ok"}; !slices.Equal(got, want) {
		t.Errorf("settled: got %q, want %q", got, want)
	}
	last, _, err := a.LastOf(t.Context(), session.DoorLLM, "s1")
	if err != nil || !strings.Contains(string(last.Payload), "hello, world") {
		t.Errorf("answer: got %q, %v", last.Payload, err)
	}
	for n, want := range []string{`"n":0,"text":"hel"`, `"n":1,"text":"lo"`} {
		if got := <-deltas; !strings.Contains(got, want) || !strings.Contains(got, `"effect":"r1t1","start":"`) {
			t.Errorf("delta %d: got %s", n, got)
		}
	}

	// Three at once and no more; the fourth waits for a free place.
	for _, name := range []string{"r1t1c0", "r1t1c1", "r1t1c2", "r1t1c3"} {
		a.ask(t, session.ClassTool, "host", name, callAsked(name, name == "r1t1c1"))
	}
	for range 3 {
		<-started
	}
	select {
	case c := <-started:
		t.Errorf("%s started beside three others", c.Effect)
	case <-time.After(1500 * time.Millisecond): // longer than a lease
	}
	if err := a.PublishCancel(t.Context(), "s1", []byte(`{"effects":["r1t1c2"]}`)); err != nil {
		t.Fatal(err)
	}
	<-started
	close(released)
	got := a.settled(t, 5)
	slices.Sort(got[1:])
	if want := []string{"r1t1 ok", "r1t1c0 succeeded", "r1t1c1 succeeded", "r1t1c2 outcome_unknown outcome_unknown", "r1t1c3 succeeded"}; !slices.Equal(got, want) {
		t.Errorf("settled: got %q, want %q", got, want)
	}
	a.allAcked(t, "tool-host", "llm-p")
	if got := b.Stats(); got.Started != 5 || got.Settled != 5 || got.GivenBack+got.Conflicts+got.Foreign != 0 || got.Events.Misses != 1 {
		t.Errorf("stats: got %+v", got)
	}
	stop()
	if got := len(a.settled(t, 5)); got != 5 {
		t.Errorf("settled %d, want 5", got)
	}
}

// allAcked waits until consumers have nothing left.
func (a *actor) allAcked(t *testing.T, consumers ...string) {
	t.Helper()
	_, js := testbus.JS(t, a.server)
	for _, name := range consumers {
		bustest.Until(t, name+" has nothing left", func() bool {
			c, err := js.Consumer(t.Context(), a.Names().EffectsStream(), name)
			if err != nil {
				return false
			}
			info, err := c.Info(t.Context())
			// A consumer is seen before it has counted what waits for it.
			return err == nil && info.AckFloor.Consumer > 0 && info.NumPending == 0 && info.NumAckPending == 0 && info.NumRedelivered == 0
		})
	}
}

// A bridge is a micro service and publishes a heartbeat every half second.
func TestBridgeIsSeen(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	b := a.bridge(t, "one")
	if err := b.Tool("host", toolFunc(nil)); err != nil {
		t.Fatal(err)
	}
	if err := b.Model("p", answerFunc(nil)); err != nil {
		t.Fatal(err)
	}
	if err := b.Step("router", executor.PrepareStep(nil)); err != nil {
		t.Fatal(err)
	}
	members, err := a.TrackMembers(t.Context(), subjects.KindBridge)
	if err != nil {
		t.Fatal(err)
	}
	run(t, b)
	bustest.Until(t, "a heartbeat is heard", func() bool { _, ok := members.Heard(b.Instance()); return ok })
	var beat struct {
		Targets []string
		Rules   int
	}
	if err := json.Unmarshal(members.Live(time.Minute)[0].Body, &beat); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(beat.Targets, []string{"llm/p", "step/router", "tool/host"}) || beat.Rules != session.RulesVersion {
		t.Errorf("heartbeat: got %+v", beat)
	}
	nc, _ := testbus.JS(t, a.server)
	answer, err := nc.Request("$SRV.INFO.refold-bridge", nil, testPatience)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"version":"1.2.3"`, `"targets":"llm/p step/router tool/host"`, `"instance":"` + b.Instance(), `"name":"one"`} {
		if !strings.Contains(string(answer.Data), want) {
			t.Errorf("service: %s lacks %s", answer.Data, want)
		}
	}
	for _, subject := range []string{"$SRV.STATS.refold-bridge", "$SRV.STATS.refold-bridge." + b.Instance()} {
		answer, err := nc.Request(subject, nil, testPatience)
		if err != nil {
			t.Fatal(err)
		}
		if want := `"rendered":{"hits":0,"misses":0,"entries":0,"bytes":0}`; !strings.Contains(string(answer.Data), want) {
			t.Errorf("%s: %s lacks %s", subject, answer.Data, want)
		}
	}
}

// The server loses its deliveries and acks: nothing starts again or is settled
// twice.
func TestConsumerIsLost(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	b := a.bridge(t, "one")
	var starts startLog
	if err := b.Tool("host", toolFunc(func(_ context.Context, c executor.Call) (executor.Result, error) {
		starts.add(c.Effect)
		return executor.Result{}, nil
	})); err != nil {
		t.Fatal(err)
	}
	run(t, b)
	names := []string{"r1t1c0", "r1t1c1", "r1t1c2"}
	for i, name := range names {
		a.ask(t, session.ClassTool, "host", name, callAsked(name, i == 1))
	}
	a.settled(t, len(names))
	a.allAcked(t, "tool-host")

	_, js := testbus.JS(t, a.server)
	if err := js.DeleteConsumer(t.Context(), a.Names().EffectsStream(), "tool-host"); err != nil {
		t.Fatal(err)
	}
	a.ask(t, session.ClassTool, "host", "r1t2c0", callAsked("r1t2c0", false))
	a.settled(t, 4)
	a.allAcked(t, "tool-host")
	if got := starts.all(); len(got) != 4 {
		t.Errorf("started %q, want each once", got)
	}
	if got := a.settled(t, 4); len(got) != 4 {
		t.Errorf("settled %q, want each once", got)
	}
}

// The server goes away in the middle of a call and comes back.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	b := a.bridge(t, "one")
	var starts startLog
	began, release := make(chan struct{}), make(chan struct{})
	if err := b.Tool("host", toolFunc(func(_ context.Context, c executor.Call) (executor.Result, error) {
		starts.add(c.Effect)
		if c.Effect == "r1t1c0" {
			close(began)
			<-release
		}
		return executor.Result{Output: c.Effect}, nil
	})); err != nil {
		t.Fatal(err)
	}
	run(t, b)
	a.ask(t, session.ClassTool, "host", "r1t1c0", callAsked("r1t1c0", false))
	<-began
	a.server.Stop()
	close(release) // its settlement finds nobody
	a.server.Start()
	a.ask(t, session.ClassTool, "host", "r1t2c0", callAsked("r1t2c0", false))
	got := a.settled(t, 2)
	a.allAcked(t, "tool-host")
	if want := []string{"r1t1c0 succeeded", "r1t2c0 succeeded"}; !slices.Equal(got, want) {
		t.Errorf("settled: got %q, want %q", got, want)
	}
	if want := []string{"r1t1c0", "r1t2c0"}; !slices.Equal(starts.all(), want) {
		t.Errorf("started: got %q, want %q", starts.all(), want)
	}
}

// A bridge dies with an unsafe call, a safe call and a model turn in progress.
// The other bridge settles the first as outcome_unknown, runs the second, and
// takes over the third.
func TestHolderDies(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	var starts startLog
	hanging, unhang := context.WithCancel(context.Background())
	t.Cleanup(unhang)
	began := make(chan struct{}, 3)
	serve := func(name string, hang bool) *Bridge {
		b := a.bridge(t, name)
		at := func(effect string) {
			starts.add(name + " " + effect)
			if hang {
				began <- struct{}{}
				<-hanging.Done()
			}
		}
		errs := errors.Join(
			b.Tool("host", toolFunc(func(_ context.Context, c executor.Call) (executor.Result, error) {
				at(c.Effect)
				return executor.Result{}, nil
			})),
			b.Model("p", answerFunc(func(_ context.Context, r executor.Request, _ func(string)) (executor.Answer, error) {
				at(r.Effect)
				return executor.Answer{Text: "hello"}, nil
			})),
		)
		if errs != nil {
			t.Fatal(errs)
		}
		return b
	}
	seq, err := a.Publish(t.Context(), session.DoorIn, "s1", eventOf(t, session.TypeRunRequested, session.RunRequested{Input: *contentOf("world")}), "")
	if err != nil {
		t.Fatal(err)
	}
	view, err := json.Marshal(session.View{Shown: session.Shown{Session: "s1", Seq: seq, Clock: time.Now().Add(time.Minute).UnixMilli()}, Open: []session.ViewEffect{{Effect: "r1t1"}, {Effect: "r1t1c1"}}})
	if err != nil {
		t.Fatal(err)
	}
	a.serveView(t, view)
	first := serve("first", true)
	run(t, first)
	a.ask(t, session.ClassLLM, "p", "r1t1", turnAsked("r1t1", session.Item{Role: session.RoleUser, Seq: seq}))
	a.ask(t, session.ClassTool, "host", "r1t1c0", callAsked("r1t1c0", false))
	a.ask(t, session.ClassTool, "host", "r1t1c1", callAsked("r1t1c1", true))
	for range 3 {
		<-began
	}
	first.Close() // it is not heard any more, and says nothing
	run(t, serve("second", false))
	got := a.settled(t, 3)
	a.allAcked(t, "tool-host", "llm-p")
	slices.Sort(got)
	if want := []string{"r1t1 ok", "r1t1c0 outcome_unknown outcome_unknown", "r1t1c1 succeeded"}; !slices.Equal(got, want) {
		t.Errorf("settled: got %q, want %q", got, want)
	}
	all := starts.all()
	slices.Sort(all)
	if want := []string{"first r1t1", "first r1t1c0", "first r1t1c1", "second r1t1", "second r1t1c1"}; !slices.Equal(all, want) {
		t.Errorf("started: got %q, want %q", all, want)
	}
	unhang()
}

func TestConnectRefuses(t *testing.T) {
	t.Parallel()
	_, err := Connect(t.Context(), Options{Prefix: "No", Replicas: 9, Grace: -1})
	for _, want := range []string{"prefix", "replicas", "grace"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, which does not tell of %s", err, want)
		}
	}
	if _, err := Connect(t.Context(), Options{URL: "nats://127.0.0.1:1"}); !errors.Is(err, natsio.ErrNoServer) {
		t.Errorf("got %v, want %v", err, natsio.ErrNoServer)
	}
}

func TestServeRefuses(t *testing.T) {
	t.Parallel()
	server := bustest.Server(t)
	b, err := Connect(t.Context(), Options{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "targets") {
		t.Errorf("without targets: got %v", err)
	}
	other, err := Connect(t.Context(), Options{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	x := toolFunc(nil)
	for _, c := range []struct {
		err  error
		want string
	}{
		{other.Tool("a.b", x), "target"},
		{other.Tool("a", nil), "it has no executor"},
		{other.Tool("a", x, Concurrency(0)), "concurrency"},
		{other.Tool("a", x), ""},
		{other.Tool("a", x), "already"},
		{other.Model("a", answerFunc(nil)), ""},
		{other.Step("a", nil), "it has no executor"},
		{other.Step("a", executor.PrepareStep(nil)), ""},
		{other.Step("a", executor.PrepareStep(nil)), "step/a: it is already served"},
		{b.Tool("a", x), "before Run"},
	} {
		if c.want == "" && c.err != nil || c.want != "" && (c.err == nil || !strings.Contains(c.err.Error(), c.want)) {
			t.Errorf("got %v, want %q", c.err, c.want)
		}
	}
	// Nobody made the streams: a bridge that may not says so.
	if err := other.Run(t.Context()); !errors.Is(err, natsio.ErrNoStream) {
		t.Errorf("without streams: got %v, want %v", err, natsio.ErrNoStream)
	}
	// One that may makes them.
	third, err := Connect(t.Context(), Options{URL: server.URL(), Provision: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := third.Tool("a", x); err != nil {
		t.Fatal(err)
	}
	run(t, third)()
}
