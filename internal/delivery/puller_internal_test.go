package delivery

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/streams"
	"github.com/refold/refold/subjects"
)

// The answers of a puller, and when it treats its requests as lost. The server is real,
// but the test makes the deliveries.

// testPuller returns an attached puller, and a subscription of its answers.
func testPuller(t *testing.T, slots int, carry func(*EffectDelivery)) (l *puller, answers *nats.Subscription) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	node := bustest.Server(t)
	o := natsio.Options{URL: node.URL()}
	conn, err := natsio.Connect(ctx, o)
	bustest.OK(t, err)
	t.Cleanup(conn.Close)
	conf, err := streams.ParseConf(streams.File, conn.Names())
	bustest.OK(t, err)
	s, err := streams.New(ctx, conn, o)
	bustest.OK(t, err)
	bustest.OK(t, s.Provision(ctx, conf, 1))
	if answers, err = conn.NC.SubscribeSync("$JS.ACK.test.>"); err != nil {
		t.Fatal(err)
	}
	if l, err = New(conn, s).Effects(conf, session.ClassTool, "host").newPuller(ctx, slots, carry); err != nil {
		t.Fatal(err)
	}
	return l, answers
}

func effectMsg(effect, delivery string) *nats.Msg {
	return &nats.Msg{
		Subject: "refold.fx.tool.host.s1." + effect, Sub: &nats.Subscription{},
		Reply: "$JS.ACK.test.tool-host.1.7." + delivery + ".1700000000000000000.0",
	}
}

// answer returns the next answer and its delivery.
func answer(t *testing.T, answers *nats.Subscription) (delivery, body string) {
	t.Helper()
	m, err := answers.NextMsg(30 * time.Second)
	bustest.OK(t, err)
	m.Reply = m.Subject
	at, ok := natsio.ReadAckReply(m)
	if !ok {
		t.Fatal(m.Reply)
	}
	return string(rune('0' + at.ConsumerSeq)), string(m.Data)
}

// received receives from ch, and fails the test if that takes too long.
func received[T any](t *testing.T, ch <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-ch:
	case <-time.After(30 * time.Second):
		t.Fatal("nothing came")
	}
	return v
}

func TestPullerAnswersTheLatestDelivery(t *testing.T) {
	t.Parallel()
	got, gate := make(chan *EffectDelivery), make(chan struct{})
	l, answers := testPuller(t, 1, func(d *EffectDelivery) {
		got <- d
		<-gate
	})
	want := func(delivery, body string) {
		t.Helper()
		if d, b := answer(t, answers); d != delivery || b != body {
			t.Fatalf("got %q to delivery %s, want %q to %s", b, d, body, delivery)
		}
	}
	l.receive(effectMsg("r1t1c0", "1"))
	d := received(t, got)
	l.of.extend()
	want("1", "+WPI")
	// It came again: the lease that counts is the new one's.
	l.receive(effectMsg("r1t1c0", "2"))
	want("2", "+WPI")
	l.of.extend()
	want("2", "+WPI")
	// No slot is free.
	l.receive(effectMsg("r1t1c1", "3"))
	want("3", `-NAK {"delay":0}`)
	// An answer stands; extending would undo the delay.
	d.Nak(time.Second)
	want("2", `-NAK {"delay":1000000000}`)
	d.held.extend()
	l.of.extend()
	l.receive(effectMsg("r1t1c0", "4"))
	want("4", `-NAK {"delay":1000000000}`)
	d.Ack()
	want("4", "+ACK")
	close(gate)
	received(t, l.freed)
	// Nothing is carried any more, and nothing new is begun.
	l.draining = true
	l.receive(effectMsg("r1t1c2", "5"))
	want("5", `-NAK {"delay":0}`)
}

func TestPullerNoticesLoss(t *testing.T) {
	t.Parallel()
	l, _ := testPuller(t, 2, nil)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	attached := func(what string, want bool, change func()) {
		t.Helper()
		l.asked = 2
		change()
		was, asked := l.inbox, l.asked
		l.attached = true
		if l.check(ctx, time.Now()); !l.attached {
			t.Fatalf("%s: not attached", what)
		}
		if got := l.inbox != was; got != want {
			t.Errorf("%s: attached anew %t, want %t", what, got, want)
		}
		if got := l.asked != asked; got != want {
			t.Errorf("%s: requests void %t, want %t", what, got, want)
		}
	}
	attached("nothing", false, func() {})
	attached("a reconnect", true, func() { l.incarnation++ })
	attached("silence", true, func() { l.heard = l.heard.Add(-time.Minute) })
	attached("silence, with a word unread", false, func() {
		l.heard = l.heard.Add(-time.Minute)
		l.arrived <- &nats.Msg{}
	})
	<-l.arrived
	attached("silence while nothing is asked", false, func() { l.asked = 0; l.heard = l.heard.Add(-time.Minute) })
}

