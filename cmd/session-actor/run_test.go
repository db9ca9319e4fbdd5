package main

// The daemon against a server: it starts, runs sessions, and stops on a signal.

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/refold/refold/client"
	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
)

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

func TestRunsSessionsUntilStopped(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t, monitored)
	monitor := node.Raw().MonitorAddr().String()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	running, stop := context.WithCancel(ctx)
	defer stop()
	record := write(t, "install.json", `{"v":1,"rules":1,"tools":[],"config":{"provider":"p","model":"m"}}`)
	log, ended := &lines{}, make(chan int, 1)
	go func() {
		ended <- Main(running, []string{"--prefix", "app", "--install", record, "--monitor", monitor}, []string{"NATS_URL=" + node.URL(), "REFOLD_DURABILITY=always"}, io.Discard, log)
	}()
	bustest.Until(t, "the daemon runs", func() bool { return strings.Contains(log.String(), "session_actor_starts") })
	for _, want := range []string{"prefix=app", "install_published=true", "install=" + record, "log_level=info",
		"msg=durability is=always server=\"sync always\"", "log_copies=1 wanted=always"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("it logs %q, and not %s", log.String(), want)
		}
	}
	c, err := client.Connect(ctx, client.Options{URL: node.URL(), Prefix: "app"})
	bustest.OK(t, err)
	defer c.Close()
	if _, err := c.Run(ctx, "s1", "hi", client.RunOptions{}); err != nil {
		t.Fatal(err)
	}
	for n, err := range c.Notices(ctx, "s1", 0) {
		bustest.OK(t, err)
		if n.Type == "RunStarted" {
			break
		}
	}
	stop()
	select {
	case status := <-ended:
		if status != settings.StatusDone || !strings.Contains(log.String(), "session_actor_stopped") {
			t.Errorf("status %d, log:\n%s", status, log)
		}
	case <-ctx.Done():
		t.Errorf("it does not end:\n%s", log)
	}
}

// monitored gives a server a monitoring port.
func monitored(o *server.Options) { o.HTTPHost, o.HTTPPort = "127.0.0.1", server.RANDOM_PORT }

func TestStartErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t, monitored)
	monitor := node.Raw().MonitorAddr().String()
	plain := bustest.Configured(t, "") // without JetStream
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"no server":        {[]string{"--nats", "nats://127.0.0.1:1"}, []string{"no NATS server answers", "NATS_URL"}},
		"no JetStream":     {[]string{"--nats", plain.URL()}, []string{"JetStream is not enabled", "-js"}},
		"bad prefix":       {[]string{"--prefix", "No!"}, []string{"No!"}},
		"no record":        {[]string{"--install", "/none.json"}, []string{"--install", "/none.json"}},
		"bad record":       {[]string{"--install", write(t, "i.json", `{"v":1,"rules":1,"tools":[],"colour":1}`)}, []string{"--install", "colour"}},
		"a later record":   {[]string{"--install", write(t, "i.json", `{"v":1,"rules":9,"tools":[]}`)}, []string{"rules 9", "upgrade"}},
		"too many servers": {[]string{"--nats", node.URL(), "--replicas", "3"}, []string{"replicas"}},
		"other durability": {[]string{"--nats", node.URL(), "--monitor", monitor, "--durability", "interval"}, []string{"sync always", "--durability always"}},
		"a changed log":    {[]string{"--nats", changed(t)}, []string{"REFOLD_LOG has max_age 6h0m0s", "--accept-stream-settings REFOLD_LOG.max_age"}},
		"bad acceptance":   {[]string{"--nats", node.URL(), "--accept-stream-settings", "max_age"}, []string{"STREAM.SETTING"}},
		"no three copies":  {[]string{"--nats", node.URL(), "--durability", "replicated", "--log-level", "error"}, []string{"has 1", "--replicas 3"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			var stderr lines
			if status := Main(ctx, c.args, nil, io.Discard, &stderr); status != settings.StatusFailed {
				t.Errorf("status: got %d, want %d", status, settings.StatusFailed)
			}
			for _, want := range c.want {
				if !strings.Contains(stderr.String(), want) {
					t.Errorf("got %q, which does not tell of %s", stderr.String(), want)
				}
			}
		})
	}
}

// changed returns the address of a server whose log deletes events that are six hours
// old.
func changed(t *testing.T) (url string) {
	t.Helper()
	node := bustest.Server(t)
	testbus.Provisioned(t, node)
	_, js := testbus.JS(t, node)
	log, err := js.Stream(t.Context(), "REFOLD_LOG")
	bustest.OK(t, err)
	cfg := log.CachedInfo().Config
	cfg.MaxAge = 6 * time.Hour
	_, err = js.UpdateStream(t.Context(), cfg)
	bustest.OK(t, err)
	return node.URL()
}
