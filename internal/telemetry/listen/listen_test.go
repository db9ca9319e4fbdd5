package listen

import (
	"context"
	"io"
	"net/http"
	"testing"

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
