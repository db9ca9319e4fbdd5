package main

// The daemon over HTTP: health during its start, an outage of NATS, and its
// end; metrics of a run; and logs as JSON.

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/client"
	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/bus/bustest"
)

// running is a daemon that answers over HTTP.
type running struct {
	t     *testing.T
	log   *lines
	url   string
	stop  context.CancelFunc
	ended chan int
}

// runs starts a daemon, and returns when it listens.
func runs(t *testing.T, args []string, environ ...string) *running {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r := &running{t: t, log: &lines{}, stop: stop, ended: make(chan int, 1)}
	t.Cleanup(func() {
		stop()
		http.DefaultClient.CloseIdleConnections()
	})
	go func() {
		r.ended <- Main(ctx, append([]string{"--http", "127.0.0.1:0", "--log-format", "json"}, args...), environ, io.Discard, r.log)
	}()
	bustest.Until(t, "the daemon listens", func() bool {
		for line := range strings.Lines(r.log.String()) {
			var said struct{ Msg, Address string }
			if json.Unmarshal([]byte(line), &said) == nil && said.Msg == "http_listens" {
				r.url = "http://" + said.Address
			}
		}
		return r.url != ""
	})
	return r
}

// get returns the status and the body of a path; 0 if nothing answers.
func (r *running) get(path string) (status int, body string) {
	r.t.Helper()
	return r.getAs("", path)
}

// getAs does the same with another Host header, unless host is empty.
func (r *running) getAs(host, path string) (status int, body string) {
	r.t.Helper()
	request, err := http.NewRequestWithContext(context.WithoutCancel(r.t.Context()), http.MethodGet, r.url+path, nil)
	bustest.OK(r.t, err)
	request.Host = host
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(text)
}

// ready waits until /readyz answers so, with a reason.
func (r *running) ready(status int, reason string) {
	r.t.Helper()
	bustest.Until(r.t, "/readyz tells "+reason, func() bool {
		got, body := r.get("/readyz")
		var is struct {
			Ready   bool
			Reasons []string
		}
		if json.Unmarshal([]byte(body), &is) != nil {
			return false
		}
		return got == status && is.Ready == (status == http.StatusOK) && (reason == "" || slices.Contains(is.Reasons, reason))
	})
}

func TestReadinessThroughStartOutageAndDrain(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	r := runs(t, []string{"--http-host", "actor-1,actor-2"}, "NATS_URL="+node.URL())
	r.ready(http.StatusOK, "")
	for host, want := range map[string]int{"actor-1:9464": http.StatusOK, "actor-2": http.StatusOK, "evil.example": http.StatusMisdirectedRequest} {
		if status, body := r.getAs(host, "/metrics"); status != want {
			t.Errorf("/metrics of %s: got %d %q, want %d", host, status, body, want)
		}
	}
	if status, body := r.get("/healthz"); status != http.StatusOK || body != "ok\n" {
		t.Errorf("/healthz: got %d %q", status, body)
	}
	if status, _ := r.get("/debug/pprof/"); status != http.StatusNotFound {
		t.Errorf("/debug/pprof/ without --pprof: got %d, want 404", status)
	}
	node.Stop()
	r.ready(http.StatusServiceUnavailable, "NATS is not connected")
	if status, _ := r.get("/healthz"); status != http.StatusOK {
		t.Errorf("/healthz while NATS is away: got %d, want 200", status)
	}
	node.Start()
	r.ready(http.StatusOK, "")
	r.stop()
	for {
		status, body := r.get("/readyz")
		if status == 0 {
			break // the listener ends last
		}
		if status != http.StatusServiceUnavailable || !strings.Contains(body, "it was told to end") {
			t.Fatalf("/readyz while it drains: got %d %q, want 503", status, body)
		}
	}
	if status := <-r.ended; status != settings.StatusDone {
		t.Errorf("status %d, log:\n%s", status, r.log)
	}
}

func TestMetricsOfARun(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	r := runs(t, []string{"--pprof"}, "NATS_URL="+node.URL())
	r.ready(http.StatusOK, "")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := client.Connect(ctx, client.Options{URL: node.URL()})
	bustest.OK(t, err)
	defer c.Close()
	if _, err := c.Run(ctx, "s1", "hi", client.RunOptions{Config: json.RawMessage(`{"provider":"nobody","model":"m"}`)}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`refold_events_total{door="in",`, `refold_effects_asked_total{class="llm",`, `refold_notices_total{`, `refold_lane_owned{lane="0"`,
		`refold_log_bytes{`, `refold_durability{is=`, `refold_sessions_loads_total{from="new"`, `refold_event_latency_seconds_count{`, `refold_build{`,
	} {
		bustest.Until(t, "/metrics has "+want, func() bool {
			_, body := r.get("/metrics")
			return strings.Contains(body, strings.TrimSuffix(want, "{"))
		})
	}
	if status, _ := r.get("/debug/pprof/cmdline"); status != http.StatusOK {
		t.Errorf("/debug/pprof/ under --pprof: got %d, want 200", status)
	}
	for line := range strings.Lines(r.log.String()) {
		var said struct{ Time, Level, Msg string }
		if err := json.Unmarshal([]byte(line), &said); err != nil || said.Time == "" || said.Level == "" || said.Msg == "" {
			t.Errorf("a log line is no JSON: %q (%v)", line, err)
		}
	}
	r.stop()
	<-r.ended
}

func TestHTTPFlagsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want string }{
		{"--pprof", "--http"},
		{"--http-host actor", "--http"},
		{"--http 127.0.0.1:0 --http-host actor:9464", "--http-host"},
		{"--http 9464", "HOST:PORT"},
		{"--http 0.0.0.0:9464 --pprof", "loopback"},
		{"--http :9464 --pprof", "loopback"},
		{"--log-format xml", "text"},
	} {
		log := &lines{}
		if status := Main(t.Context(), strings.Fields(c.args), nil, io.Discard, log); status != settings.StatusUsage || !strings.Contains(log.String(), c.want) {
			t.Errorf("%s: status %d, %q, which does not tell of %s", c.args, status, log, c.want)
		}
	}
	log := &lines{}
	status := Main(t.Context(), nil, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4317", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}, io.Discard, log)
	if status != settings.StatusFailed || !strings.Contains(log.String(), "http/protobuf") {
		t.Errorf("grpc: status %d, %q", status, log)
	}
}
