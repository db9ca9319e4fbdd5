package testbus

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/streams"
	"github.com/refold/refold/subjects"
)

// Time bounds every test that talks to a server.
const Time = 5 * time.Minute

// Context returns a context that ends with the test, or after Time.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Time)
	t.Cleanup(cancel)
	return ctx
}

// Names returns the names under a prefix.
func Names(t testing.TB, prefix string) subjects.Names {
	t.Helper()
	n, err := subjects.New(prefix)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Conf returns streams.conf under a prefix; edits are pairs of a text and its
// replacement.
func Conf(t testing.TB, prefix string, edits ...string) *streams.Conf {
	t.Helper()
	text := strings.NewReplacer(edits...).Replace(string(streams.File))
	conf, err := streams.ParseConf([]byte(text), Names(t, prefix))
	if err != nil {
		t.Fatal(err)
	}
	return conf
}

// Connect returns a connection to a server under a prefix. It ends with the test.
func Connect(t testing.TB, node *bustest.Node, prefix string) *bus.Bus {
	t.Helper()
	return ConnectWith(t, natsio.Options{URL: node.URL(), Prefix: prefix})
}

// ConnectWith is Connect with any options.
func ConnectWith(t testing.TB, o natsio.Options) *bus.Bus {
	t.Helper()
	b, err := bus.Connect(Context(t), o)
	bustest.OK(t, err)
	t.Cleanup(b.Close)
	return b
}

// Provisioned is Connect to a server that gets the streams, as edited, unless it has
// them.
func Provisioned(t testing.TB, node *bustest.Node, edits ...string) *bus.Bus {
	t.Helper()
	b := Connect(t, node, "")
	bustest.OK(t, b.Provision(Context(t), Conf(t, "", edits...), 0))
	return b
}

// JS returns a plain client, with which a test inspects the server independently of
// the bus. It reconnects as often as it takes.
func JS(t testing.TB, node *bustest.Node) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	nc, err := nats.Connect(node.URL(), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return nc, js
}

// LeaderReads returns a function that counts what was requested so far of the log's
// leader. event reads an event over the connection whose requests are counted.
func LeaderReads(ctx context.Context, t testing.TB, node *bustest.Node, event func(ctx context.Context, seq uint64) error) func() int {
	t.Helper()
	nc, _ := JS(t, node)
	asked, err := nc.SubscribeSync("$JS.API.STREAM.MSG.GET.REFOLD_LOG")
	bustest.OK(t, err)
	bustest.OK(t, nc.Flush())
	const missing uint64 = 1 << 40
	n := 0
	return func() int {
		// The server delivers what was requested on the connection before this.
		if event(ctx, missing) == nil {
			t.Fatalf("the log has an event %d", missing)
		}
		for ; ; n++ {
			m, err := asked.NextMsgWithContext(ctx)
			bustest.OK(t, err)
			if string(m.Data) == fmt.Sprintf(`{"seq":%d}`, missing) {
				return n
			}
		}
	}
}

// Within receives from ch, and fails the test after half of Time.
func Within[T any](t *testing.T, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(Time / 2):
		t.Fatal("nothing received")
		panic("unreachable")
	}
}

// PublishRaw stores an event with a raw header block, which client libraries would
// not send.
func PublishRaw(t *testing.T, node *bustest.Node, subject, header, payload string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(node.URL(), "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(Time)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "CONNECT {\"verbose\":false,\"headers\":true}\r\nSUB answer 1\r\n")
	fmt.Fprintf(conn, "HPUB %s answer %d %d\r\n%s%s\r\n", subject, len(header), len(header)+len(payload), header, payload)
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		if text := lines.Text(); strings.HasPrefix(text, "-ERR") || strings.Contains(text, `"error"`) {
			t.Fatal(text)
		} else if strings.Contains(text, `"stream":"REFOLD_LOG"`) {
			return
		}
	}
	t.Fatalf("no acknowledgement: %v", lines.Err())
}

// OneLine fails the test if an error is not a single line.
func OneLine(t *testing.T, err error) {
	t.Helper()
	if text := err.Error(); strings.ContainsAny(text, "\n\r") || text == "" {
		t.Errorf("the error is one line: got %q", text)
	}
}

// WriteFile writes a file for one test.
func WriteFile(t *testing.T, name, content string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Reconfigure changes a stream's configuration by hand.
func Reconfigure(t *testing.T, js jetstream.JetStream, stream string, change func(*jetstream.StreamConfig)) {
	t.Helper()
	ctx := Context(t)
	s, err := js.Stream(ctx, stream)
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.CachedInfo().Config
	change(&cfg)
	if _, err := js.UpdateStream(ctx, cfg); err != nil {
		t.Fatal(err)
	}
}
