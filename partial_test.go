package refold_test

// Programs whose user may not read the log: they ask, follow and control by what they are
// told.

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/refoldtest"
)

// cable is how a program reaches the servers.
type cable struct {
	mu    sync.Mutex
	isCut bool
	conns []net.Conn
}

// Dial implements nats.CustomDialer.
func (c *cable) Dial(network, address string) (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isCut {
		return nil, errors.New("the cable is cut")
	}
	conn, err := (&net.Dialer{Timeout: 2 * time.Second}).Dial(network, address)
	if err == nil {
		c.conns = append(c.conns, conn)
	}
	return conn, err
}

func (c *cable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isCut = true
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.conns = nil
}

func (c *cable) mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isCut = false
}

// openBy opens a runtime as a user that has the role client, over a cable.
func (g *guarded) openBy(c *cable) *refold.Runtime {
	g.t.Helper()
	auth, err := nats.NkeyOptionFromSeed(filepath.Join(g.dir, "users", "refold", "client", "seed.nk"))
	ok(g.t, err)
	nc, err := nats.Connect(g.url, auth, nats.CustomInboxPrefix("_INBOX_client"), nats.SetCustomDialer(c))
	ok(g.t, err)
	g.t.Cleanup(nc.Close)
	rt, err := refold.Open(testbus.Context(g.t), refold.NATS(nc), refold.Grace(time.Second))
	ok(g.t, err)
	g.t.Cleanup(func() { ok(g.t, rt.Close()) })
	return rt
}

// defined returns an agent of its owner and of a client, and a session that has the
// definition and has had one run.
func (g *guarded) defined(rt *refold.Runtime, o ...refold.AgentOption) (owner, asker *refold.Session) {
	g.t.Helper()
	ctx := testbus.Context(g.t)
	a, err := g.open("shop").Agent("shop", o...)
	ok(g.t, err)
	run, err := a.Session("hello").Ask(ctx, "Begin.")
	ok(g.t, err)
	_, err = run.Wait(ctx)
	ok(g.t, err)
	b, err := rt.Agent("shop", append(o, refold.ServedElsewhere())...)
	ok(g.t, err)
	return a.Session("hello"), b.Session("hello")
}

