package presence_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/micro"

	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/subjects"
)

// Heartbeats and micro services, against one server and a cluster.

var cases = map[string]func(*testing.T, testbus.Env){
	"alive":   aliveContract,
	"service": serviceContract,
}

func TestContractR1(t *testing.T) {
	t.Parallel()
	testbus.Contract(t, []*bustest.Node{bustest.Server(t)}, 1, nil, cases)
}

func TestContractR3(t *testing.T) {
	t.Parallel()
	testbus.Contract(t, bustest.Cluster(t, 3), 3, nil, cases)
}

func aliveContract(t *testing.T, e testbus.Env) {
	ctx, cancel := context.WithCancel(e.Ctx)
	defer cancel()
	began := time.Now()
	members, err := e.All[len(e.All)-1].TrackMembers(ctx, subjects.KindBridge)
	bustest.OK(t, err)
	go func() {
		if err := e.B.Heartbeat(ctx, subjects.KindSessionActor, "01C", func() []byte { return nil }); err != nil {
			t.Error(err)
		}
	}()
	for _, instance := range []string{"01B", "01A"} {
		go func() {
			if err := e.B.Heartbeat(ctx, subjects.KindBridge, instance, func() []byte { return []byte(instance) }); err != nil {
				t.Error(err)
			}
		}()
	}
	for {
		heartbeat := members.Heartbeats()
		live := members.Live(presence.GoneAfter)
		if len(live) == 2 {
			if live[0].Instance != "01A" || string(live[1].Body) != "01B" {
				t.Errorf("got %+v", live)
			}
			break
		}
		select {
		case <-heartbeat:
		case <-e.Ctx.Done():
			t.Fatalf("heard only %+v", live)
		}
	}
	if gone := members.Gone("01A") || members.Gone("never"); gone && time.Since(began) < presence.GoneAfter {
		t.Error("nobody is gone before GoneAfter of listening")
	}
	if at, ok := members.Heard("01A"); !ok || at.Before(began) {
		t.Errorf("heard: got %v %v", at, ok)
	}
	if err := e.B.Heartbeat(ctx, subjects.KindBridge, "a.b", func() []byte { return nil }); err == nil {
		t.Error("a bad instance: got no error")
	}
}

func serviceContract(t *testing.T, e testbus.Env) {
	for _, version := range []string{"1.2.3", "(devel)"} {
		stop, err := e.B.Register(
			e.Ctx,
			presence.Service{Kind: "bridge", Version: version, Description: "test", Metadata: map[string]string{"k": "v"}, Stats: func() any { return 7 }},
			presence.Endpoint{Name: "echo", Subject: "test.echo", Answer: func(_ string, in []byte) ([]byte, error) { return in, nil }},
			presence.Endpoint{Name: "fail", Subject: "test.fail", Everyone: true, Answer: func(string, []byte) ([]byte, error) { return nil, errors.New("no") }},
		)
		bustest.OK(t, err)
		nc, _ := testbus.JS(t, e.Nodes[0])
		answer, err := nc.RequestWithContext(e.Ctx, "test.echo", []byte("hi"))
		if err != nil || string(answer.Data) != "hi" {
			t.Errorf("echo: got %v %v", answer, err)
		}
		answer, err = nc.RequestWithContext(e.Ctx, "test.fail", nil)
		if err != nil || answer.Header.Get(micro.ErrorHeader) != "no" {
			t.Errorf("fail: got %v %v", answer, err)
		}
		answer, err = nc.RequestWithContext(e.Ctx, "$SRV.INFO.refold-bridge", nil)
		bustest.OK(t, err)
		var info micro.Info
		bustest.OK(t, json.Unmarshal(answer.Data, &info))
		if shown := info.Version + info.Metadata["version"]; !strings.Contains(shown, version) || info.Metadata["k"] != "v" || len(info.Endpoints) != 2 {
			t.Errorf("version %s: got %+v", version, info)
		}
		answer, err = nc.RequestWithContext(e.Ctx, "$SRV.STATS.refold-bridge", nil)
		if err != nil || strings.Count(string(answer.Data), `"data":7`) != 2 {
			t.Errorf("stats: got %v %v", answer, err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
	if _, err := e.B.Register(e.Ctx, presence.Service{Kind: "a b", Version: "1.0.0"}); err == nil {
		t.Error("a bad name: got no error")
	}
}
