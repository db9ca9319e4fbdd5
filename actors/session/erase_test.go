package session_test

// An erased session: whatever it was, nothing is left but its head, and a tombstone as its
// first event leaves the same.

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// tombstoneEvent is the tombstone of a state, stored at a sequence.
func tombstoneEvent(t testing.TB, s *session.State, seq uint64, at int64) session.Event {
	t.Helper()
	body, due := s.Tombstone()
	if !due {
		t.Fatalf("at %d no tombstone is due", s.Seq)
	}
	payload, err := session.Envelope{Type: session.TypeSessionTombstone}.With(body)
	if err != nil {
		t.Fatal(err)
	}
	return session.Event{Session: s.Session, Door: session.DoorWake, Seq: seq, Time: at, Payload: payload}
}

// TestSessionIsErasedInEveryState erases a session in every lifecycle, and tries whatever
// clients request afterwards.
func TestSessionIsErasedInEveryState(t *testing.T) {
	t.Parallel()
	install := askInstall(t)
	for _, from := range stands {
		t.Run(from.name, func(t *testing.T) {
			t.Parallel()
			w := toldUnder(t, install)
			from.reach(w)
			open := w.state.Open()
			w.must(w.tell(session.DoorCtl, session.TypeSessionErased, map[string]any{"reason": "asked"}))
			if v := w.state.View(); v.Status != "erased" || v.Run != nil || v.Queue != nil || v.Open != nil || len(v.Transcript) > 0 {
				t.Fatalf("erased: the view is %+v", v)
			}
			for _, e := range open {
				if !slices.ContainsFunc(w.state.Withdrawals(), func(x session.Withdrawal) bool { return x.Name == e.Name }) {
					t.Errorf("%s was open and is not withdrawn", e.Name)
				}
			}
			for _, r := range wishes {
				if r.kind == "decide" {
					continue
				}
				_, err := w.tell(session.DoorCtl, r.typ, map[string]any{"input": text("late")})
				if !errors.Is(err, session.RejectSessionErased) {
					t.Errorf("%s: got %v, want session_erased", r.name, err)
				}
			}
		})
	}
}

// TestTombstoneIsTheHead: what a history leaves, erased, is what its tombstone leaves
// alone, with all that came later, and no text of it is in the state or in a notice.
func TestTombstoneIsTheHead(t *testing.T) {
	t.Parallel()
	install := builtin(t)
	rapid.Check(t, func(rt *rapid.T) {
		l := newLaws(rt, install, builtinTools())
		for range rapid.IntRange(0, 30).Draw(rt, "events") {
			l.fold(l.draw())
		}
		s, seq := l.state, uint64(1000)
		next := func(door session.Door, payload string) session.Event {
			seq += 3
			return session.Event{Session: "s1", Door: door, Seq: seq, Time: l.time, Payload: []byte(payload)}
		}
		if _, err := s.Evolve(next(session.DoorCtl, `{"type":"SessionErased","id":"marker"}`)); err != nil && !errors.Is(err, session.RejectSessionErased) {
			rt.Fatal(err)
		}
		late := rapid.IntRange(0, 2).Draw(rt, "before the tombstone")
		for range late {
			_, _ = s.Evolve(next(session.DoorIn, `{"type":"marker"}`))
		}
		e := tombstoneEvent(t, s, seq+1, l.time)
		seq++
		if _, err := s.Evolve(e); err != nil {
			rt.Fatalf("the tombstone: %v", err)
		}
		alone := session.New(install, "s1")
		if _, err := alone.Evolve(e); err != nil {
			rt.Fatalf("the tombstone alone: %v", err)
		}
		for _, payload := range []string{`{"type":"RunRequested","data":{"input":{"text":"marker"}}}`, `marker`, `{"type":"marker"}`, `{"type":"SessionErased"}`} {
			e := next(session.DoorCtl, payload)
			want, rejected := s.Evolve(e)
			got, alsoRejected := alone.Evolve(e)
			if !errors.Is(rejected, session.RejectSessionErased) || !errors.Is(alsoRejected, rejected) {
				rt.Fatalf("%s: %v and %v, want session_erased", payload, rejected, alsoRejected)
			}
			if len(want) != 1 || len(got) != 1 || !bytes.Equal(want[0].JSON(), got[0].JSON()) || bytes.Contains(got[0].JSON(), []byte("marker")) {
				rt.Fatalf("%s: %d notices, want %d: %s", payload, len(got), len(want), got[0].JSON())
			}
		}
		for _, state := range []*session.State{s, alone} {
			if err := state.Check(); err != nil {
				rt.Fatal(err)
			}
			if !bytes.Equal(state.Bytes(), s.Bytes()) || strings.Contains(string(state.Bytes()), "marker") {
				rt.Fatalf("the tombstone alone leaves another state")
			}
			snap, err := session.ParseSnapshot(state.Snapshot().Bytes())
			if err != nil {
				rt.Fatal(err)
			}
			if restored, err := session.Restore(snap, l.source()); err != nil || restored.Hash() != s.Hash() {
				rt.Fatalf("the snapshot of an erased session: %v", err)
			}
		}
	})
}

