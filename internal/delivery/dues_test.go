package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/delivery"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/streams"
	"github.com/refold/refold/subjects"
)

// These tests run against a real server. A schedule never fires early, survives
// failures of the server and the loss of the consumer, and is deleted once its wake is
// settled. A schedule in the far future stays.

// clock is a server with the timers' stream.
type clock struct {
	t    *testing.T
	node *bustest.Node
	conf *streams.Conf
	nc   *nats.Conn
	js   jetstream.JetStream
	b    *bus.Bus
}

func newClock(t *testing.T, edits ...string) *clock {
	t.Helper()
	return newClockOn(t, bustest.Server(t), 1, edits...)
}

func newClockOn(t *testing.T, node *bustest.Node, replicas int, edits ...string) *clock {
	t.Helper()
	c := &clock{t: t, node: node, conf: testbus.Conf(t, "", edits...)}
	c.b = testbus.Connect(t, c.node, "")
	bustest.OK(t, c.b.Provision(testbus.Context(t), c.conf, replicas))
	c.nc, c.js = testbus.JS(t, c.node)
	return c
}

// pull runs a puller on its own connection. stop ends it and waits.
func (c *clock) pull(carry func(delivery.DueDelivery)) (b *bus.Bus, stop func()) {
	c.t.Helper()
	b = testbus.Connect(c.t, c.node, "")
	if err := b.Provision(testbus.Context(c.t), c.conf, 0); err != nil {
		c.t.Fatal(err)
	}
	puller := b.Dues()
	ctx, cancel := context.WithCancel(testbus.Context(c.t))
	done := make(chan error, 1)
	go func() { done <- puller.Run(ctx, 16, carry) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := testbus.Within(c.t, done); err != nil {
			c.t.Errorf("run the puller: %v", err)
		}
	})
	c.t.Cleanup(stop)
	return b, stop
}

func (c *clock) schedule(wake string, at time.Time) {
	c.t.Helper()
	if err := errors.Join(c.b.Store(testbus.Context(c.t), []journal.Output{wakeAt(wake, at)})...); err != nil {
		c.t.Fatal(err)
	}
}

// wakeAt is a wake of s1.
func wakeAt(wake string, at time.Time) journal.Output {
	return journal.Output{Session: "s1", Effect: &session.Effect{
		Name: wake, Class: session.ClassWake, Target: "-", Deadline: at.UnixMilli(), Payload: []byte("payload of " + wake),
	}}
}

// left returns the subjects in the stream, without the due time of schedules.
func (c *clock) left() []string {
	c.t.Helper()
	stream, err := c.js.Stream(testbus.Context(c.t), "REFOLD_TIMERS")
	if err != nil {
		c.t.Fatal(err)
	}
	info, err := stream.Info(testbus.Context(c.t), jetstream.WithSubjectFilter(">"))
	if err != nil {
		c.t.Fatal(err)
	}
	var all []string
	for subject := range info.State.Subjects {
		if strings.HasPrefix(subject, "refold.timer.") {
			subject = subject[:strings.LastIndexByte(subject, '.')]
		}
		all = append(all, subject)
	}
	slices.Sort(all)
	return all
}

func (c *clock) holds(subjects ...string) func() bool {
	return func() bool { return slices.Equal(c.left(), subjects) }
}

