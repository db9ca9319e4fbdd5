package natsio_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
)

func TestConnectErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	bustest.OK(t, err)
	noServer := "nats://" + closed.Addr().String()
	closed.Close()
	noJetStream := bustest.Configured(t, `port: -1`)
	noAccount := bustest.Configured(t, `
		jetstream { store_dir: "DIR" }
		accounts { A { users: [ { user: a, password: a } ] } }
		no_auth_user: a`)
	locked := bustest.Configured(t, `
		jetstream { store_dir: "DIR" }
		authorization { user: u, password: secret }`)
	narrow := bustest.Configured(t, `
		jetstream { store_dir: "DIR" }
		authorization { users: [ { user: u, password: p, permissions { publish: [ "refold.in.*" ], subscribe: [ "_INBOX.>" ] } } ] }`)
	deaf := bustest.Configured(t, `
		jetstream { store_dir: "DIR" }
		authorization { users: [ { user: u, password: p, permissions { publish: [ ">" ], subscribe: [ "refold.>" ] } } ] }`)
	small := bustest.Configured(t, `
		jetstream { store_dir: "DIR" }
		max_payload: 64KB`)
	withUser := func(node *bustest.Node, user string) string {
		return strings.Replace(node.URL(), "nats://", "nats://"+user+"@", 1)
	}
	for _, tc := range []struct {
		name string
		o    natsio.Options
		want error
		says string
	}{
		{"no server", natsio.Options{URL: noServer}, natsio.ErrNoServer, noServer},
		{"no such host", natsio.Options{URL: "nats://host.invalid:4222"}, natsio.ErrNoServer, "host.invalid"},
		{"too old", natsio.Options{URL: bustest.OldServer(t, "2.13.4")}, nil, "2.13.4"},
		{"much too old", natsio.Options{URL: bustest.OldServer(t, "1.4.1")}, nil, "1.4.1"},
		{"no JetStream", natsio.Options{URL: noJetStream.URL()}, natsio.ErrNoJetStream, "-js"},
		{"no JetStream in process", natsio.Options{InProcess: noJetStream}, natsio.ErrNoJetStream, "-js"},
		{"no JetStream for the account", natsio.Options{URL: noAccount.URL()}, natsio.ErrNoJetStream, "account"},
		{"no credentials", natsio.Options{URL: locked.URL()}, natsio.ErrUnauthorized, "--creds"},
		{"wrong credentials", natsio.Options{URL: withUser(locked, "u:wrong")}, natsio.ErrUnauthorized, "NATS_CONTEXT"},
		{"may not ask JetStream", natsio.Options{URL: withUser(narrow, "u:p")}, nil, "$JS.API.INFO"},
		{"may not hear answers", natsio.Options{URL: withUser(deaf, "u:p")}, nil, "subscribe"},
		{"small payloads", natsio.Options{URL: small.URL()}, nil, "max_payload"},
		{"no such context", natsio.Options{Context: "there-is-none"}, os.ErrNotExist, "there-is-none"},
		{"no such credentials file", natsio.Options{URL: noServer, Creds: "/none.creds"}, os.ErrNotExist, "/none.creds"},
		{"bad prefix", natsio.Options{Prefix: "A.B"}, nil, "prefix"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b, err := bus.Connect(testbus.Context(t), tc.o)
			if err == nil {
				b.Close()
				t.Fatal("got no error")
			}
			testbus.OneLine(t, err)
			if tc.want != nil && !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			if !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want it to say %s", err, tc.says)
			}
			if strings.Contains(err.Error(), "wrong@") || strings.Contains(err.Error(), ":p@") {
				t.Errorf("the error tells a password: %v", err)
			}
		})
	}
	var old *natsio.VersionError
	if _, err := bus.Connect(testbus.Context(t), natsio.Options{URL: bustest.OldServer(t, "2.13.4")}); !errors.As(err, &old) || old.Server != "2.13.4" {
		t.Errorf("got %v, want a VersionError", err)
	}
	var denied *natsio.PermissionError
	if _, err := bus.Connect(testbus.Context(t), natsio.Options{URL: withUser(narrow, "u:p")}); !errors.As(err, &denied) || denied.Op != "publish" {
		t.Errorf("got %v, want a PermissionError", err)
	}
}

