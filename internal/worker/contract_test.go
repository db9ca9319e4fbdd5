package worker

// The promises of wire.go, tested on the Transport in memory and on NATS.

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

func TestTransportKeepsItsPromises(t *testing.T) {
	t.Parallel()
	t.Run("world", func(t *testing.T) {
		t.Parallel()
		w := newWorld()
		checkWire(t, w, func(instance string) { w.beat(instance, true) })
	})
	t.Run("nats", func(t *testing.T) {
		t.Parallel()
		w := newNatsWire(t, bustest.Server(t))
		if _, _, err := w.Claim(t.Context(), turnClaim("r9t9", 1), []byte("nobody can read this")); err != nil {
			t.Fatal(err)
		}
		name := turnClaim("r9t9", 1)
		if stands, won, err := w.BeginClaim(t.Context(), name, Claim{By: "A"})(); err != nil || won || stands.By != unknownHolder || stands.Withdrawn {
			t.Errorf("a claim that can't be read: got %+v, %v, %v", stands, won, err)
		}
		checkWire(t, w, func(instance string) {
			go func() {
				if err := w.Heartbeat(t.Context(), subjects.KindBridge, instance, func() []byte { return nil }); err != nil {
					t.Error(err)
				}
			}()
		})
	})
}

// newNatsWire returns the wire of a real bridge, and all streams.
func newNatsWire(t testing.TB, server *bustest.Node) *NATS {
	t.Helper()
	nc := testbus.Provisioned(t, server)
	members, err := nc.TrackMembers(t.Context(), subjects.KindBridge)
	if err != nil {
		t.Fatal(err)
	}
	w := NewNATS(nc)
	w.Members = members
	return w
}

func checkWire(t *testing.T, w Transport, beat func(instance string)) {
	ctx := t.Context()
	checkClaims(t, w)
	checkLog(t, w)

	content := []byte("some content")
	if _, err := w.Blob(ctx, codec.RefOf(content)); !errors.Is(err, natsio.ErrNotFound) {
		t.Errorf("a blob that is not there: got %v", err)
	}
	for range 2 {
		ref, err := w.PutBlob(ctx, content)
		if err != nil || ref != codec.RefOf(content) {
			t.Errorf("put: got %v, %v", ref, err)
		}
	}
	if got, err := w.Blob(ctx, codec.RefOf(content)); err != nil || string(got) != string(content) {
		t.Errorf("get: got %q, %v", got, err)
	}

	if _, err := w.View(ctx, "s1"); !errors.Is(err, natsio.ErrNoView) {
		t.Errorf("a view that nobody answers: got %v", err)
	}
	if err := w.Live("s1", []byte(`{}`)); err != nil {
		t.Errorf("live: %v", err)
	}
	if _, ok := w.Heard("A1"); ok {
		t.Error("heard who never said anything")
	}
	before := time.Now().Add(-time.Second)
	beat("A1")
	bustest.Until(t, "A1 is heard", func() bool {
		at, ok := w.Heard("A1")
		return ok && at.After(before)
	})
}

func checkClaims(t *testing.T, w Transport) {
	t.Helper()
	name := turnClaim
	for _, c := range []struct {
		name   subjects.ClaimName
		claim  Claim
		stands Claim
		won    bool
	}{
		{name("r1t1", 1), Claim{By: "A"}, Claim{By: "A"}, true},
		{name("r1t1", 1), Claim{By: "A"}, Claim{By: "A"}, true},
		{name("r1t1", 1), Claim{By: "B"}, Claim{By: "A"}, false},
		{name("r1t1", 1), Claim{Withdrawn: true}, Claim{By: "A"}, false},
		{name("r1t1", 2), Claim{By: "B"}, Claim{By: "B"}, true},
		{name("r1t2", 1), Claim{Withdrawn: true}, Claim{Withdrawn: true}, true},
		{name("r1t2", 1), Claim{By: "A"}, Claim{Withdrawn: true}, false},
	} {
		first := w.BeginClaim(t.Context(), c.name, c.claim)
		for i, claims := range []func() (Claim, bool, error){
			first, w.BeginClaim(t.Context(), c.name, c.claim),
		} {
			stands, won, err := claims()
			if err != nil || stands != c.stands || won != c.won {
				t.Errorf("%v says %+v, the time %d: got %+v, %v, %v; want %+v, %v", c.name, c.claim, i, stands, won, err, c.stands, c.won)
			}
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := w.BeginClaim(ended, name("r1t4", 1), Claim{By: "A"})(); !errors.Is(err, journal.ErrUnknownOutcome) {
		t.Errorf("begun with an ended context: got %v", err)
	}
}

func checkLog(t *testing.T, w Transport) {
	t.Helper()
	ctx := t.Context()
	one, two := event(t, "One", struct{}{}), event(t, "Two", struct{}{})
	if _, err := w.LastModelEvent(ctx, "s1"); !errors.Is(err, natsio.ErrNotFound) {
		t.Errorf("no model event yet: got %v", err)
	}
	for _, c := range []struct {
		door    session.Door
		sid, id string
		payload []byte
		seq     uint64
		want    error
	}{
		{session.DoorLLM, "s1", "a", one, 1, nil},
		{session.DoorLLM, "s1", "a", one, 1, nil}, // the same again
		{session.DoorLLM, "s1", "a", two, 0, journal.ErrIDTaken},
		{session.DoorLLM, "s2", "a", one, 2, nil}, // of another session
		{session.DoorLLM, "s1", "b", two, 3, nil},
		{session.DoorTool, "s1", "c", one, 4, nil},
	} {
		if seq, err := w.Publish(ctx, c.door, c.sid, c.id, c.payload); seq != c.seq || !errors.Is(err, c.want) {
			t.Errorf("publish %s to %s of %s: got %d, %v, want %d, %v", c.id, c.door, c.sid, seq, err, c.seq, c.want)
		}
	}
	var large *natsio.MaxPayloadError
	if _, err := w.Publish(ctx, session.DoorLLM, "s1", "e", make([]byte, session.EventBytesMax+1)); !errors.As(err, &large) {
		t.Errorf("publish too much: got %v", err)
	}
	last, err := w.LastModelEvent(ctx, "s1")
	if err != nil || last.Seq != 3 || string(last.Payload) != string(two) || last.Session != "s1" || last.Door != session.DoorLLM {
		t.Errorf("last model event: got %+v, %v", last, err)
	}
	events, err := w.Events(ctx, "s1", []uint64{4, 1, 4})
	if err != nil || len(events) != 3 || events[0].Seq != 4 || events[1].Seq != 1 || string(events[1].Payload) != string(one) || events[2].Seq != 4 {
		t.Errorf("events: got %+v, %v", events, err)
	}
	for _, seqs := range [][]uint64{{1, 99}, {2}, {0}} { // not there; another session's; never there
		if _, err := w.Events(ctx, "s1", seqs); !errors.Is(err, natsio.ErrNotFound) {
			t.Errorf("events %v: got %v", seqs, err)
		}
	}
}
