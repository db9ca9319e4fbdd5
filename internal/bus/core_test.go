package bus_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/micro"

	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/subjects"
)

func liveAndCancel(t *testing.T, e env) {
	ctx, cancel := context.WithCancel(e.ctx)
	defer cancel()
	got := make(chan string, 16)
	hear := func(sid string, payload []byte) { got <- sid + ":" + string(payload) }
	other := e.all[len(e.all)-1]
	if err := other.SubscribeLive(ctx, "live", hear); err != nil {
		t.Fatal(err)
	}
	if err := other.SubscribeCancel(ctx, hear); err != nil {
		t.Fatal(err)
	}
	await := func(want string) {
		t.Helper()
		for {
			select {
			case one := <-got:
				if one == want {
					return
				}
				if !strings.HasPrefix(one, "live") {
					t.Fatalf("got %s, want %s", one, want)
				}
			case <-e.ctx.Done():
				t.Fatalf("not heard: %s", want)
			}
		}
	}
	// In a cluster interest takes a moment to reach the other servers; core
	// messages until then reach nobody, as they may.
	bustest.Until(t, "deltas arrive", func() bool {
		if err := errors.Join(e.b.PublishLive("live", []byte("probe")), e.b.PublishCancel(e.ctx, "live", []byte("probe"))); err != nil {
			t.Fatal(err)
		}
		return len(got) >= 2
	})
	if err := e.b.PublishLive("live-other", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := e.b.PublishLive("live", []byte("delta")); err != nil {
		t.Fatal(err)
	}
	await("live:delta")
	if err := e.b.PublishCancel(e.ctx, "live", []byte("stop")); err != nil {
		t.Fatal(err)
	}
	await("live:stop")
	if err := e.b.PublishLive("a.b", nil); err == nil {
		t.Error("live of a bad session: got no error")
	}
	if err := e.b.SubscribeLive(ctx, "a.b", hear); err == nil {
		t.Error("listening to a bad session: got no error")
	}
}

func viewContract(t *testing.T, e env) {
	if _, err := e.b.RequestView(e.ctx, "view"); !errors.Is(err, bus.ErrNoView) {
		t.Errorf("nobody serves: got %v, want ErrNoView", err)
	}
	server := e.all[len(e.all)-1]
	stop, err := server.Register(e.ctx, bus.Service{Kind: "session-actor", Version: "1.0.0"}, bus.Endpoint{
		Name: "view", Subject: e.names.ViewAll(),
		Answer: func(subject string, _ []byte) ([]byte, error) {
			switch sid, err := e.names.ParseView(subject); sid {
			case "view-bad":
				return nil, errors.New("it is quarantined")
			case "view-silent":
				return nil, nil
			default:
				return []byte(`{"session":"` + sid + `"}`), err
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stop() }) // fails on a closed connection only
	bustest.Until(t, "views are served", func() bool {
		_, err := e.b.RequestView(e.ctx, "view")
		return err == nil
	})
	view, err := e.b.RequestView(e.ctx, "view-1")
	if err != nil || string(view) != `{"session":"view-1"}` {
		t.Errorf("got %s %v", view, err)
	}
	if _, err := e.b.RequestView(e.ctx, "view-bad"); err == nil || !strings.Contains(err.Error(), "it is quarantined") {
		t.Errorf("got %v, want the server's error", err)
	}
	short, cancelShort := context.WithTimeout(e.ctx, 50*time.Millisecond)
	defer cancelShort()
	if _, err := e.b.RequestView(short, "view-silent"); !errors.Is(err, bus.ErrNoView) {
		t.Errorf("nobody answers: got %v, want ErrNoView", err)
	}
}

func aliveContract(t *testing.T, e env) {
	ctx, cancel := context.WithCancel(e.ctx)
	defer cancel()
	began := time.Now()
	members, err := e.all[len(e.all)-1].TrackMembers(ctx, subjects.KindBridge)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if err := e.b.Heartbeat(ctx, subjects.KindSessionActor, "01C", func() []byte { return nil }); err != nil {
			t.Error(err)
		}
	}()
	for _, instance := range []string{"01B", "01A"} {
		go func() {
			if err := e.b.Heartbeat(ctx, subjects.KindBridge, instance, func() []byte { return []byte(instance) }); err != nil {
				t.Error(err)
			}
		}()
	}
	for {
		heartbeat := members.Heartbeats()
		live := members.Live(bus.GoneAfter)
		if len(live) == 2 {
			if live[0].Instance != "01A" || string(live[1].Body) != "01B" {
				t.Errorf("got %+v", live)
			}
			break
		}
		select {
		case <-heartbeat:
		case <-e.ctx.Done():
			t.Fatalf("heard only %+v", live)
		}
	}
	if gone := members.Gone("01A") || members.Gone("never"); gone && time.Since(began) < bus.GoneAfter {
		t.Error("nobody is gone before GoneAfter of listening")
	}
	if at, ok := members.Heard("01A"); !ok || at.Before(began) {
		t.Errorf("heard: got %v %v", at, ok)
	}
	if err := e.b.Heartbeat(ctx, subjects.KindBridge, "a.b", func() []byte { return nil }); err == nil {
		t.Error("a bad instance: got no error")
	}
}

func serviceContract(t *testing.T, e env) {
	for _, version := range []string{"1.2.3", "(devel)"} {
		stop, err := e.b.Register(
			e.ctx,
			bus.Service{Kind: "bridge", Version: version, Description: "test", Metadata: map[string]string{"k": "v"}, Stats: func() any { return 7 }},
			bus.Endpoint{Name: "echo", Subject: "test.echo", Answer: func(_ string, in []byte) ([]byte, error) { return in, nil }},
			bus.Endpoint{Name: "fail", Subject: "test.fail", Everyone: true, Answer: func(string, []byte) ([]byte, error) { return nil, errors.New("no") }},
		)
		if err != nil {
			t.Fatal(err)
		}
		nc, _ := rawJS(t, e.nodes[0])
		answer, err := nc.RequestWithContext(e.ctx, "test.echo", []byte("hi"))
		if err != nil || string(answer.Data) != "hi" {
			t.Errorf("echo: got %v %v", answer, err)
		}
		answer, err = nc.RequestWithContext(e.ctx, "test.fail", nil)
		if err != nil || answer.Header.Get(micro.ErrorHeader) != "no" {
			t.Errorf("fail: got %v %v", answer, err)
		}
		answer, err = nc.RequestWithContext(e.ctx, "$SRV.INFO.refold-bridge", nil)
		if err != nil {
			t.Fatal(err)
		}
		var info micro.Info
		if err := json.Unmarshal(answer.Data, &info); err != nil {
			t.Fatal(err)
		}
		if shown := info.Version + info.Metadata["version"]; !strings.Contains(shown, version) || info.Metadata["k"] != "v" || len(info.Endpoints) != 2 {
			t.Errorf("version %s: got %+v", version, info)
		}
		answer, err = nc.RequestWithContext(e.ctx, "$SRV.STATS.refold-bridge", nil)
		if err != nil || strings.Count(string(answer.Data), `"data":7`) != 2 {
			t.Errorf("stats: got %v %v", answer, err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
	if _, err := e.b.Register(e.ctx, bus.Service{Kind: "a b", Version: "1.0.0"}); err == nil {
		t.Error("a bad name: got no error")
	}
}
