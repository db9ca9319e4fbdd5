package endpoint_test

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/refold/refold/internal/llm/endpoint"
)

// TestAttackEndlessEvent: a stream whose event never ends is read up to a
// limit. A library buffers an event until its end.
func TestAttackEndlessEvent(t *testing.T) {
	t.Parallel()
	const most = 64 << 20
	line := strings.Repeat("data: {"+strings.Repeat("x", 1000)+"\n", 64)
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
			e, err := endpoint.New(endpoint.Config{BaseURL: server.URL}, slog.New(slog.DiscardHandler))
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

// headersMax is what an attacker may have written when its answer is given up: the
// limit, and what the connection buffers, which depends on the system.
const headersMax = 8 << 20

// TestAttackHeaders: a server's headers do not end.
func TestAttackHeaders(t *testing.T) {
	t.Parallel()
	address, wrote := endlessHeaders(t)
	e, err := endpoint.New(endpoint.Config{BaseURL: address}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	response, err := e.Client().Get(address) //nolint:noctx // it is short
	if err == nil {
		response.Body.Close()
	}
	if n := wrote.Load(); err == nil || n > headersMax {
		t.Errorf("got %v after %d bytes of headers, want an error before", err, n)
	}
}

// endlessHeaders is a server whose answers have headers without end. It counts what
// it could write.
func endlessHeaders(t *testing.T) (address string, wrote *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	t.Cleanup(func() {
		listener.Close()
		open.Wait()
	})
	wrote = new(atomic.Int64)
	line := []byte("X-Header: " + strings.Repeat("x", 4<<10) + "\r\n")
	open.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			open.Go(func() {
				defer conn.Close()
				if _, err := conn.Read(make([]byte, 1)); err != nil {
					return
				}
				_, err := conn.Write([]byte("HTTP/1.1 200 OK\r\n"))
				for err == nil && wrote.Load() < 64<<20 {
					var n int
					n, err = conn.Write(line)
					wrote.Add(int64(n))
				}
			})
		}
	})
	return "http://" + listener.Addr().String(), wrote
}