// TestTombstoneUnderAnotherRecord: after the deletion, the newest record before the
// tombstone may be another than the session pinned.
func TestTombstoneUnderAnotherRecord(t *testing.T) {
	t.Parallel()
	w := newTold(t)
	w.must(w.tell(session.DoorCtl, session.TypeSessionErased, map[string]any{}))
	e := tombstoneEvent(t, w.state, 99, 2_000_000)
	alone := session.New(askInstall(t), w.state.Session)
	_, err := w.state.Evolve(e)
	_, errAlone := alone.Evolve(e)
	if err != nil || errAlone != nil || alone.Check() != nil || !bytes.Equal(alone.Bytes(), w.state.Bytes()) {
		t.Fatalf("got %v, %v, %v, want the same state", err, errAlone, alone.Check())
	}
}

// TestForgedTombstones: a tombstone that is not the head's changes nothing.
func TestForgedTombstones(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*session.SessionTombstone)
		erased bool
		want   session.Rejection
	}{
		"of a live session": {func(*session.SessionTombstone) {}, false, session.RejectIllegalTransition},
		"of another chain":  {func(b *session.SessionTombstone) { b.Chain = codec.Digest(nil).String() }, true, session.RejectStale},
		"of another leaf":   {func(b *session.SessionTombstone) { b.Leaf = codec.Digest(nil).String() }, true, session.RejectStale},
		"of another count":  {func(b *session.SessionTombstone) { b.Count++ }, true, session.RejectStale},
		"of another record": {func(b *session.SessionTombstone) { b.Install = codec.Digest(nil).String() }, true, session.RejectStale},
		"of no event":       {func(b *session.SessionTombstone) { b.Seq = 0 }, true, session.RejectInvalidData},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTold(t)
			w.must(w.tell(session.DoorCtl, session.TypeFactsSet, map[string]any{"facts": map[string]any{"a": "b"}}))
			if c.erased {
				w.must(w.tell(session.DoorCtl, session.TypeSessionErased, map[string]any{}))
			}
			body, _ := w.state.Tombstone()
			c.change(&body)
			payload, err := session.Envelope{Type: session.TypeSessionTombstone}.With(body)
			if err != nil {
				t.Fatal(err)
			}
			_, err = w.state.Evolve(session.Event{Session: w.state.Session, Door: session.DoorWake, Seq: w.state.Seq + 1, Time: w.state.Clock, Payload: payload})
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if err := w.state.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTombstoneOfTheFuture: as a first event it is no head if it names a later event.
func TestTombstoneOfTheFuture(t *testing.T) {
	t.Parallel()
	w := newTold(t)
	w.must(w.tell(session.DoorCtl, session.TypeSessionErased, map[string]any{}))
	e := tombstoneEvent(t, w.state, w.state.Seq, 2_000_000)
	alone := session.New(builtin(t), w.state.Session)
	if _, err := alone.Evolve(e); !errors.Is(err, session.RejectIllegalTransition) || alone.Count != 1 || alone.IsErased() {
		t.Fatalf("got %v after %d events, erased %v", err, alone.Count, alone.IsErased())
	}
}
