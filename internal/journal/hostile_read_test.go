package journal_test

// A client that may publish on refold.in.<sid> may write any headers, since NATS has no
// permissions for them. The server appends its own headers of a message (subject,
// sequence and time) to the publisher's. Every read of the log returns the event with its
// real subject, sequence and time, so that a replay equals the original fold.

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/natsio"
)

// forged has the server's headers of another message.
const forged = "Nats-Stream: REFOLD_LOG\r\nNats-Subject: refold.45.ctl.s1\r\nNats-Sequence: 1\r\n" +
	"Nats-Time-Stamp: 2001-01-01T00:00:00Z\r\nNats-Num-Pending: 0\r\nNats-Last-Sequence: 0\r\n"

// hostileHeaders returns header blocks that a publisher may send.
func hostileHeaders() map[string]string {
	hostile := map[string]string{
		"forged":             "NATS/1.0\r\n" + forged + "\r\n",
		"status":             "NATS/1.0 404 Message Not Found\r\n\r\n",
		"end of a batch":     "NATS/1.0 204 EOB\r\nNats-Num-Pending: 0\r\nNats-Last-Sequence: 1\r\n\r\n",
		"named status":       "NATS/1.0\r\nStatus: 404\r\nDescription: gone\r\n\r\n",
		"named conflict":     "NATS/1.0\r\nStatus: 409\r\nDescription: Consumer Deleted\r\n\r\n",
		"named control":      "NATS/1.0\r\nStatus: 100\r\n\r\n",
		"no colon":           "NATS/1.0\r\nno colon\r\n\r\n",
		"no header":          "nonsense\r\n\r\n",
		"ended early":        "NATS/1.0\r\n" + forged + "\r\nXX",
		"status ended early": "NATS/1.0 404 Message Not Found\r\n\r\nXX",
		"end ended early":    "NATS/1.0 204 EOB\r\nNats-Num-Pending: 0\r\nNats-Last-Sequence: 1\r\n\r\nXX",
		"never ended":        "NATS/1.0\r\nStatus: 404\r\nFoo: bar",
		"sequence, no end":   "NATS/1.0\r\n" + forged + "Foo: bar",
		"many":               "NATS/1.0\r\n" + strings.Repeat("Nats-Sequence: 1\r\n", 60) + "\r\n",
	}
	// An early end before which every line saves bytes that the reader counts, so
	// that they might make up for those that the end hides.
	for saved := range 70 {
		lines := strings.Repeat("A:b\n", saved)
		hostile[fmt.Sprintf("saves %d lines", saved)] = "NATS/1.0\n" + strings.ReplaceAll(strings.ReplaceAll(forged, ": ", ":"), "\r\n", "\n") + lines + "\nXX"
		hostile[fmt.Sprintf("status, saves %d lines", saved)] = "NATS/1.0404 Message Not Found\n" + lines + "\nXX"
	}
	return hostile
}

func TestHostileHeadersAreReadAsTheyAre(t *testing.T) {
	t.Parallel()
	s := newStoring(t, bustest.Server(t), natsio.DurabilityUnknown)
	var want []session.Event
	put := func(header, payload string) {
		testbus.PublishRaw(t, s.node, "refold.in.s1", header, payload)
		want = append(want, session.Event{Session: "s1", Door: session.DoorIn, Seq: uint64(len(want) + 1), Payload: []byte(payload)})
	}
	put("NATS/1.0\r\n\r\n", "first")
	for name, header := range hostileHeaders() {
		put(header, name)
		put("NATS/1.0\r\nNats-Msg-Id: "+name+"\r\n\r\n", "behind "+name)
	}
	ctx, last := testbus.Context(t), uint64(len(want))
	from := func(read func(seq uint64) iter.Seq2[session.Event, error]) func(*testing.T) {
		return func(t *testing.T) {
			t.Parallel()
			// From the beginning, and from each event on: it is the first, or behind the first, of an answer.
			for seq := uint64(1); seq <= last; seq += 1 + last/16 {
				sameEvents(t, read(seq), want[seq-1:])
			}
		}
	}
	t.Run("session", from(func(seq uint64) iter.Seq2[session.Event, error] { return s.b.ReadSession(ctx, "s1", seq, last, true) }))
	t.Run("replica", from(func(seq uint64) iter.Seq2[session.Event, error] { return s.b.ReadSession(ctx, "s1", seq, last, false) }))
	t.Run("next", from(func(seq uint64) iter.Seq2[session.Event, error] { return s.b.ReadNext(ctx, "s1", seq, last, last) }))
	t.Run("all", from(func(seq uint64) iter.Seq2[session.Event, error] { return readAll(ctx, s.b, seq) }))
	t.Run("at", from(func(seq uint64) iter.Seq2[session.Event, error] { return eventsAt(ctx, s.b, seq, last) }))
}

// TestFirstHostileEvent: the same holds for the first event of a session.
func TestFirstHostileEvent(t *testing.T) {
	t.Parallel()
	s := newStoring(t, bustest.Server(t), natsio.DurabilityUnknown)
	var sids []string
	for _, header := range hostileHeaders() {
		sid := fmt.Sprintf("s%d", len(sids)+1)
		sids = append(sids, sid)
		testbus.PublishRaw(t, s.node, "refold.in."+sid, header, "one")
	}
	got, err := s.b.FirstSeqs(testbus.Context(t), append(slices.Clone(sids), "none"))
	want := append(sequence(len(sids)), 0)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("first events: got %v and %v, want %v", got, err, want)
	}
}

func sequence(n int) (all []uint64) {
	for i := range n {
		all = append(all, uint64(i+1))
	}
	return all
}

func readAll(ctx context.Context, b *bus.Bus, seq uint64) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		var all []session.Event
		_, err := b.ReadAll(ctx, seq, func(e session.Event) error { all = append(all, e); return nil })
		for _, e := range all {
			if !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(session.Event{}, err)
		}
	}
}

func eventsAt(ctx context.Context, b *bus.Bus, seq, last uint64) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		all, err := b.EventsAt(ctx, sequence(int(last))[seq-1:])
		for _, e := range all {
			if !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(session.Event{}, err)
		}
	}
}

// sameEvents fails unless these events are read, with their session, door, sequence and
// payload, and a time of today.
func sameEvents(t *testing.T, read iter.Seq2[session.Event, error], want []session.Event) {
	t.Helper()
	n := 0
	for e, err := range read {
		if err != nil {
			t.Errorf("after %d of %d events: %v", n, len(want), err)
			return
		}
		if n == len(want) {
			t.Errorf("event %d is one too many", e.Seq)
			return
		}
		w := want[n]
		if e.Session != w.Session || e.Door != w.Door || e.Seq != w.Seq || string(e.Payload) != string(w.Payload) {
			t.Errorf("%q: got event %d of %s at the door %s (%q), want %d of %s at %s", w.Payload, e.Seq, e.Session, e.Door, e.Payload, w.Seq, w.Session, w.Door)
		}
		if at := time.UnixMilli(e.Time); time.Since(at).Abs() > time.Hour {
			t.Errorf("%q: it is said to be of %v", w.Payload, at)
		}
		n++
	}
	if n != len(want) {
		t.Errorf("read %d events, want %d", n, len(want))
	}
}
