package journal_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/journal"
)

// erasing is a log of three sessions, ten events each, one after another.
func erasing(t *testing.T) testbus.Env {
	t.Helper()
	e := testbus.Env{T: t, B: testbus.Provisioned(t, bustest.Server(t)), Ctx: testbus.Context(t)}
	for i := range 30 {
		e.Publish(session.DoorIn, fmt.Sprint("s", i%3), "x")
	}
	return e
}

// TestLedgerExplainsHoles: an erasure that is under way explains what is deleted by now, one
// that is done all of it, and nothing explains another hole.
func TestLedgerExplainsHoles(t *testing.T) {
	t.Parallel()
	e := erasing(t)
	want := func(what string, missing uint64, holes ...journal.Hole) {
		t.Helper()
		if got, err := e.B.LogMissing(e.Ctx); err != nil || got != missing {
			t.Errorf("%s: %d are missing (%v), want %d", what, got, err, missing)
		}
		s, err := e.B.ReadAll(e.Ctx, 1, func(session.Event) error { return nil })
		if err != nil || !slices.Equal(s.Holes, holes) {
			t.Errorf("%s: holes %v (%v), want %v", what, s.Holes, err, holes)
		}
		counts := uint64(10)
		if missing > 0 {
			counts = 0
		}
		if got, err := e.B.CountEvents(e.Ctx, "s1", 29); err != nil || got != counts {
			t.Errorf("%s: %d events of another session count (%v), want %d", what, got, err, counts)
		}
	}
	erase := func(seqs ...uint64) {
		t.Helper()
		for _, seq := range seqs {
			bustest.OK(t, e.B.Erase(e.Ctx, "REFOLD_LOG", seq, false))
		}
	}
	entry := journal.Erasure{Session: "s0", Tombstone: 28, Ranges: [][2]uint64{{1, 1}, {4, 4}, {7, 7}, {10, 10}}, Left: 5}
	at, err := e.B.PutErasure(e.Ctx, entry, 0)
	bustest.OK(t, err)
	want("nothing is deleted yet", 0)
	erase(1, 4)
	want("two are deleted", 0)
	if got, err := e.B.CountEvents(e.Ctx, "s0", 28); err != nil || got != 0 {
		t.Errorf("%d events of the session at work count (%v), want 0", got, err)
	}
	erase(8)
	want("one of another session is lost", 1, journal.Hole{First: 8, Last: 8})
	erase(7, 10, 10)
	entry.Done = true
	at, err = e.B.PutErasure(e.Ctx, entry, at)
	bustest.OK(t, err)
	want("the erasure is done", 1, journal.Hole{First: 8, Last: 8})
	e.Publish(session.DoorIn, "s0", "late")
	next := journal.Erasure{Session: "s0", Tombstone: 28, Ranges: [][2]uint64{{13, 13}}, Left: 4, Before: 4}
	if _, err := e.B.PutErasure(e.Ctx, next, at-1); !errors.Is(err, journal.ErrOvertaken) {
		t.Errorf("an entry of another eraser: got %v, want ErrOvertaken", err)
	}
	_, err = e.B.PutErasure(e.Ctx, next, at)
	bustest.OK(t, err)
	erase(13)
	want("the next one is at work, and the session has a later event", 1, journal.Hole{First: 8, Last: 8})
}

// TestErasedSessionBeginsWithItsTombstone: once the ledger has the session, no read yields an
// event before the tombstone, whether it is deleted or not; a read that begins later, and
// finds the tombstone among its events, fails.
func TestErasedSessionBeginsWithItsTombstone(t *testing.T) {
	t.Parallel()
	e := erasing(t)
	tombstone := e.Publish(session.DoorWake, "s0", `{"type":"SessionTombstone","data":{}}`)
	read := func(from, to uint64) (seqs []uint64, err error) {
		for ev, err := range e.B.ReadSession(e.Ctx, "s0", from, to, true) {
			if err != nil {
				return seqs, err
			}
			seqs = append(seqs, ev.Seq)
		}
		return seqs, nil
	}
	if seqs, err := read(1, 0); err != nil || len(seqs) != 11 {
		t.Errorf("before the ledger has it: %v, %v, want 11 events", seqs, err)
	}
	_, err := e.B.PutErasure(e.Ctx, journal.Erasure{Session: "s0", Tombstone: tombstone, Ranges: [][2]uint64{{1, 1}}, Left: 9}, 0)
	bustest.OK(t, err)
	if seqs, err := read(1, 0); err != nil || !slices.Equal(seqs, []uint64{tombstone}) {
		t.Errorf("from the beginning: %v, %v, want the tombstone", seqs, err)
	}
	if seqs, err := read(1, 20); err != nil || len(seqs) != 0 {
		t.Errorf("up to 20: %v, %v, want none", seqs, err)
	}
	if seqs, err := read(5, 0); !errors.Is(err, journal.ErrErased) {
		t.Errorf("from 5 on: %v, %v, want ErrErased", seqs, err)
	}
	if seqs, err := read(tombstone, 0); err != nil || len(seqs) != 1 {
		t.Errorf("from the tombstone on: %v, %v", seqs, err)
	}
	all := 0
	s, err := e.B.ReadAll(e.Ctx, 1, func(ev session.Event) error {
		if ev.Session == "s0" {
			all++
		}
		return nil
	})
	if err != nil || all != 1 || len(s.Erased) != 0 {
		t.Errorf("the whole log: %d events of the session, %+v, %v, want one", all, s, err)
	}
}
