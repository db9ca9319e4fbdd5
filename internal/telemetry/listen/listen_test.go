package listen

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestReadyReportsReasons(t *testing.T) {
	t.Parallel()
	s, err := New(Options{Address: "127.0.0.1:0", Metrics: http.NotFoundHandler()})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	want := func(status int, body string) {
		t.Helper()
		answer, err := client.Get("http://" + s.Address() + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		got, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != status || string(got) != body+"\n" {
			t.Errorf("got %d %q, %v; want %d %q", answer.StatusCode, got, err, status, body)
		}
	}
	want(503, `{"ready":false,"reasons":["it starts"]}`)
	var reasons []string
	s.Reads(func(context.Context) []string { return reasons })
	want(200, `{"ready":true}`)
	reasons = []string{"NATS is not connected"}
	want(503, `{"ready":false,"reasons":["NATS is not connected"]}`)
	s.Broken("the connection was closed")
	want(503, `{"ready":false,"reasons":["the connection was closed"]}`)
	s.Broken("")
	reasons = nil
	want(200, `{"ready":true}`)
	s.Drain()
	want(503, `{"ready":false,"reasons":["it was told to end"]}`)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestPprofIsForLoopbackAddresses(t *testing.T) {
	t.Parallel()
	for address, fine := range map[string]bool{
		"127.0.0.1:1": true, "[::1]:1": true, "localhost:1": true, "0.0.0.0:1": false, ":1": false, "10.0.0.1:1": false, "host.example:1": false,
	} {
		if err := (Options{Address: address, Pprof: true}).Validate(); (err == nil) != fine {
			t.Errorf("%s: got %v, want fine: %v", address, err, fine)
		}
		if err := (Options{Address: address}).Validate(); err != nil {
			t.Errorf("%s without pprof: %v", address, err)
		}
	}
}

// TestAttackHalfOpenRequests: 1,500 connections send half a request each and then
// nothing. The daemon still answers others at once, and closes those.
func TestAttackHalfOpenRequests(t *testing.T) {
	t.Parallel()
	s, err := New(Options{Address: "127.0.0.1:0", Metrics: http.NotFoundHandler()})
	if err != nil {
		t.Fatal(err)
	}
	const connections = 1500
	var open []net.Conn
	for i := range connections {
		c, err := net.Dial("tcp", s.Address())
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		defer c.Close()
		open = append(open, c)
		if _, err := io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: headersWithin}
	answer, err := client.Get("http://" + s.Address() + "/healthz")
	if err != nil {
		t.Fatalf("beside %d half requests: %v", connections, err)
	}
	answer.Body.Close()
	for i, c := range open {
		if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("connection %d is not closed after a minute", i)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestAttackHost: a web page whose name resolves to this machine reads what a
// browser here may read, and the browser sends that page's name.
func TestAttackHost(t *testing.T) {
	t.Parallel()
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("secret_metric 1\n")) })
	s, err := New(Options{Address: "127.0.0.1:0", Metrics: metrics, Pprof: true, Hosts: []string{"Bridge-1", "refold.example.com"}})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for host, status := range map[string]int{
		s.Address(): 200, "127.0.0.1": 200, "[::1]:9464": 200, "[::1]": 200, "10.0.0.1:80": 200, "localhost:1": 200, "LOCALHOST": 200, "localhost.:1": 200,
		"bridge-1:9464": 200, "bridge-1": 200, "Refold.Example.com.": 200,
		"evil.example": 421, "evil.example:9464": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example": 421, "bridge-2": 421, "bridge-1.evil": 421,
		"0x7f.1": 421, "example.com": 421, ".": 421, "[::1].evil": 421, "127.0.0.1:9464:evil": 421,
	} {
		for _, path := range []string{"/metrics", "/healthz", "/readyz", "/debug/pprof/cmdline", "/none"} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Address()+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Host = host
			answer, err := client.Do(request)
			if err != nil {
				t.Fatalf("%s of %q: %v", path, host, err)
			}
			text, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			refused := answer.StatusCode == http.StatusMisdirectedRequest
			if err != nil || refused != (status == 421) || refused && (!strings.Contains(string(text), "--http-host") || strings.Contains(string(text), "secret")) {
				t.Errorf("%s of %q: got %d %q, %v; want refused %v, with the flag to use", path, host, answer.StatusCode, text, err, status == 421)
			}
		}
	}
	// HTTP/1.0 needs no Host.
	conn, err := net.Dial("tcp", s.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /metrics HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(text), "HTTP/1.0 421 ") {
		t.Errorf("without a host: got %q, %v; want 421", text, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestHostsAreNames(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"", "a:1", "http://a", "a/b", "a b", "*"} {
		if err := (Options{Address: "127.0.0.1:1", Hosts: []string{host}}).Validate(); err == nil || !strings.Contains(err.Error(), "--http-host") {
			t.Errorf("%q: got %v, want it refused", host, err)
		}
	}
}
