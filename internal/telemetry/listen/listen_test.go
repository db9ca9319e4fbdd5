package listen

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
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
	reasons = nil
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
