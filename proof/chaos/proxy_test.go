package chaos

// The proxy between a NATS client and a server: it forwards everything, counts
// points, and at one kills the client's process. The process is this one; a
// kill closes a channel.

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/refold/refold/subjects"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a client whose connection goes through a proxy, and one whose doesn't.
type rig struct {
	proxy       *proxy
	through, by *nats.Conn
	heard       chan string
	killed      chan Kill
}

const patience = 30 * time.Second

func newRig(t *testing.T, course Course) *rig {
	t.Helper()
	names, err := subjects.New("")
	must(t, err)
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true})
	must(t, err)
	go srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	if !srv.ReadyForConnections(patience) {
		t.Fatal("the NATS server is not ready")
	}
	r := &rig{heard: make(chan string, 64), killed: make(chan Kill, 8)}
	address := srv.Addr().String()
	aim := newAim(namer{names}, course)
	r.proxy, err = newProxy(Bridge, func() string { return address }, aim, func(s Kill) { aim.done(); r.killed <- s })
	must(t, err)
	t.Cleanup(r.proxy.close)
	r.by, err = nats.Connect(srv.ClientURL())
	must(t, err)
	t.Cleanup(r.by.Close)
	_, err = r.by.Subscribe(">", func(m *nats.Msg) {
		if m.Reply != "" {
			m.Respond([]byte("yes")) //nolint:errcheck // whoever waits for it fails
		}
		r.heard <- m.Subject
	})
	if err == nil {
		err = r.by.Flush()
	}
	must(t, err)
	r.through, err = nats.Connect(r.proxy.url(), nats.NoReconnect(), nats.Timeout(patience))
	must(t, err)
	t.Cleanup(r.through.Close)
	return r
}

// next returns the subject of the next message that came to the server, but
// for answers.
func (r *rig) next(t *testing.T) string {
	t.Helper()
	for {
		select {
		case subject := <-r.heard:
			if subject[0] != '_' {
				return subject
			}
		case <-time.After(patience):
			t.Fatal("no message came")
		}
	}
}

func TestProxyPassesOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	if answer, err := r.through.Request("refold.install", []byte("x"), patience); err != nil || string(answer.Data) != "yes" {
		t.Fatalf("request: got %v, %v", answer, err)
	}
	var publishing sync.WaitGroup
	for range 4 {
		publishing.Go(func() {
			msg := nats.NewMsg("refold.out.s1")
			msg.Header.Set("A", "b")
			msg.Data = []byte(`{"type":"RunStarted"}`)
			if err := r.through.PublishMsg(msg); err != nil {
				t.Error(err)
			}
		})
	}
	publishing.Wait()
	if err := r.through.Publish("refold.alive.bridge.i", nil); err != nil { // no point
		t.Fatal(err)
	}
	must(t, r.through.FlushTimeout(patience))
	var got []string
	passed, _ := r.proxy.aim.order()
	for _, p := range bothSides(passed) {
		got = append(got, p.String())
	}
	want := []string{"bridge/before/install/1", "bridge/after/install/1"}
	for _, n := range []string{"1", "2", "3", "4"} {
		want = append(want, "bridge/before/notice.RunStarted/"+n, "bridge/after/notice.RunStarted/"+n)
	}
	if !slices.Equal(got, want) {
		t.Errorf("points: got %v, want %v", got, want)
	}
	for range 5 {
		r.next(t)
	}
	if subject := r.next(t); subject != "refold.alive.bridge.i" {
		t.Errorf("last came %s", subject)
	}
}

func TestProxyKills(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		side    Side
		request bool
		came    bool // the second message
	}{
		{"before a publish", Before, false, false},
		{"after a publish", After, false, true},
		{"before a request", Before, true, false},
		{"after a request", After, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Course{{At: Point{Part: Bridge, Side: c.side, What: "install", N: 2}, Whom: Sender}})
			send := func() error { return r.through.Publish("refold.install", nil) }
			if c.request {
				send = func() error { _, err := r.through.Request("refold.install", nil, patience); return err }
			}
			came := func(want string) {
				if got := r.next(t); got != want {
					t.Fatalf("got %s, want %s", got, want)
				}
			}
			must(t, send())
			came("refold.install")
			if err := send(); c.request && err == nil {
				t.Error("the answer came through")
			}
			select {
			case <-r.killed:
			case <-time.After(patience):
				t.Fatal("the process was not killed")
			}
			// It is over: what the client sends now reaches nobody.
			if err := r.through.FlushTimeout(patience); err == nil {
				t.Error("the connection lives on")
			} else if errors.Is(err, nats.ErrTimeout) {
				t.Errorf("the connection hangs: %v", err)
			}
			if c.came { // on its own connection: what another one sends could overtake it
				came("refold.install")
			}
			must(t, r.by.Publish("refold.out.end", nil))
			came("refold.out.end")
		})
	}
}

// TestProxyTerm: a process that gets SIGTERM sends and receives everything as
// without the proxy.
func TestProxyTerm(t *testing.T) {
	t.Parallel()
	for _, side := range []Side{Before, After} {
		for _, request := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, request %v", side, request), func(t *testing.T) {
				t.Parallel()
				at := Kill{At: Point{Part: Bridge, Side: side, What: "install", N: 1}, Whom: Sender, Term: true}
				r := newRig(t, Course{at})
				if request {
					if _, err := r.through.Request("refold.install", nil, patience); err != nil {
						t.Errorf("no answer came through: %v", err)
					}
				} else if err := r.through.Publish("refold.install", nil); err != nil {
					t.Fatal(err)
				}
				for range 3 { // a pong too many, or too few, would end or hang one of these
					must(t, r.through.FlushTimeout(patience))
				}
				select {
				case got := <-r.killed:
					if got != at {
						t.Errorf("killed %v, want %v", got, at)
					}
				case <-time.After(patience):
					t.Fatal("the process was not told to end")
				}
				if got := r.next(t); got != "refold.install" {
					t.Errorf("came %s", got)
				}
			})
		}
	}
}
