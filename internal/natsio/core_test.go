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

// Messages on core NATS, against one server and a cluster.

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
	bustest.OK(t, other.SubscribeLive(ctx, "live", hear))
	bustest.OK(t, other.SubscribeCancel(ctx, hear))
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
		bustest.OK(t, errors.Join(e.B.PublishLive("live", []byte("probe")), e.B.PublishCancel(e.Ctx, "live", []byte("probe"))))
		return len(got) >= 2
	})
	bustest.OK(t, e.B.PublishLive("live-other", []byte("x")))
	bustest.OK(t, e.B.PublishLive("live", []byte("delta")))
	await("live:delta")
	bustest.OK(t, e.B.PublishCancel(e.Ctx, "live", []byte("stop")))
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
	bustest.OK(t, err)
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