func TestPasswordIsNotInErrors(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"nats://u:secret@127.0.0.1:1", "u:secret@127.0.0.1:1", "nats://u:se cret@127.0.0.1:1", "nats://u:secret%zz@127.0.0.1:1", "nats://u:secret/x@127.0.0.1:1", "nats://u:secret#x@127.0.0.1:1", "127.0.0.1:1, u:secret@127.0.0.1:1",
	} {
		_, err := natsio.Connect(t.Context(), natsio.Options{URL: url})
		if err == nil || strings.Contains(err.Error(), "cret") || !strings.Contains(err.Error(), "127.0.0.1:1") {
			t.Errorf("%s: got %v, want an error that names the server without its password", url, err)
		}
	}
}

func TestConnectWithContext(t *testing.T) {
	t.Parallel()
	node := bustest.Configured(t, `
		jetstream { store_dir: "DIR" }
		authorization { user: u, password: "s:e@cret" }`)
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "c.json")
		bustest.OK(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	path := write(fmt.Sprintf(`{"description":"test","url":%q,"user":"u","password":"s:e@cret","inbox_prefix":"_INBOX_mine"}`, node.URL()))
	b, err := bus.Connect(testbus.Context(t), natsio.Options{Context: path})
	bustest.OK(t, err)
	defer b.Close()
	if got, want := b.URL(), node.URL(); got != want {
		t.Errorf("url: got %s, want %s", got, want)
	}
	if b.ServerVersion() == "" {
		t.Error("the server's version is empty")
	}
	if err := b.Provision(testbus.Context(t), testbus.Conf(t, ""), 0); err != nil {
		t.Errorf("with an inbox prefix: %v", err)
	}
	// What the options say wins over the context.
	if _, err := bus.Connect(testbus.Context(t), natsio.Options{Context: path, URL: "nats://127.0.0.1:1"}); !errors.Is(err, natsio.ErrNoServer) {
		t.Errorf("got %v, want ErrNoServer", err)
	}
	for _, bad := range []string{"{", `{"url":1}`, `{"nsc":"nsc://o/a/u"}`, fmt.Sprintf(`{"url":%q,"nkey":"/none.nk"}`, node.URL())} {
		if _, err := bus.Connect(testbus.Context(t), natsio.Options{Context: write(bad)}); err == nil {
			t.Errorf("context %s: got no error", bad)
		}
	}
}

// A name, as in NATS_CONTEXT, is looked up where the nats tool stores contexts.
func TestContextIsFoundByName(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	node := bustest.Server(t)
	path := filepath.Join(dir, "nats", "context", "here.json")
	bustest.OK(t, os.MkdirAll(filepath.Dir(path), 0o700))
	bustest.OK(t, os.WriteFile(path, fmt.Appendf(nil, `{"url":%q}`, node.URL()), 0o600))
	b, err := bus.Connect(testbus.Context(t), natsio.Options{Context: "here"})
	bustest.OK(t, err)
	b.Close()
}

// A denied publish fails at once, and not by a timeout.
func TestDeniedPublishFailsAtOnce(t *testing.T) {
	t.Parallel()
	node := bustest.Configured(t, `
		jetstream { store_dir: "DIR" }
		authorization { users: [
			{ user: op, password: p },
			{ user: u, password: p, permissions {
				publish: [ "$JS.API.INFO", "$JS.API.CONSUMER.INFO.REFOLD_FX.*", "refold.in.*" ], subscribe: [ "_INBOX.>", "refold.out.*" ] } }
		] }`)
	as := func(user string) *bus.Bus {
		b, err := bus.Connect(testbus.Context(t), natsio.Options{URL: strings.Replace(node.URL(), "nats://", "nats://"+user+":p@", 1)})
		bustest.OK(t, err)
		t.Cleanup(b.Close)
		return b
	}
	ctx := testbus.Context(t)
	bustest.OK(t, as("op").Provision(ctx, testbus.Conf(t, ""), 0))
	b := as("u")
	if _, err := b.Publish(ctx, session.DoorIn, "s1", []byte("{}"), ""); err != nil {
		t.Errorf("through the door that is open: %v", err)
	}
	started := time.Now()
	for what, f := range map[string]func() error{
		"refold.ctl.s1": func() error { _, err := b.Publish(ctx, session.DoorCtl, "s1", []byte("{}"), ""); return err },
		"refold.fx.tool.host.s1.r1t1": func() error {
			return errors.Join(b.Store(ctx, []journal.Output{{Session: "s1", Effect: &session.Effect{Class: session.ClassTool, Target: "host", Name: "r1t1", Payload: []byte("x")}}})...)
		},
		"$JS.API.STREAM.INFO.REFOLD_LOG":       func() error { _, err := b.LastSeq(ctx); return err },
		"$JS.API.STREAM.MSG.GET.REFOLD_LOG":    func() error { _, _, err := b.LastOf(ctx, session.DoorIn, "s1"); return err },
		"refold.view.s1":                       func() error { _, err := b.RequestView(ctx, "s1"); return err },
		"$JS.API.DIRECT.GET.KV_REFOLD_SNAPSHO": func() error { _, _, err := b.GetSnapshot(ctx, "s1"); return err },
	} {
		var denied *natsio.PermissionError
		if err := f(); !errors.As(err, &denied) || !strings.HasPrefix(denied.Subject, what) {
			t.Errorf("%s: got %v, want a PermissionError", what, err)
		} else {
			testbus.OneLine(t, err)
		}
	}
	if _, err := b.EnsureBridge(ctx, testbus.Conf(t, ""), session.ClassTool, "host"); err == nil || !strings.Contains(err.Error(), "start a session-actor with --consumer tool/host first") {
		t.Errorf("a consumer that is missing: got %v, want to be told who creates it", err)
	}
	if err := b.SubscribeLive(ctx, "s1", func(string, []byte) {}); err == nil {
		t.Error("listening where it may not: got no error")
	}
	if took := time.Since(started); took > 10*time.Second {
		t.Errorf("denials took %v: they look like timeouts", took)
	}
}

