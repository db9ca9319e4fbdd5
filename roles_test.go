package refold_test

// Programs with the rights that refold roles gives them, on a server with its accounts:
// what an app may do, and what neither it nor one that only asks may.

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/roles"
	"github.com/refold/refold/refoldtest"
)

const guardedUsers = `
tenants:
  refold:
    session-actors: [actor]
    clients: [client]
    admins: [admin]
    apps: [shop]
    app-asks: [page]
    models: {shop: [refoldtest, stream]}
    tools: {shop: [shop], other: [other]}
    step-hooks: {shop: [shop]}
`

// guarded is a server with accounts.
type guarded struct {
	t    *testing.T
	dir  string
	url  string
	file *roles.File
}

// guard starts a server with accounts, its streams and a session-actor.
func guard(t *testing.T) *guarded {
	t.Helper()
	g := &guarded{t: t, dir: t.TempDir()}
	var err error
	g.file, err = roles.Parse([]byte(guardedUsers))
	ok(t, err)
	_, err = g.file.Write(g.dir, nil)
	ok(t, err)
	conf := filepath.Join(g.dir, "nats.conf")
	ok(t, os.WriteFile(conf, fmt.Appendf(nil, "listen: \"127.0.0.1:-1\"\njetstream {store_dir: %q}\nfeature_flags {js_ack_fc_v2: true}\ninclude \"server/accounts.conf\"\n", t.TempDir()), 0o600))
	options, err := server.ProcessConfigFile(conf)
	ok(t, err)
	options.NoLog, options.NoSigs = true, true
	srv, err := server.NewServer(options)
	ok(t, err)
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	if !srv.ReadyForConnections(20 * time.Second) {
		t.Fatal("the server is not ready")
	}
	g.url = srv.ClientURL()
	g.serve()
	return g
}

// serve runs a session-actor with its own rights until the test ends.
func (g *guarded) serve() {
	g.t.Helper()
	ctx, cancel := context.WithCancel(testbus.Context(g.t))
	connect := func(user string) *bus.Bus {
		b, err := bus.Connect(ctx, natsio.Options{URL: g.url, Context: filepath.Join(g.dir, "users", "refold", user, "context.json")})
		ok(g.t, err)
		return b
	}
	b := connect("actor")
	conf := testbus.Conf(g.t, "")
	ok(g.t, b.Provision(ctx, conf, 1))
	_, err := engine.EnsureInstall(ctx, b, []byte(`{"v":1,"rules":1,"tools":[]}`))
	ok(g.t, err)
	users, err := g.file.Users()
	ok(g.t, err)
	for _, c := range roles.Consumers(users, "refold") {
		_, err := b.EnsureBridge(ctx, conf, c.Class, c.Target)
		ok(g.t, err)
	}
	h := engine.New(b, slog.New(slog.DiscardHandler), engine.Options{})
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	g.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			g.t.Errorf("session-actor: %v", err)
		}
		b.Close()
	})
	<-h.Ready()
}

// connect connects as a user, as a program does.
func (g *guarded) connect(user string) *nats.Conn {
	g.t.Helper()
	auth, err := nats.NkeyOptionFromSeed(filepath.Join(g.dir, "users", "refold", user, "seed.nk"))
	ok(g.t, err)
	nc, err := nats.Connect(g.url, auth, nats.CustomInboxPrefix("_INBOX_"+user))
	ok(g.t, err)
	g.t.Cleanup(nc.Close)
	return nc
}

// open opens a runtime as a user.
func (g *guarded) open(user string) *refold.Runtime {
	g.t.Helper()
	rt, err := refold.Open(testbus.Context(g.t), refold.NATS(g.connect(user)), refold.Grace(time.Second))
	ok(g.t, err)
	g.t.Cleanup(func() { ok(g.t, rt.Close()) })
	return rt
}

// shopModel buys something, and says so.
func shopModel() refold.ModelRef {
	return refoldtest.Model(refoldtest.Calls(refoldtest.To("shop_buy", order{"tea"})), refoldtest.Say("I have it."), refoldtest.Say("And more."))
}

