package natsio_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// A message without the header is nobody else's, also if this process does not know its
// own log: programs that don't know the header work as before.
func TestMessagesNameTheirLog(t *testing.T) {
	t.Parallel()
	b := testbus.Connect(t, bustest.Server(t), "")
	for _, c := range []struct {
		own, header string
		want        bool
	}{
		{"", "", false}, {"", "B", false}, {"A", "", false}, {"A", "A", false}, {"A", "B", true},
	} {
		b.SetLogID(c.own)
		h := nats.Header{}
		if c.header != "" {
			h.Set(subjects.HeaderLog, c.header)
		}
		if got := b.IsForeign(h); got != c.want {
			t.Errorf("log %q, header %q: foreign %v, want %v", c.own, c.header, got, c.want)
		}
		if got := b.Stamp(nil).Get(subjects.HeaderLog); got != c.own {
			t.Errorf("log %q: stamped %q", c.own, got)
		}
	}
}

// Only a session-actor may publish its heartbeats, so nobody else keeps a daemon from
// starting; nor do messages that name many logs hide a system that is there.
func TestOnlySessionActorsRefuseAStart(t *testing.T) {
	t.Parallel()
	b := testbus.Connect(t, bustest.Server(t), "")
	b.SetLogID("A")
	foreign := func(subject, log string) *nats.Msg {
		m := nats.NewMsg(subject)
		m.Header.Set(subjects.HeaderLog, log)
		m.Header.Set(subjects.HeaderWhere, "server b\x1b[2J")
		return m
	}
	refused := make(chan error, 1)
	go func() { refused <- b.RefuseForeign(testbus.Context(t)) }()
	for i := range 100 {
		for _, subject := range []string{"refold.in.s1", "refold.alive.bridge.X"} {
			if !b.Ignores(foreign(subject, fmt.Sprint("forged", i))) {
				t.Errorf("%s: not ignored", subject)
			}
		}
	}
	if err := testbus.Within(t, refused); err != nil {
		t.Errorf("without a session-actor's heartbeat: %v", err)
	}
	go func() { refused <- b.RefuseForeign(testbus.Context(t)) }()
	var err error
	bustest.Until(t, "the start is refused", func() bool {
		b.Ignores(foreign("refold.alive.session-actor.X", "B"))
		select {
		case err = <-refused:
			return true
		default:
			return false
		}
	})
	var other *natsio.ForeignError
	if !errors.As(err, &other) || other.Log != "B" || other.Where != "server b?[2J" {
		t.Errorf("with it: %v", err)
	}
	if beats, others := b.ForeignMessages(); beats == 0 || others != 200 {
		t.Errorf("%d heartbeats and %d other messages were counted, want some and 200", beats, others)
	}
}

// Consumers of both systems have the same names, and an acknowledgement crosses a
// leafnode. It counts in its own domain only, and a heartbeat says where it may not.
func TestAcknowledgementsStayInTheirDomain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text    string
		named   bool // acknowledgements name their domain
		pending int  // deliveries at the leaf after the same one was acknowledged at the hub
	}{{"named", true, 1}, {"plain", false, 0}} {
		t.Run(c.text, func(t *testing.T) {
			t.Parallel()
			plain := func(o *server.Options) {
				if !c.named {
					o.FeatureFlags = nil
				}
			}
			hub := bustest.Server(t, bustest.Interval, bustest.Domain("hub"), plain)
			leaf := bustest.Server(t, bustest.Interval, bustest.Domain("leaf"), plain)
			bustest.Join(t, hub, leaf)
			at, there := deliveryOf(t, hub, "at-hub"), deliveryOf(t, leaf, "at-leaf")
			// Subjects cross in order, so the leaf has the acknowledgement before the mark.
			mark, err := there.NC.SubscribeSync("mark")
			bustest.OK(t, err)
			bustest.Until(t, "the hub knows the leaf's subscriptions", func() bool {
				bustest.OK(t, at.NC.Publish("mark", nil))
				_, err := mark.NextMsg(natsio.ReconnectWait)
				return err == nil
			})
			bustest.OK(t, at.msg.Ack())
			bustest.OK(t, at.NC.Publish("mark", []byte("last")))
			bustest.Until(t, "the mark", func() bool {
				m, err := mark.NextMsg(natsio.ReconnectWait)
				return err == nil && len(m.Data) > 0
			})
			bustest.Until(t, "deliveries are open at the leaf as they should", func() bool {
				info, err := there.consumer.Info(testbus.Context(t))
				return err == nil && info.NumAckPending == c.pending
			})
			at.Ignores(&nats.Msg{Subject: at.msg.Subject(), Reply: at.msg.Reply()})
			if got := !strings.Contains(at.WhereHeader(), "acknowledgements may count here"); got != c.named {
				t.Errorf("heartbeats say %q", at.WhereHeader())
			}
		})
	}
}

// delivery is a message of a consumer called c of the stream S, not acknowledged yet.
type delivery struct {
	*bus.Bus
	consumer jetstream.Consumer
	msg      jetstream.Msg
}

func deliveryOf(t *testing.T, node *bustest.Node, subject string) (d delivery) {
	t.Helper()
	ctx := testbus.Context(t)
	d.Bus = testbus.Connect(t, node, "")
	_, err := d.JS.CreateStream(ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{subject}})
	bustest.OK(t, err)
	d.consumer, err = d.JS.CreateConsumer(ctx, "S", jetstream.ConsumerConfig{Durable: "c", AckPolicy: jetstream.AckExplicitPolicy})
	bustest.OK(t, err)
	_, err = d.JS.Publish(ctx, subject, nil)
	bustest.OK(t, err)
	d.msg, err = d.consumer.Next()
	bustest.OK(t, err)
	return d
}
