package refold_test

// The same program on servers of its own, with other processes beside it; and on a
// directory that another process has.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/embedded"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/refoldtest"
)

// provisioned creates the streams on servers.
func provisioned(t *testing.T, node *bustest.Node, replicas int) {
	t.Helper()
	ctx := testbus.Context(t)
	b, err := bus.Connect(ctx, natsio.Options{URL: node.URL()})
	ok(t, err)
	defer b.Close()
	ok(t, b.Provision(ctx, testbus.Conf(t, ""), replicas))
	_, err = engine.EnsureInstall(ctx, b, []byte(`{"v":1,"rules":1,"tools":[]}`))
	ok(t, err)
}

// carried runs a session-actor on servers until the test ends.
func carried(t *testing.T, node *bustest.Node) {
	t.Helper()
	ctx, cancel := context.WithCancel(testbus.Context(t))
	b, err := bus.Connect(ctx, natsio.Options{URL: node.URL()})
	ok(t, err)
	h := engine.New(b, slog.New(slog.DiscardHandler), engine.Options{})
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("session-actor: %v", err)
		}
		b.Close()
	})
	<-h.Ready()
}

// onServers opens a runtime on servers, with a connection that it may not touch.
func onServers(t *testing.T, node *bustest.Node) *refold.Runtime {
	t.Helper()
	nc, err := nats.Connect(node.URL(), nats.ClosedHandler(func(*nats.Conn) { t.Error("the program is told of a closed connection") }))
	ok(t, err)
	rt, err := refold.Open(testbus.Context(t), refold.NATS(nc), refold.Grace(time.Second))
	ok(t, err)
	t.Cleanup(func() {
		ok(t, rt.Close())
		if !nc.IsConnected() {
			t.Error("the program's connection is closed")
		}
		nc.SetClosedHandler(nil)
		nc.Close()
	})
	if rt.ContextFile() != "" {
		t.Errorf("it has a context file: %s", rt.ContextFile())
	}
	return rt
}

func TestTwoProcessesOnThreeServers(t *testing.T) {
	t.Parallel()
	ctx := testbus.Context(t)
	nodes := bustest.Cluster(t, 3)
	provisioned(t, nodes[0], 3)
	carried(t, nodes[0])
	var calls atomic.Int32
	var agents []*refold.Agent
	model := refoldtest.Model(refoldtest.Calls(refoldtest.To("count_up", nil)), refoldtest.Say("done"))
	for _, node := range nodes[1:] {
		a, err := onServers(t, node).Agent("counter", refold.Model(model), refold.Tools(
			refold.Func("count.up", func(context.Context, struct{}) (int32, error) { return calls.Add(1), nil })))
		ok(t, err)
		agents = append(agents, a)
	}
	const sessions = 4
	var asking sync.WaitGroup
	for i := range sessions {
		for p, a := range agents {
			asking.Go(func() {
				run, err := a.Session(fmt.Sprintf("s%d", i)).Ask(ctx, "Count.", refold.Submission("order-7"))
				if err != nil {
					t.Errorf("process %d: %v", p, err)
					return
				}
				answer, err := run.Wait(ctx)
				if err != nil || answer.Run != 1 || answer.Text != "done" || len(answer.Calls) != 1 || answer.Calls[0].Status != "succeeded" {
					t.Errorf("process %d: got %+v (%v)", p, answer, err)
				}
			})
		}
	}
	asking.Wait()
	if got := calls.Load(); got != sessions {
		t.Errorf("the tool was called %d times, want %d", got, sessions)
	}
}

func TestOpenWithoutStreamsSaysWhatToDo(t *testing.T) {
	t.Parallel()
	ctx := testbus.Context(t)
	if _, err := refold.Open(ctx, refold.NATS(nil)); err == nil {
		t.Error("no connection: got no error")
	}
	if _, err := refold.Open(ctx, nil); err == nil {
		t.Error("no source: got no error")
	}
	if _, err := refold.Open(ctx, embedded.Dir(t.TempDir()), refold.Prefix("A.B")); err == nil {
		t.Error("a bad prefix: got no error")
	}
	if _, err := refold.Open(ctx, embedded.Dir(t.TempDir()), refold.Grace(-1)); err == nil {
		t.Error("a bad grace: got no error")
	}
}

