package main

// The bridge's answers over HTTP.

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/bus/bustest"
)

func TestReadyWhileItPulls(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	bustest.OK(t, err)
	address := l.Addr().String()
	l.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan int, 1)
	go func() {
		ended <- Main(ctx, []string{"--model", "scripted:echo", "--provision", "--http", address}, []string{"NATS_URL=" + node.URL()}, io.Discard, io.Discard)
	}()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(path string) (int, string) {
		request, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, "http://"+address+path, nil)
		bustest.OK(t, err)
		answer, err := client.Do(request)
		if err != nil {
			return 0, ""
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			return 0, ""
		}
		return answer.StatusCode, string(body)
	}
	bustest.Until(t, "it is ready", func() bool { status, _ := get("/readyz"); return status == http.StatusOK })
	_, body := get("/metrics")
	for _, want := range []string{`refold_bridge_slots{`, `target="llm/scripted"`, `refold_claims_total{`, `refold_bridge_cache_total{`} {
		if !strings.Contains(body, want) {
			t.Errorf("/metrics has no %s:\n%s", want, body)
		}
	}
	node.Stop()
	bustest.Until(t, "it is not ready without NATS", func() bool {
		status, body := get("/readyz")
		return status == http.StatusServiceUnavailable && strings.Contains(body, "NATS is not connected")
	})
	node.Start()
	bustest.Until(t, "it is ready again", func() bool { status, _ := get("/readyz"); return status == http.StatusOK })
	stop()
	if status := <-ended; status != settings.StatusDone {
		t.Errorf("status %d", status)
	}
}