func TestClientAsksAndFollowsWithoutTheLog(t *testing.T) {
	t.Parallel()
	ctx := testbus.Context(t)
	g := guard(t)
	owner, s := g.defined(g.open("client"), refold.Tools(shop()), refold.Model(refoldtest.Model(
		refoldtest.Say("Yes?"), refoldtest.Calls(refoldtest.To("shop_buy", order{"tea"})), refoldtest.Say("I have it."))))
	run, err := s.Ask(ctx, "Buy tea.", refold.Submission("order-7"))
	if err != nil || run.Number() != 2 {
		t.Fatalf("got %+v (%v), want run 2", run, err)
	}
	steered := false
	read := func() (got []string) {
		for u, err := range run.Updates(ctx) {
			ok(t, err)
			if _, waits := u.(refold.Waiting); waits {
				continue
			}
			if got = append(got, line(u)); steered {
				continue
			}
			if _, asks := u.(refold.ApprovalAsked); asks {
				steered = true
				if run, err := s.Steer(ctx, "Hurry."); err != nil || run.Number() != 2 {
					t.Errorf("steer: got %+v (%v), want run 2", run, err)
				}
				waiting, err := owner.Approvals(ctx)
				if err != nil || len(waiting) != 1 {
					t.Fatalf("approvals: got %+v (%v), want one", waiting, err)
				}
				ok(t, owner.Approve(ctx, waiting[0]))
			}
		}
		return got
	}
	want := []string{"refold.Partial", "Started", "waits r2t1c0", "ended r2t1c0 succeeded ", "text 2.2 I have it.", "end 2 completed  after 2"}
	if got := read(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if again := read(); !slices.Equal(again, want) {
		t.Errorf("the second reader got %q, want %q", again, want)
	}
	answer, err := run.Wait(ctx)
	if err != nil || answer.Text != "I have it." || answer.Cut || len(answer.Calls) != 1 || answer.Calls[0].Tool != "shop_buy" {
		t.Errorf("got %+v (%v)", answer, err)
	}
	if _, err := s.Ask(ctx, "Buy tea.", refold.Submission("order-7")); !errors.Is(err, client.ErrEndedBefore) {
		t.Errorf("the same request after its run: got %v, want %v", err, client.ErrEndedBefore)
	}
	if answer, err := s.Run(2).Wait(ctx); err != nil || !answer.Cut {
		t.Errorf("a run that ended before: got %+v (%v), want an answer that is cut", answer, err)
	}
	if _, err := s.Run(1).Wait(ctx); !errors.Is(err, client.ErrEndedBefore) {
		t.Errorf("a run before the last one: got %v, want %v", err, client.ErrEndedBefore)
	}
}

func TestClientSeesTextAsItIsWrittenAndCancels(t *testing.T) {
	t.Parallel()
	ctx := testbus.Context(t)
	g := guard(t)
	m := newAfterFirst()
	rt := g.open("client")
	_, s := g.defined(rt, refold.Model(m.ref()))
	var all []string
	told := make(chan string, 64)
	following, stop := context.WithCancel(ctx)
	var reading sync.WaitGroup
	reading.Go(func() { // all of the session, by a handle without an agent
		for u, err := range rt.Session("hello").Updates(following, "") {
			if err != nil {
				return
			}
			if all = append(all, line(u)); len(all) == 1 {
				told <- ""
			}
		}
	})
	<-told
	run, err := s.Ask(ctx, "Go on.")
	ok(t, err)
	<-m.asked
	m.pieces <- "so "
	m.pieces <- "far"
	var got strings.Builder
	for u, err := range run.Updates(ctx) {
		ok(t, err)
		switch u := u.(type) {
		case refold.Text:
			if got.WriteString(u.Text); got.String() == "so far" {
				ok(t, run.Cancel(ctx))
			}
		case refold.RunEnded:
			got.WriteString("; " + string(u.Lifecycle))
		}
	}
	if want := "so far; cancelled"; got.String() != want {
		t.Errorf("got %q, want %q", got.String(), want)
	}
	var ended *refold.RunError
	if _, err := run.Wait(ctx); !errors.As(err, &ended) || ended.Lifecycle != session.Cancelled {
		t.Errorf("wait: got %v, want that the run was cancelled", err)
	}
	var refused *refold.RejectedError
	if err := run.Cancel(ctx); !errors.As(err, &refused) {
		t.Errorf("cancel once more: got %v, want that it is refused", err)
	}
	stop()
	reading.Wait()
	if want := []string{"refold.Partial", "Started"}; len(all) < 3 || !slices.Equal(all[:2], want) || !slices.Contains(all, "end 2 cancelled cancelled after 1") {
		t.Errorf("the session's reader got %q, want %q and the end", all, want)
	}
}

// afterFirst is a stream that answers its first turn by itself.
type afterFirst struct {
	*stream
	turns atomic.Int32
}

func (m *afterFirst) Generate(ctx context.Context, r executor.Request, delta func(string)) (executor.Answer, error) {
	if m.turns.Add(1) == 1 {
		return executor.Answer{Text: "Yes?"}, nil
	}
	return m.stream.Generate(ctx, r, delta)
}

func (m *afterFirst) ref() refold.ModelRef {
	return refold.ModelRef{Provider: "stream", Model: "stream", Open: func() (executor.Model, error) { return m, nil }}
}

func newAfterFirst() *afterFirst {
	return &afterFirst{stream: &stream{pieces: make(chan string), asked: make(chan struct{}, 1)}}
}

// TestClientThatLosesItsConnectionSaysWhatItMayLack: while the run ends, the program is
// not connected.
func TestClientThatLosesItsConnectionSaysWhatItMayLack(t *testing.T) {
	t.Parallel()
	ctx := testbus.Context(t)
	g := guard(t)
	m := newAfterFirst()
	var c cable
	owner, s := g.defined(g.openBy(&c), refold.Model(m.ref()))
	run, err := s.Ask(ctx, "Go on.")
	ok(t, err)
	<-m.asked
	m.pieces <- "so far"
	var got []string
	for u, err := range run.Updates(ctx) {
		ok(t, err)
		if _, waits := u.(refold.Waiting); waits {
			continue
		}
		got = append(got, line(u))
		if _, text := u.(refold.Text); text && len(got) == 3 {
			c.cut()
			m.pieces <- ", and more"
			close(m.pieces)
			answer, err := owner.Run(2).Wait(ctx)
			if err != nil || answer.Text != "so far, and more" {
				t.Errorf("the owner got %+v (%v)", answer, err)
			}
			c.mend()
		}
	}
	if want := []string{"refold.Partial", "Started", "text 2.1 so far", "refold.Partial", "end 2 completed  after 0"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if answer, err := run.Wait(ctx); err != nil || answer.Text != "so far" || !answer.Cut {
		t.Errorf("got %+v (%v), want an answer that is cut", answer, err)
	}
}

func TestWhatAClientMayNotDoNamesTheRight(t *testing.T) {
	t.Parallel()
	ctx := testbus.Context(t)
	g := guard(t)
	rt := g.open("client")
	owner, s := g.defined(rt, refold.Tools(shop()), refold.Model(shopModelOf("Yes?")))
	other, err := rt.Agent("other", refold.Model(shopModelOf("No.")), refold.ServedElsewhere())
	ok(t, err)
	ofLog, ofCtl := `the right "read events" (the log) of the roles`, `the right "ctl" (configure, hold and erase sessions) of the roles operator, eraser, app`
	for name, c := range map[string]struct {
		do    func() error
		lacks string
	}{
		"transcript":     {func() error { _, err := s.Transcript(ctx); return err }, ofLog},
		"facts":          {func() error { return s.SetFacts(ctx, map[string]string{"plan": "gold"}) }, ofCtl},
		"end":            {func() error { return s.End(ctx) }, ofCtl},
		"define":         {func() error { _, err := other.Session("hello").Ask(ctx, "Hi."); return err }, ofCtl},
		"new session":    {func() error { _, err := other.Session("new").Ask(ctx, "Hi."); return err }, ofCtl},
		"type of answer": {func() error { _, err := s.Ask(ctx, "Hi.", refold.ReplyAs[order]()); return err }, ofCtl},
		"sessions": {func() error {
			for _, err := range rt.Sessions(ctx) {
				return err
			}
			return nil
		}, `the right "read stream info"`},
		"serve": {func() error { _, err := rt.Agent("third", refold.Model(shopModelOf("No."))); return err }, `the right "JetStream"`},
	} {
		err := c.do()
		var denied *natsio.PermissionError
		if !errors.As(err, &denied) || !strings.Contains(err.Error(), c.lacks) {
			t.Errorf("%s: got %v, want %s", name, err, c.lacks)
		}
	}
	if _, err := owner.Transcript(ctx); err != nil {
		t.Errorf("the owner's transcript: %v", err)
	}
}

func shopModelOf(text string) refold.ModelRef { return refoldtest.Model(refoldtest.Say(text)) }