// The JetStream domain of the context or of the options applies to every request, including raw ones.
func TestDomainAppliesToEveryRequest(t *testing.T) {
	t.Parallel()
	node := bustest.Configured(t, `jetstream { store_dir: "DIR", domain: edge }`)
	for field, value := range map[string]string{"jetstream_domain": "edge", "jetstream_api_prefix": "$JS.edge.API", "description": "no domain"} {
		other := "elsewhere" // the context's wins
		if field == "description" {
			other = "edge"
		}
		path := filepath.Join(t.TempDir(), "c.json")
		bustest.OK(t, os.WriteFile(path, fmt.Appendf(nil, `{"url":%q,%q:%q}`, node.URL(), field, value), 0o600))
		ctx := testbus.Context(t)
		b, err := bus.Connect(ctx, natsio.Options{Context: path, Domain: other})
		bustest.OK(t, err)
		if want := "$JS.edge.API."; b.API != want {
			t.Errorf("%s: requests go to %s, want %s", field, b.API, want)
		}
		t.Cleanup(b.Close)
		bustest.OK(t, b.Provision(ctx, testbus.Conf(t, ""), 0))
		seq, err := b.Publish(ctx, session.DoorIn, "s1", []byte(field), "")
		bustest.OK(t, err)
		if e, err := b.EventAt(ctx, seq); err != nil || string(e.Payload) != field {
			t.Errorf("%s: got %+v %v", field, e, err)
		}
		if e, _, err := b.LastOf(ctx, session.DoorIn, "s1"); err != nil || e.Seq != seq {
			t.Errorf("%s: got %+v %v", field, e, err)
		}
	}
}

func TestMissingDomainIsNamed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "c.json")
	bustest.OK(t, os.WriteFile(path, fmt.Appendf(nil, `{"url":%q,"jetstream_domain":"hub"}`, bustest.Server(t).URL()), 0o600))
	_, err := bus.Connect(testbus.Context(t), natsio.Options{Context: path})
	if !errors.Is(err, natsio.ErrNoJetStream) || !strings.Contains(err.Error(), "the domain hub") {
		t.Errorf("got %v, want ErrNoJetStream and the domain", err)
	}
}

func TestConnectInProcess(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	ctx := testbus.Context(t)
	b, err := bus.Connect(ctx, natsio.Options{InProcess: node, URL: "nats://host.invalid:1", Creds: "/none.creds"})
	bustest.OK(t, err)
	t.Cleanup(b.Close)
	bustest.OK(t, b.Provision(ctx, testbus.Conf(t, ""), 0))
	if seq, err := b.Publish(ctx, session.DoorIn, "s1", []byte("{}"), ""); err != nil || seq != 1 {
		t.Errorf("got %d %v, want 1", seq, err)
	}
}

// slowServer is a server in this process that takes the second connection only when
// the test lets it.
type slowServer struct {
	*bustest.Node
	conns   []net.Conn
	dialled chan struct{} // closed when the second connection is requested
	open    chan struct{} // closed to let it
}