func TestPullerHandlesStatuses(t *testing.T) {
	t.Parallel()
	l, _ := testPuller(t, 8, nil)
	for _, test := range []struct {
		code, left string
		asked      int
		want       bool
	}{
		{"100", "", 5, true},
		{"408", "3", 2, true},
		{"408", "9", 0, true},
		{"409", "", 5, false},
		{"503", "", 5, false},
	} {
		l.asked, l.attached = 5, true
		l.receive(&nats.Msg{Subject: natsio.ReplySubject(l.prefix, 1), Header: nats.Header{
			subjects.HeaderStatus: {test.code}, headerPendingMsgs: {test.left},
		}})
		if l.attached != test.want || l.asked != test.asked {
			t.Errorf("%s: got attached %t, %d asked, want %t, %d", test.code, l.attached, l.asked, test.want, test.asked)
		}
	}
}

// A free slot is not worth a request while open requests cover half of the slots.
func TestPullerRequestsWhenHalfIsUsed(t *testing.T) {
	t.Parallel()
	l, _ := testPuller(t, 8, nil)
	for _, test := range []struct{ held, asked, want int }{
		{0, 0, 8}, {0, 3, 8}, {0, 4, 4}, {0, 7, 7}, {5, 1, 3}, {5, 2, 2}, {7, 0, 1}, {8, 0, 0},
	} {
		l.held.Store(int64(test.held))
		l.asked = test.asked
		if l.fill(); l.asked != test.want {
			t.Errorf("%d held, %d asked for: got %d asked for, want %d", test.held, test.asked, l.asked, test.want)
		}
	}
}

// A free slot wakes the puller only if it would request more. While the puller drains,
// every slot does.
func TestFreedSlotWakesThePullerWhenNeeded(t *testing.T) {
	t.Parallel()
	l := &puller{slots: 6, asked: 2, attached: true, freed: make(chan struct{}, 1)}
	l.held.Store(4)
	l.fill() // no slot is free that is not asked for
	for i, want := range []bool{false, false, true, true} {
		l.ended()
		if got := len(l.freed) == 1; got != want {
			t.Errorf("with %d held, %d asked for, of %d: got told %t, want %t", 3-i, l.asked, l.slots, got, want)
		}
		select {
		case <-l.freed:
		default:
		}
	}
}

// A running effect uses only the token of a redelivery with the same bytes. Another
// effect of its name is carried out and answered separately.
func TestPullerDistinguishesEffectsOfOneName(t *testing.T) {
	t.Parallel()
	got, gate := make(chan *EffectDelivery), make(chan struct{})
	l, answers := testPuller(t, 2, func(d *EffectDelivery) {
		got <- d
		<-gate
	})
	l.receive(effectMsg("r1t1c0", "1"))
	former := received(t, got)
	m := effectMsg("r1t1c0", "2")
	m.Data = []byte("other bytes")
	l.receive(m)
	latter := received(t, got)
	for i, d := range []*EffectDelivery{former, latter} {
		d.Ack()
		if delivery, body := answer(t, answers); delivery != strconv.Itoa(i+1) || body != "+ACK" {
			t.Errorf("got %q to delivery %s, want an ack of %d", body, delivery, i+1)
		}
	}
	close(gate)
	for l.held.Load() > 0 {
		received(t, l.freed)
	}
	if latter.Done(); l.held.Load() != 0 { // a second Done changes nothing
		t.Errorf("%d are held, want none", l.held.Load())
	}
	l.incarnation++ // what another connection brought is answered no more
	l.receive(effectMsg("r1t1c1", "3"))
	received(t, got).Ack()
	l.incarnation--
	l.receive(effectMsg("r1t1c2", "4"))
	received(t, got).Ack()
	if delivery, _ := answer(t, answers); delivery != "4" {
		t.Errorf("delivery %s is answered, want 4 alone", delivery)
	}
}