func TestAppServesAWholeRun(t *testing.T) {
	t.Parallel()
	ctx := testbus.Context(t)
	g := guard(t)
	rt := g.open("shop")
	hooked := make(chan struct{}, 64)
	a, err := rt.Agent("shop", refold.Model(shopModel()), refold.Tools(shop()), refold.PrepareStep(func(context.Context, refold.Step) (refold.StepChoice, error) {
		hooked <- struct{}{}
		return refold.StepChoice{}, nil
	}))
	ok(t, err)
	s := a.Session("hello")
	run, err := s.Ask(ctx, "Buy tea.", refold.Submission("order-7"))
	ok(t, err)
	steered := false
	var got []string
	for u, err := range run.Updates(ctx) {
		ok(t, err)
		if _, waits := u.(refold.Waiting); waits {
			continue
		}
		got = append(got, strings.Fields(line(u))[0])
		if _, asks := u.(refold.ApprovalAsked); asks {
			_, err := s.Steer(ctx, "Hurry.")
			ok(t, err)
			steered = true
			waiting, err := s.Approvals(ctx)
			if err != nil || len(waiting) != 1 {
				t.Fatalf("approvals: got %+v (%v), want one", waiting, err)
			}
			ok(t, s.Approve(ctx, waiting[0]))
		}
	}
	if want := []string{"Started", "asked", "waits", "decided", "ended", "text", "end"}; !steered || !slices.Equal(slices.Compact(got), want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(hooked) == 0 {
		t.Error("the hook was not called")
	}
	answer, err := run.Wait(ctx)
	if err != nil || answer.Text != "I have it." || answer.Calls[0].Status != "succeeded" {
		t.Errorf("got %+v (%v)", answer, err)
	}
	listed := 0
	for info, err := range rt.Sessions(ctx) {
		ok(t, err)
		if listed++; info.Session != "hello" {
			t.Errorf("listed %+v", info)
		}
	}
	ok(t, s.SetFacts(ctx, map[string]string{"plan": "gold"}))
	ok(t, s.End(ctx))
	if listed != 1 {
		t.Errorf("listed %d sessions, want 1", listed)
	}
}

func TestAppCantServeATargetThatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	ctx := testbus.Context(t)
	rt := guard(t).open("shop")
	_, err := rt.Agent("other", refold.Model(shopModel()), refold.Tools(nothing("other.look")))
	if err == nil {
		ended, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		err = rt.Wait(ended)
	}
	if want := `for the target other (name it for this user, under tools`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestAppAskAsksAnAgentThatOthersServe(t *testing.T) {
	t.Parallel()
	ctx := testbus.Context(t)
	g := guard(t)
	owner, err := g.open("shop").Agent("shop", refold.Model(shopModel()), refold.Tools(shop()))
	ok(t, err)
	asker, err := g.open("page").Agent("shop", refold.Model(shopModel()), refold.Tools(shop()), refold.ServedElsewhere())
	ok(t, err)

	// A session without the definition: only who may use the door ctl gives it one.
	_, err = asker.Session("new").Ask(ctx, "Buy tea.")
	if want := `it lacks the right "ctl" (configure, hold and erase sessions) of the roles operator, eraser, app`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}

	run, err := owner.Session("hello").Ask(ctx, "Buy tea.", refold.Submission("order-7"))
	ok(t, err)
	again, err := asker.Session("hello").Ask(ctx, "Buy tea.", refold.Submission("order-7"))
	if err != nil || again.Number() != run.Number() {
		t.Fatalf("got %+v (%v), want run %d", again, err, run.Number())
	}
	for u, err := range again.Updates(ctx) {
		ok(t, err)
		if _, asks := u.(refold.ApprovalAsked); !asks {
			continue
		}
		waiting, err := asker.Session("hello").Approvals(ctx)
		if err != nil || len(waiting) != 1 {
			t.Fatalf("approvals: got %+v (%v), want one", waiting, err)
		}
		err = asker.Session("hello").Approve(ctx, waiting[0])
		if want := `the right "approve" (decide over calls that wait for a person) of the roles approver, operator, app`; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		ok(t, owner.Session("hello").Deny(ctx, waiting[0], refold.Because("no tea")))
	}
	if answer, err := again.Wait(ctx); err != nil || answer.Text != "I have it." || answer.Calls[0].Status == string(session.CallSucceeded) {
		t.Errorf("got %+v (%v)", answer, err)
	}
}