func TestScheduleFiresWhenDue(t *testing.T) {
	t.Parallel()
	c := newClock(t)
	got := make(chan delivery.DueDelivery, 100)
	c.pull(func(d delivery.DueDelivery) { got <- d; d.Ack() })
	begun := time.Now()
	// Milliseconds count: a schedule that is cut to seconds fires early.
	due := map[string]time.Time{"w1": begun.Add(-time.Hour)}
	for i, wake := range []string{"w2", "w3", "w4", "w5", "w6", "w7"} {
		due[wake] = begun.Add(time.Duration(300+137*i) * time.Millisecond).Truncate(time.Millisecond)
	}
	c.schedule("w90", begun.Add(400*24*time.Hour))
	c.schedule("w90", begun.Add(401*24*time.Hour)) // of a past that is lost: it replaces nothing
	for wake, at := range due {
		c.schedule(wake, at)
	}
	for range len(due) {
		d := testbus.Within(t, got)
		at, ok := due[d.Wake]
		if !ok || d.Session != "s1" || string(d.Payload) != "payload of "+d.Wake || d.NumDelivered != 1 {
			t.Errorf("got %+v", d)
		}
		if d.Fired.Before(at) {
			t.Errorf("%s: fired %v early", d.Wake, at.Sub(d.Fired))
		}
		t.Logf("%s: %v late at the server, %v here", d.Wake, d.Fired.Sub(at), time.Since(at))
		delete(due, d.Wake)
	}
	bustest.Until(t, "only what lies ahead is left", c.holds("refold.timer.s1.w90", "refold.timer.s1.w90"))
	if _, err := c.js.Publish(testbus.Context(t), "refold.due.s!.w1", nil); err != nil {
		t.Fatal(err)
	}
	bustest.Until(t, "what is no wake is skipped", c.holds("refold.timer.s1.w90", "refold.timer.s1.w90"))
	if errs := c.b.Store(testbus.Context(t), []journal.Output{wakeAt("w.1", begun)}); errs[0] == nil {
		t.Error("schedule under a bad name: got no error")
	}
}

// Wakes are stored in one atomic batch, including due ones. The same wakes are stored
// again after they have fired, and each fires again. A wake that is due after
// scheduleMost fires early.
func TestSchedulesInABatch(t *testing.T) {
	t.Parallel()
	c := newClock(t)
	c.b = testbus.Connect(t, c.node, "")
	due := time.Now().Add(300 * time.Millisecond).Truncate(time.Millisecond)
	var outputs []journal.Output
	for n := range 20 {
		outputs = append(outputs, wakeAt(fmt.Sprintf("w%d", n), due.Add(time.Duration(n-10)*time.Minute)))
	}
	outputs[19] = wakeAt("w19", due.AddDate(1000, 0, 0))
	store := func() {
		t.Helper()
		bustest.OK(t, errors.Join(c.b.Store(testbus.Context(t), outputs)...))
	}
	store()
	store()
	got := make(chan delivery.DueDelivery, 100)
	_, stop := c.pull(func(d delivery.DueDelivery) { got <- d; d.Ack() })
	for range 2 {
		fired := map[string]bool{}
		for len(fired) < 11 {
			fired[testbus.Within(t, got).Wake] = true
		}
		if !fired["w0"] || !fired["w10"] || fired["w19"] {
			t.Errorf("fired are %v, want w0 to w10", fired)
		}
		store()
	}
	for range 11 {
		testbus.Within(t, got)
	}
	bustest.Until(t, "those that lie ahead are left", func() bool { return len(c.left()) == 9 })
	stop()
	stream, err := c.js.Stream(testbus.Context(t), "REFOLD_TIMERS")
	bustest.OK(t, err)
	m, err := stream.GetLastMsgForSubject(testbus.Context(t), fmt.Sprint("refold.timer.s1.w19.", outputs[19].Effect.Deadline))
	bustest.OK(t, err)
	if m.Header.Get("Nats-Batch-Id") == "" {
		t.Error("the wakes went out one by one, want one batch")
	}
	at, err := time.Parse(time.RFC3339, strings.TrimPrefix(m.Header.Get("Nats-Schedule"), "@at "))
	if years := time.Until(at).Hours() / 24 / 365; err != nil || years < 9.9 || years > 10.1 {
		t.Errorf("w19 fires in %.1f years (%v), want 10", years, err)
	}
}