func (s *slowServer) InProcessConn() (net.Conn, error) {
	if len(s.conns) == 1 {
		close(s.dialled)
		<-s.open
	}
	conn, err := s.Node.InProcessConn()
	s.conns = append(s.conns, conn)
	return conn, err
}

// An ack is compared with the incarnation that it would be sent in, since publishing
// waits for a reconnect that is under way.
func TestCurrentIncarnationWaitsForAReconnect(t *testing.T) {
	t.Parallel()
	server := &slowServer{Node: bustest.Configured(t, `jetstream { store_dir: "DIR" }`), dialled: make(chan struct{}), open: make(chan struct{})}
	c, err := natsio.Connect(t.Context(), natsio.Options{InProcess: server})
	bustest.OK(t, err)
	defer c.Close()
	before := c.Incarnation()
	server.conns[0].Close()
	<-server.dialled
	current := make(chan uint64)
	go func() { current <- c.CurrentIncarnation() }()
	select {
	case n := <-current:
		t.Errorf("got %d during the reconnect, want to wait for it", n)
	case <-time.After(100 * time.Millisecond):
		close(server.open)
		if n := <-current; n == before || n != c.Incarnation() {
			t.Errorf("got %d after the reconnect, want another one than %d, and that of Incarnation, %d", n, before, c.Incarnation())
		}
	}
}

// A context may have an NKey as credentials.
func TestConnectWithAnNKey(t *testing.T) {
	t.Parallel()
	user, err := nkeys.CreateUser()
	bustest.OK(t, err)
	public, err := user.PublicKey()
	bustest.OK(t, err)
	seed, err := user.Seed()
	bustest.OK(t, err)
	node := bustest.Configured(t, `
		jetstream { store_dir: "DIR" }
		authorization { users: [ { nkey: `+public+` } ] }`)
	dir := t.TempDir()
	key, file := filepath.Join(dir, "user.nk"), filepath.Join(dir, "c.json")
	if err := errors.Join(
		os.WriteFile(key, seed, 0o600),
		os.WriteFile(file, fmt.Appendf(nil, `{"url":%q,"nkey":%q}`, node.URL(), key), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	b, err := bus.Connect(testbus.Context(t), natsio.Options{Context: file})
	bustest.OK(t, err)
	b.Close()
	if _, err := bus.Connect(testbus.Context(t), natsio.Options{URL: node.URL()}); !errors.Is(err, natsio.ErrUnauthorized) {
		t.Errorf("without the key: got %v, want ErrUnauthorized", err)
	}
}

// A server that shuts down drops the first request: a process that starts at that time
// reconnects and retries.
func TestConnectRetriesWhileServersRestart(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	bustest.OK(t, err)
	t.Cleanup(func() { l.Close() })
	var lost atomic.Int32
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go passUntil(client, strings.TrimPrefix(node.URL(), "nats://"), "$JS.API.INFO", func() bool { return lost.Add(1) <= 2 })
		}
	}()
	b, err := bus.Connect(testbus.Context(t), natsio.Options{URL: "nats://" + l.Addr().String()})
	if err != nil {
		t.Fatalf("connect while two connections are lost: %v", err)
	}
	b.Close()
	if got := lost.Load(); got != 3 {
		t.Errorf("JetStream was asked %d times, want a third time after two lost connections", got)
	}
}

// A server that closes a connection at once is about to go down, or about to start behind
// a proxy: a process that starts at that time tries again.
func TestConnectRetriesWhileConnectionsAreClosed(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	bustest.OK(t, err)
	t.Cleanup(func() { l.Close() })
	var accepted atomic.Int32
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			if accepted.Add(1) <= 2 {
				client.Close()
				continue
			}
			go passUntil(client, strings.TrimPrefix(node.URL(), "nats://"), "", func() bool { return false })
		}
	}()
	b, err := bus.Connect(testbus.Context(t), natsio.Options{URL: "nats://" + l.Addr().String()})
	if err != nil {
		t.Fatalf("connect while two connections are closed: %v", err)
	}
	b.Close()
}

// passUntil forwards a connection to a server. If lose returns true, it closes the
// connection instead of forwarding a line with text.
func passUntil(client net.Conn, target, text string, lose func() bool) {
	defer client.Close()
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer server.Close()
	go func() { _, _ = io.Copy(client, server) }()
	for in := bufio.NewReader(client); ; {
		line, err := in.ReadString('\n')
		if err != nil || strings.Contains(line, text) && lose() {
			return
		}
		if _, err := io.WriteString(server, line); err != nil {
			return
		}
	}
}