func TestDirectoryInUseNamesTheProcess(t *testing.T) {
	t.Parallel()
	ctx := testbus.Context(t)
	dir := t.TempDir()
	rt, err := refold.Open(ctx, refoldtest.Dir(dir))
	ok(t, err)
	_, err = refold.Open(ctx, refoldtest.Dir(dir))
	var inUse *refold.InUseError
	if !errors.As(err, &inUse) || inUse.PID != os.Getpid() || inUse.ContextFile != rt.ContextFile() {
		t.Errorf("got %+v (%v), want this process and %s", inUse, err, rt.ContextFile())
	}
	info, err := os.Stat(rt.ContextFile())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the context file: %v (%v), want mode 0600", info, err)
	}
	c, err := client.Connect(ctx, client.Options{Context: rt.ContextFile()})
	ok(t, err)
	if _, err := c.LastEvent(ctx); err != nil {
		t.Errorf("a program that joins: %v", err)
	}
	c.Close()

	ended := make(chan error, 1)
	go func() { ended <- rt.Wait(ctx) }()
	ok(t, rt.Close())
	ok(t, rt.Close())
	if err := <-ended; err != nil {
		t.Errorf("wait: got %v, want nil after Close", err)
	}
	if _, err := rt.Agent("late", repeating); err == nil {
		t.Error("a closed runtime serves an agent")
	}
	again, err := refold.Open(ctx, refoldtest.Dir(dir))
	ok(t, err)
	ok(t, again.Close())
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(testbus.Context(t))
	rt := refoldtest.Open(t)
	cancel()
	if err := rt.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// A reader is told what a run waits for, and that it goes on.
func TestReaderIsToldWhatARunWaitsFor(t *testing.T) {
	t.Parallel()
	ctx := testbus.Context(t)
	node := bustest.Server(t)
	provisioned(t, node, 1)
	rt := onServers(t, node)
	a, err := rt.Agent("helper", refold.Model(refold.ModelRef{Provider: "repeats", Model: "repeats"}), refold.System("hello"), refold.ServedElsewhere())
	ok(t, err)
	run, err := a.Session("s").Ask(ctx, "hi") // the log takes it, though nobody carries the session
	ok(t, err)
	var got []string
	for u, err := range run.Updates(ctx) {
		ok(t, err)
		w, waits := u.(refold.Waiting)
		if !waits {
			continue
		}
		got = append(got, w.For+" "+w.Target+" "+w.Cause)
		switch got[len(got)-1] {
		case "session-actor  silent":
			carried(t, node)
		case "model repeats unserved":
			_, err := rt.Agent("serves", repeating)
			ok(t, err)
		}
	}
	want := []string{"session-actor  silent", "session-actor  ", "model repeats unserved"}
	if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
		t.Errorf("got %q, want %q, and the end of the last one if it is seen", got, want)
	}
}

// TestWaitForARunOfAQuarantinedSession: an effect that the session did not open stands
// where its second turn would be.
func TestWaitForARunOfAQuarantinedSession(t *testing.T) {
	t.Parallel()
	ctx := testbus.Context(t)
	node := bustest.Server(t)
	provisioned(t, node, 1)
	carried(t, node)
	b := testbus.ConnectWith(t, natsio.Options{URL: node.URL()})
	forged := journal.Output{Session: "s", Effect: &session.Effect{Name: "r1t2", Class: session.ClassLLM, Target: "refoldtest", Payload: []byte{0x80}}}
	ok(t, errors.Join(b.Store(ctx, []journal.Output{forged})...))
	a, err := onServers(t, node).Agent("helper", refold.Tools(nothing("a.b")), refold.Model(refoldtest.Model(refoldtest.Calls(refoldtest.To("a_b", nil)), refoldtest.Say("done"))))
	ok(t, err)
	run, err := a.Session("s").Ask(ctx, "hi")
	ok(t, err)
	var stopped *refold.QuarantinedError
	if answer, err := run.Wait(ctx); !errors.As(err, &stopped) || !strings.Contains(stopped.Reason, "r1t2") {
		t.Errorf("got %+v (%v), want that the session is quarantined for r1t2", answer, err)
	}
}