// With three replicas the leader fires schedules, and a new leader fires those that the
// former one did not.
func TestSchedulesSurviveALeaderChange(t *testing.T) {
	t.Parallel()
	nodes := bustest.Cluster(t, 3)
	c := newClockOn(t, nodes[0], 3)
	got := make(chan delivery.DueDelivery, 100)
	c.pull(func(d delivery.DueDelivery) { got <- d; d.Ack() })
	due := time.Now().Add(1500 * time.Millisecond).Truncate(time.Millisecond) // an effect has milliseconds
	c.schedule("w1", time.Now())
	if d := testbus.Within(t, got); d.Wake != "w1" {
		t.Errorf("got %s, want w1", d.Wake)
	}
	c.schedule("w2", due)
	c.schedule("w90", due.Add(time.Hour))
	stepped, err := c.nc.RequestWithContext(testbus.Context(t), "$JS.API.STREAM.LEADER.STEPDOWN.REFOLD_TIMERS", nil)
	if err != nil || !strings.Contains(string(stepped.Data), `"success":true`) {
		t.Fatalf("another leader: %s, %v", stepped.Data, err)
	}
	if d := testbus.Within(t, got); d.Wake != "w2" || d.Fired.Before(due) {
		t.Errorf("got %s at %v, want w2 from %v on", d.Wake, d.Fired, due)
	}
	bustest.Until(t, "only what lies ahead is left", c.holds("refold.timer.s1.w90"))
}

// Schedules become due while the server is down, without a consumer, and without a
// puller; none is lost.
func TestSchedulesSurviveServerAndConsumer(t *testing.T) {
	t.Parallel()
	c := newClock(t)
	got := make(chan delivery.DueDelivery, 100)
	due := time.Now().Add(700 * time.Millisecond).Truncate(time.Millisecond)
	c.schedule("w1", due)
	c.schedule("w90", due.Add(7*24*time.Hour))
	c.node.Stop()
	bustest.Until(t, "it is due", func() bool { return time.Now().After(due) })
	c.node.Start()
	_, stop := c.pull(func(d delivery.DueDelivery) { got <- d; d.Ack() })
	if d := testbus.Within(t, got); d.Wake != "w1" || d.Fired.Before(due) {
		t.Errorf("after a restart: got %s at %v, want w1 from %v on", d.Wake, d.Fired, due)
	}
	bustest.Until(t, "w1 is acked", c.holds("refold.timer.s1.w90"))
	bustest.OK(t, c.js.DeleteConsumer(testbus.Context(t), "REFOLD_TIMERS", subjects.DueConsumer))
	c.schedule("w2", time.Now().Add(300*time.Millisecond))
	if d := testbus.Within(t, got); d.Wake != "w2" {
		t.Errorf("after its consumer was deleted: got %s, want w2", d.Wake)
	}
	stop()
	c.schedule("w3", time.Now())
	bustest.Until(t, "it came due while nobody pulls", c.holds("refold.due.s1.w3", "refold.timer.s1.w90"))
	c.pull(func(d delivery.DueDelivery) { got <- d; d.Ack() })
	if d := testbus.Within(t, got); d.Wake != "w3" {
		t.Errorf("after a pause: got %s, want w3", d.Wake)
	}
	bustest.Until(t, "only what lies ahead is left", c.holds("refold.timer.s1.w90"))
}

// Another session-actor gets the wakes of one that died; a nak causes a redelivery.
func TestDueWakesOfADeadPullerAreRedelivered(t *testing.T) {
	t.Parallel()
	c := newClock(t, setting("ack_wait", "1s")...)
	first := make(chan delivery.DueDelivery, 1)
	dead, stop := c.pull(func(d delivery.DueDelivery) { first <- d })
	c.schedule("w1", time.Now())
	testbus.Within(t, first)
	dead.Close()
	second := make(chan delivery.DueDelivery, 3)
	c.pull(func(d delivery.DueDelivery) {
		second <- d
		if d.NumDelivered == 2 {
			d.Nak(10 * time.Millisecond)
			return
		}
		d.Ack()
	})
	for n := range uint64(2) {
		if d := testbus.Within(t, second); d.Wake != "w1" || d.NumDelivered != n+2 {
			t.Errorf("got %s, delivered %d times, want w1, %d", d.Wake, d.NumDelivered, n+2)
		}
	}
	bustest.Until(t, "nothing is left", c.holds())
	stop()
}

func TestTimersConfRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, old, new, says string }{
		{"an age", `max_age: "0s"`, `max_age: "24h"`, "forgotten"},
		{"limits", "retention: workqueue", "retention: limits", "workqueue"},
		{"interest", "retention: workqueue", "retention: interest", "workqueue"},
		{"no schedules", "allow_msg_schedules: true", "allow_msg_schedules: false", "allow_msg_schedules"},
		{"no batches", "allow_direct: true\n    allow_atomic: true\n  }\n\n  # The key-value", "allow_direct: true\n  }\n\n  # The key-value", "allow_atomic"},
		{"no consumer", "\ntimers {", "\n# {", "timers: want a consumer"},
		{"no acks", "timers { deliver_policy: all, ack_policy: explicit", "timers { deliver_policy: all, ack_policy: none", "ack_policy explicit"},
		{"an unknown key", "timers { deliver_policy", "timers { delivery_policy", "delivery_policy"},
	} {
		text := strings.Replace(string(streams.File), tc.old, tc.new, 1)
		if text == string(streams.File) {
			t.Fatalf("%s: streams.conf has no %q", tc.name, tc.old)
		}
		if _, err := streams.ParseConf([]byte(text), testbus.Names(t, "")); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: got %v, want it to say %q", tc.name, err, tc.says)
		}
	}
	if text, err := testbus.Conf(t, "other").ConfJSON(subjects.DueConsumer); err != nil || !strings.Contains(string(text), `"other.due.*.*"`) {
		t.Errorf("the consumer as JSON: got %s, %v", text, err)
	}
}

// Run returns an error if the stream does not exist.
func TestDuePullerNeedsItsStream(t *testing.T) {
	t.Parallel()
	b := testbus.Connect(t, bustest.Server(t), "")
	err := b.Dues().Run(testbus.Context(t), 1, func(delivery.DueDelivery) {})
	if !errors.Is(err, natsio.ErrNoStream) {
		t.Errorf("got %v, want ErrNoStream", err)
	}
}

// A drained puller finishes the wakes that it has accepted, never more than it has
// slots. Another puller gets the rest at once, and not after a lease.
func TestDrainedDuePullerReturnsItsWakes(t *testing.T) {
	t.Parallel()
	c := newClock(t)
	release := make(chan struct{})
	_, stop := c.pull(func(d delivery.DueDelivery) { <-release; d.Ack() })
	const due, slots = 24, 16
	for n := range due {
		c.schedule(fmt.Sprintf("w%d", n+1), time.Now())
	}
	info := func() *jetstream.ConsumerInfo {
		consumer, err := c.js.Consumer(testbus.Context(t), "REFOLD_TIMERS", subjects.DueConsumer)
		bustest.OK(t, err)
		return consumer.CachedInfo()
	}
	bustest.Until(t, "all slots are taken", func() bool { return info().NumAckPending == slots })
	stopped := make(chan struct{})
	go func() {
		stop()
		close(stopped)
	}()
	bustest.Until(t, "it asks for nothing more", func() bool { return info().NumWaiting == 0 })
	close(release)
	testbus.Within(t, stopped)
	bustest.Until(t, "all that was delivered is acked", func() bool { return info().NumAckPending == 0 })
	left := info().NumPending
	if left == 0 || left > due-slots {
		t.Errorf("%d of %d are left, want some, and at most those for which there was no slot", left, due)
	}
	rest := make(chan delivery.DueDelivery, due)
	c.pull(func(d delivery.DueDelivery) { rest <- d; d.Ack() })
	for range left {
		testbus.Within(t, rest)
	}
	bustest.Until(t, "nothing is left", c.holds())
}
