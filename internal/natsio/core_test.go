package natsio_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/presence"
)

// What is tested here, against one server and a cluster: what is on core NATS.

var cases = map[string]func(*testing.T, testbus.Env){
	"live and cancel": liveAndCancel,
	"view":            viewContract,
}

func TestContractR1(t *testing.T) {
	t.Parallel()
	testbus.Contract(t, []*bustest.Node{bustest.Server(t)}, 1, nil, cases)
}

func TestContractR3(t *testing.T) {
	t.Parallel()
	testbus.Contract(t, bustest.Cluster(t, 3), 3, nil, cases)
}

func liveAndCancel(t *testing.T, e testbus.Env) {
	ctx, cancel := context.WithCancel(e.Ctx)
	defer cancel()
	got := make(chan string, 16)
	hear := func(sid string, payload []byte) { got <- sid + ":" + string(payload) }
	other := e.All[len(e.All)-1]
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
			case <-e.Ctx.Done():
				t.Fatalf("not heard: %s", want)
			}
		}
	}
	// In a cluster interest takes a moment to reach the other servers; core
	// messages until then reach nobody, as they may.
	bustest.Until(t, "deltas arrive", func() bool {
		if err := errors.Join(e.B.PublishLive("live", []byte("probe")), e.B.PublishCancel(e.Ctx, "live", []byte("probe"))); err != nil {
			t.Fatal(err)
		}
		return len(got) >= 2
	})
	if err := e.B.PublishLive("live-other", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := e.B.PublishLive("live", []byte("delta")); err != nil {
		t.Fatal(err)
	}
	await("live:delta")
	if err := e.B.PublishCancel(e.Ctx, "live", []byte("stop")); err != nil {
		t.Fatal(err)
	}
	await("live:stop")
	if err := e.B.PublishLive("a.b", nil); err == nil {
		t.Error("live of a bad session: got no error")
	}
	if err := e.B.SubscribeLive(ctx, "a.b", hear); err == nil {
		t.Error("listening to a bad session: got no error")
	}
}

func viewContract(t *testing.T, e testbus.Env) {
	if _, err := e.B.RequestView(e.Ctx, "view"); !errors.Is(err, natsio.ErrNoView) {
		t.Errorf("nobody serves: got %v, want ErrNoView", err)
	}
	server := e.All[len(e.All)-1]
	stop, err := server.Register(e.Ctx, presence.Service{Kind: "session-actor", Version: "1.0.0"}, presence.Endpoint{
		Name: "view", Subject: e.Names.ViewAll(),
		Answer: func(subject string, _ []byte) ([]byte, error) {
			switch sid, err := e.Names.ParseView(subject); sid {
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
		_, err := e.B.RequestView(e.Ctx, "view")
		return err == nil
	})
	view, err := e.B.RequestView(e.Ctx, "view-1")
	if err != nil || string(view) != `{"session":"view-1"}` {
		t.Errorf("got %s %v", view, err)
	}
	if _, err := e.B.RequestView(e.Ctx, "view-bad"); err == nil || !strings.Contains(err.Error(), "it is quarantined") {
		t.Errorf("got %v, want the server's error", err)
	}
	short, cancelShort := context.WithTimeout(e.Ctx, 50*time.Millisecond)
	defer cancelShort()
	if _, err := e.B.RequestView(short, "view-silent"); !errors.Is(err, natsio.ErrNoView) {
		t.Errorf("nobody answers: got %v, want ErrNoView", err)
	}
}
