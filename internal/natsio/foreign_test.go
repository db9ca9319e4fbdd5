package natsio_test

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go"

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

// Only a session-actor may publish its heartbeats, so no client keeps one from starting.
func TestOnlyHeartbeatsRefuseAStart(t *testing.T) {
	t.Parallel()
	b := testbus.Connect(t, bustest.Server(t), "")
	b.SetLogID("A")
	foreign := func(subject string) *nats.Msg {
		m := nats.NewMsg(subject)
		m.Header.Set(subjects.HeaderLog, "B")
		m.Header.Set(subjects.HeaderWhere, "server b\x1b[2J")
		return m
	}
	refused := make(chan error, 1)
	go func() { refused <- b.RefuseForeign(testbus.Context(t), subjects.KindSessionActor) }()
	for _, subject := range []string{"refold.in.s1", "refold.alive.bridge.X"} {
		if !b.Ignores(foreign(subject)) {
			t.Errorf("%s: not ignored", subject)
		}
	}
	if err := testbus.Within(t, refused); err != nil {
		t.Errorf("without a session-actor's heartbeat: %v", err)
	}
	go func() { refused <- b.RefuseForeign(testbus.Context(t), subjects.KindSessionActor) }()
	var err error
	bustest.Until(t, "the start is refused", func() bool {
		b.Ignores(foreign("refold.alive.session-actor.X"))
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
}
