package devserver_test

// The client library closes a connection for good if the server reports a violation,
// such as a message over a limit that was lowered. Session-actor and bridge connect
// again, as the daemons do.

import (
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/devserver"
	"github.com/refold/refold/internal/llm/scripted"
)

func TestClosedConnectionsAreOpenedAgain(t *testing.T) {
	t.Parallel()
	dir, ctx := t.TempDir(), t.Context()
	bridges := make(chan *bridge.Bridge, 10)
	s, err := devserver.Start(ctx, devserver.Options{Dir: dir, Install: []byte(record), Serve: func(b *bridge.Bridge) error {
		bridges <- b
		return b.Model("scripted", scripted.NewModel(scripted.Echo()))
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	at, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(at.Port())
	if err != nil {
		t.Fatal(err)
	}
	limit := func(bytes int32) {
		t.Helper()
		err := s.InProcess().ReloadOptions(&server.Options{
			ServerName: "refold-dev", Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: filepath.Join(dir, "nats"),
			SyncAlways: true, NoSigs: true, NoLog: true, MaxPayload: bytes,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	answer := func(text string) {
		t.Helper()
		c, err := client.Connect(ctx, client.Options{URL: s.URL()})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if got := run(ctx, t, c, text); !strings.Contains(got, text) {
			t.Errorf("answer: got %q", got)
		}
	}
	answer("one") // the bridge executes effects
	first := <-bridges
	limit(16) // less than a heartbeat takes
	bustest.Until(t, "both connections are closed", func() bool {
		all := len(s.NotReady(ctx)) // the session-actor's reasons, then the bridge's
		bridges := first.NotReady(ctx)
		return strings.Contains(strings.Join(bridges, " "), "closed for good") && all > len(bridges)
	})
	limit(server.MAX_PAYLOAD_SIZE)
	select {
	case <-bridges: // the next one
	case <-time.After(time.Minute):
		t.Fatal("no bridge connects again")
	}
	bustest.Until(t, "all are ready", func() bool { return len(s.NotReady(ctx)) == 0 })
	answer("two")
	select {
	case err := <-s.Failed():
		t.Errorf("a part ended: %v", err)
	default:
	}
}
