package main

// The client library closes a connection for good if the server reports a violation,
// such as a message over a limit that was lowered. The daemon connects again.

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/bus/bustest"
)

// tiny is less than a heartbeat takes.
const tiny = 16

func TestClosedConnectionIsOpenedAgain(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	r := runs(t, []string{"--closed-exit", "5m"}, "NATS_URL="+node.URL())
	r.ready(http.StatusOK, "")
	node.Reload(bustest.MaxPayload(tiny))
	for _, path := range []string{"/readyz", "/healthz"} {
		bustest.Until(t, path+" tells why", func() bool {
			status, body := r.get(path)
			return status == http.StatusServiceUnavailable && strings.Contains(body, "max_payload")
		})
	}
	if !strings.Contains(r.log.String(), "Maximum Payload Violation") {
		t.Errorf("the log does not say why the connection was closed:\n%s", r.log)
	}
	node.Reload(bustest.MaxPayload(server.MAX_PAYLOAD_SIZE))
	r.ready(http.StatusOK, "")
	if status, _ := r.get("/healthz"); status != http.StatusOK {
		t.Errorf("/healthz on the new connection: got %d, want 200", status)
	}
	r.stop()
	if status := <-r.ended; status != settings.StatusDone {
		t.Errorf("status: got %d, want %d", status, settings.StatusDone)
	}
}

func TestClosedConnectionEndsDaemon(t *testing.T) {
	t.Parallel()
	for _, after := range []string{"0", "1s"} {
		t.Run(after, func(t *testing.T) {
			t.Parallel()
			node := bustest.Server(t)
			r := runs(t, []string{"--closed-exit", after}, "NATS_URL="+node.URL())
			r.ready(http.StatusOK, "")
			node.Reload(bustest.MaxPayload(tiny))
			select {
			case status := <-r.ended:
				if status != settings.StatusFailed || !strings.Contains(r.log.String(), "refold-session-actor: ") || !strings.Contains(r.log.String(), "closed for good") {
					t.Errorf("got status %d, want %d and the reason:\n%s", status, settings.StatusFailed, r.log)
				}
			case <-time.After(time.Minute):
				t.Fatalf("it goes on without a connection:\n%s", r.log)
			}
		})
	}
}
