package main

// The client library closes a connection for good if the server reports a violation,
// such as a message over a limit that was lowered. The bridge connects again.

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/bus/bustest"
)

// tiny is less than a heartbeat takes.
const tiny = 16

func TestClosedConnectionIsOpenedAgain(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--model", "scripted:echo"}, {"--tools", "crm=services"}} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			node := bustest.Server(t)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			log, ended := &lines{}, make(chan int, 1)
			args := append([]string{"--http", "127.0.0.1:0", "--closed-exit", "5m"}, args...)
			go func() { ended <- Main(ctx, args, []string{"NATS_URL=" + node.URL()}, io.Discard, log) }()
			ready := func(want int, says string) {
				t.Helper()
				bustest.Until(t, "readiness says "+says, func() bool {
					status, body := log.get(ctx, "/readyz")
					return status == want && strings.Contains(body, says)
				})
			}
			ready(http.StatusOK, "true")
			node.Reload(bustest.MaxPayload(tiny))
			ready(http.StatusServiceUnavailable, "max_payload")
			if !strings.Contains(log.String(), "Maximum Payload Violation") {
				t.Errorf("the log does not say why the connection was closed:\n%s", log)
			}
			node.Reload(bustest.MaxPayload(server.MAX_PAYLOAD_SIZE))
			ready(http.StatusOK, "true")
			stop()
			if status := <-ended; status != settings.StatusDone {
				t.Errorf("status: got %d, want %d", status, settings.StatusDone)
			}
		})
	}
}

// lines is what a daemon logs.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// get requests a path of --http, at the address in the log.
func (l *lines) get(ctx context.Context, path string) (status int, body string) {
	_, rest, _ := strings.Cut(l.String(), "msg=http_listens address=")
	address, _, _ := strings.Cut(rest, " ")
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return 0, ""
	}
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		return 0, ""
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text)
}
