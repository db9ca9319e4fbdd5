package mcp

// Attacks of a hostile server.

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestAttackRedirect: a server can't make a bridge send requests, with their body
// and secrets, to a port that only the bridge can reach. It may redirect to itself.
func TestAttackRedirect(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(other.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := httptest.NewServer(http.RedirectHandler(other.URL, status))
		t.Cleanup(server.Close)
		w := worldOf(t, "", Server{URL: server.URL, Headers: map[string]string{"Authorization": "Bearer ${TOKEN}", "X-Key": "${TOKEN}"}})
		w.open()
		_, err := w.servers.Import(t.Context())
		if err == nil || !strings.Contains(err.Error(), server.URL) || !strings.Contains(err.Error(), other.URL) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%d: got %v, want an error that names both origins, without a secret", status, err)
		}
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("another server got %d requests", n)
	}

	w := remoteWorld(t, nil, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/moved" {
				http.Redirect(w, r, "/moved", http.StatusTemporaryRedirect)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	w.imports()
	w.want(w.call(t.Context(), "add", `{"text": "a"}`, false), "succeeded", "", "a")
}

// laughs is a YAML file that stands for a billion values.
func laughs(text string) string {
	text += "a0: &a0 [" + strings.Repeat("lol, ", 10) + "]\n"
	for n := 1; n < 9; n++ {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", n, n, strings.Repeat(fmt.Sprintf("*a%d, ", n-1), 10))
	}
	return text
}

// TestAttackEndlessAnswer: an endless answer, well-formed or not, is cut off at
// a limit.
func TestAttackEndlessAnswer(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusOK, http.StatusBadRequest} {
		for _, media := range []string{"application/json", "text/plain"} {
			var wrote atomic.Int64
			part := []byte(strings.Repeat(" ", 64<<10))
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", media)
				w.WriteHeader(status)
				for wrote.Load() < 3*messageBytesMax {
					n, err := w.Write(part)
					if wrote.Add(int64(n)); err != nil {
						return
					}
				}
			}))
			w := worldOf(t, "", Server{URL: server.URL})
			w.open()
			if _, err := w.servers.Import(t.Context()); err == nil {
				t.Errorf("%d %s: imported", status, media)
			}
			server.Close()
			if n := wrote.Load(); n >= 3*messageBytesMax {
				t.Errorf("%d %s: %d bytes were read, want %d at most", status, media, n, messageBytesMax)
			}
		}
	}
}

// headersMax is what an attacker may have written when its answers are given up:
// the limit, and what each connection buffers, which depends on the system.
const headersMax = 8 << 20

// TestAttackHeaders: a server's headers do not end.
func TestAttackHeaders(t *testing.T) {
	t.Parallel()
	address, wrote := endlessHeaders(t)
	header := new(atomic.Pointer[map[string]string])
	header.Store(&map[string]string{})
	transport, closes, err := remote(&Server{URL: address}, header)
	must(t, err)
	defer closes()
	response, err := transport.(*sdk.StreamableClientTransport).HTTPClient.Get(address) //nolint:forcetypeassert,noctx // it always is one, and it is short
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
