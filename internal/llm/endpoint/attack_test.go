package endpoint_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/refold/refold/internal/llm/endpoint"
)

// TestAttackEndlessEvent: a stream whose event never ends is read up to a
// limit. A library buffers an event until its end.
func TestAttackEndlessEvent(t *testing.T) {
	t.Parallel()
	const most = 64 << 20
	line := strings.Repeat("data: "+strings.Repeat("x", 1000)+"\n", 64)
	for _, c := range []struct {
		name, end string // end of each part of the stream
		wants     bool   // that the body can be read to its end
	}{{"one event", "", false}, {"many events", "\n", true}, {"many events with carriage returns", "\r\n", true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for sent := 0; sent < most+most/4; sent += len(line) {
					if _, err := io.WriteString(w, line+c.end); err != nil {
						return
					}
				}
			}))
			defer server.Close()
			e, err := endpoint.New(endpoint.Config{BaseURL: server.URL}, server.URL, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			response, err := e.Client().Get(server.URL) //nolint:noctx // it is short
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			n, err := io.Copy(io.Discard, response.Body)
			if (err == nil) != c.wants || err != nil && (n > most+1<<20 || !strings.Contains(err.Error(), "67108864 bytes")) {
				t.Errorf("read %d bytes: %v; want an error: %v", n, err, !c.wants)
			}
		})
	}
}
