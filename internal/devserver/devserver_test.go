package devserver_test

// A whole system in one process: it answers, resumes after a restart, and leaves
// nothing behind.

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/devserver"
	"github.com/refold/refold/internal/llm/scripted"
	"github.com/refold/refold/internal/natsio"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(lockedDirVar); dir != "" {
		serveForTest(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

const record = `{"v":1,"rules":1,"tools":[],"config":{"provider":"scripted","model":"echo"}}`

// start starts a server in dir, and a client of it. stop ends both.
func start(t *testing.T, dir string) (ctx context.Context, c *client.Client, stop func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	server, err := devserver.Start(ctx, devserver.Options{
		Dir: dir, Install: []byte(record),
		Serve: func(b *bridge.Bridge) error { return b.Model("scripted", scripted.NewModel(scripted.Echo())) },
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err = client.Connect(ctx, client.Options{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	stop = func() {
		c.Close()
		server.Stop()
		server.Stop() // twice is fine
		select {
		case err := <-server.Failed():
			t.Errorf("ended by itself: %v", err)
		default:
		}
	}
	t.Cleanup(stop)
	return ctx, c, stop
}

// run requests a run and waits for its answer.
func run(ctx context.Context, t *testing.T, c *client.Client, text string) string {
	t.Helper()
	from, err := c.LastNotice(ctx)
	if err != nil {
		t.Fatal(err)
	}
	seq, err := c.Run(ctx, "s1", text, client.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	end, err := c.End(ctx, "s1", seq, from+1, nil)
	if err != nil || end.Output == nil {
		t.Fatalf("end: %+v (%v)", end, err)
	}
	return end.Output.Text
}

func TestRestartResumesSessions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, c, stop := start(t, dir)
	// Views are answered as soon as Start has returned.
	if _, err := c.View(ctx, "s1"); err == nil || !strings.Contains(err.Error(), "no event") {
		t.Errorf("view of nothing: got %v", err)
	}
	if got := run(ctx, t, c, "one"); !strings.Contains(got, "one") {
		t.Errorf("answer: got %q", got)
	}
	before, err := c.View(ctx, "s1")
	if err != nil {
		t.Fatal(err)
	}
	stop()

	ctx, c, _ = start(t, dir)
	after, err := c.View(ctx, "s1")
	if err != nil || after.Hash != before.Hash || after.Lifecycle != session.Completed {
		t.Errorf("after a restart: got %s %s (%v), want %s", after.Lifecycle, after.Hash, err, before.Hash)
	}
	if got := run(ctx, t, c, "two"); !strings.Contains(got, "two") {
		t.Errorf("answer: got %q", got)
	}
	if r, err := c.Replay(ctx, "s1", 0, nil); err != nil || !r.Identical() || r.Events != 4 {
		t.Errorf("replay: got %+v (%v), want 4 events, identical", r, err)
	}
}

func TestFailedStartLeavesNothing(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	cause := errors.New("no model")
	for name, c := range map[string]struct {
		o    devserver.Options
		want string
	}{
		"port":   {devserver.Options{Port: taken.Addr().(*net.TCPAddr).Port, Install: []byte(record)}, "--port"},
		"record": {devserver.Options{Install: []byte(`{"v":1,"rules":1,"tools":[],"colour":1}`)}, "colour"},
		"prefix": {devserver.Options{Prefix: "No!", Install: []byte(record)}, "No!"},
		"serve":  {devserver.Options{Install: []byte(record), Serve: func(*bridge.Bridge) error { return cause }}, cause.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.o.Dir = t.TempDir()
			if _, err := devserver.Start(t.Context(), c.o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("start: got %v, want an error with %q", err, c.want)
			}
		})
	}
}

// DurabilityInterval is the exception; the server reports which it does.
func TestServerSyncsBeforeItAcknowledges(t *testing.T) {
	t.Parallel()
	for wanted, want := range map[natsio.Durability]string{
		natsio.DurabilityUnknown: "is=always", natsio.DurabilityAlways: "is=always", natsio.DurabilityInterval: "is=interval",
	} {
		t.Run(wanted.String(), func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			server, err := devserver.Start(t.Context(), devserver.Options{
				Dir: t.TempDir(), Install: []byte(record), Durability: wanted, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			})
			if err != nil {
				t.Fatal(err)
			}
			server.Stop()
			if got, always := server.InProcess().JetStreamConfig(), want == "is=always"; got != nil && got.SyncAlways != always {
				t.Errorf("sync always: got %t, want %t", got.SyncAlways, always)
			}
			if !strings.Contains(log.String(), "msg=durability "+want) {
				t.Errorf("got %q, which does not tell of %s", log.String(), want)
			}
		})
	}
}
