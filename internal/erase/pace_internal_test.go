package erase

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/subjects"
)

// idle is a store that answers at once: a session with a tombstone at 9, whose events take
// some time to delete.
type idle struct {
	names    subjects.Names
	takes    time.Duration
	backlogs []uint64 // of the lanes, one after another; then 0
	deleted  []uint64
	ledger   []journal.Erasure
	erased   uint64 // the tombstone; 0: there is none
}

func (s *idle) Names() subjects.Names { return s.names }
func (s *idle) LastErasure(context.Context) (journal.Erasure, uint64, error) {
	if n := len(s.ledger); n > 0 {
		return s.ledger[n-1], uint64(n), nil
	}
	return journal.Erasure{}, 0, nil
}

func (s *idle) PutErasure(_ context.Context, e journal.Erasure, after uint64) (uint64, error) {
	if after != uint64(len(s.ledger)) {
		return 0, journal.ErrOvertaken
	}
	s.ledger = append(s.ledger, e)
	return after + 1, nil
}
func (s *idle) TombstoneOf(context.Context, string) (uint64, error) { return s.erased, nil }
func (s *idle) EventSeqs(context.Context, string, uint64) ([]uint64, error) {
	return []uint64{1, 2, 5}, nil
}
func (s *idle) TextOf(context.Context, string) (notices, dead []uint64, err error) {
	return nil, nil, nil
}
func (s *idle) EffectsOf(context.Context, string) (uint64, error) { return 0, nil }
func (s *idle) EraseSnapshot(context.Context, string) error       { return nil }
func (s *idle) RewriteSnapshots(context.Context) (int, error)     { return 0, nil }
func (s *idle) Erase(_ context.Context, _ string, seq uint64, _ bool) error {
	for begun := time.Now(); time.Since(begun) < s.takes; {
	}
	s.deleted = append(s.deleted, seq)
	return nil
}

func (s *idle) LaneBacklog(context.Context) (n uint64, err error) {
	if len(s.backlogs) > 0 {
		n, s.backlogs = s.backlogs[0], s.backlogs[1:]
	}
	return n, nil
}

// slept is an eraser that does not wait, and what it would have waited.
func slept(t *testing.T, s *idle, o Options) (*Eraser, *[]time.Duration) {
	t.Helper()
	var err error
	if s.names, err = subjects.New("refold"); err != nil {
		t.Fatal(err)
	}
	e, waits := New(s, o), &[]time.Duration{}
	e.sleep = func(_ context.Context, d time.Duration) error {
		*waits = append(*waits, d)
		return nil
	}
	return e, waits
}

// TestDeletesTakeTheirShare: after a delete the eraser waits 19 times as long as it took, by
// default, and as the caller's share says otherwise.
func TestDeletesTakeTheirShare(t *testing.T) {
	t.Parallel()
	for times, o := range map[float64]Options{19: {}, 1: {Share: 0.5}, 3: {Plain: true}} {
		s := &idle{erased: 9, takes: time.Millisecond}
		e, waits := slept(t, s, o)
		if c, err := e.Session(t.Context(), "s1", 0); err != nil || c.Events != 3 || !slices.Equal(s.deleted, []uint64{1, 2, 5}) {
			t.Fatalf("deleted %v (%+v, %v), want 1, 2 and 5", s.deleted, c, err)
		}
		for _, d := range *waits {
			if d.Seconds() < 0.99*times*s.takes.Seconds() {
				t.Errorf("%+v: it waits %v after a delete of at least %v, want %v times as long", o, d, s.takes, times)
			}
		}
		if len(*waits) != 3 {
			t.Errorf("%+v: it waits %d times, want after each of 3 deletes", o, len(*waits))
		}
	}
}

// TestEraserPausesForLanes: it deletes nothing while a lane has too much to deliver.
func TestEraserPausesForLanes(t *testing.T) {
	t.Parallel()
	s := &idle{erased: 9, backlogs: []uint64{backlogMax + 1, 2 * backlogMax, backlogMax}}
	e, waits := slept(t, s, Options{Share: 1})
	if _, err := e.Session(t.Context(), "s1", 0); err != nil {
		t.Fatal(err)
	}
	if want := []time.Duration{backlogEvery, backlogEvery}; len(*waits) < 2 || !slices.Equal((*waits)[:2], want) {
		t.Errorf("it waits %v, want first %v", *waits, want)
	}
}

// TestEraserNeedsATombstone: without one nothing is deleted, and the error says what to do.
func TestEraserNeedsATombstone(t *testing.T) {
	t.Parallel()
	s := &idle{}
	e, _ := slept(t, s, Options{})
	if _, err := e.Session(t.Context(), "s1", 0); !errors.Is(err, ErrNoTombstone) || len(s.deleted)+len(s.ledger) > 0 {
		t.Errorf("got %v, deleted %v, entered %v: want ErrNoTombstone and nothing", err, s.deleted, s.ledger)
	}
	s.erased = 9
	if _, err := e.Session(t.Context(), "s1", 9); !errors.Is(err, ErrNoTombstone) {
		t.Errorf("with an old tombstone alone: got %v, want ErrNoTombstone", err)
	}
}

// TestRanges: sequences become ranges, at most so many.
func TestRanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit int
		want  [][2]uint64
		n     int
	}{{9, [][2]uint64{{1, 3}, {5, 5}, {7, 8}}, 6}, {2, [][2]uint64{{1, 3}, {5, 5}}, 4}} {
		if got, n := rangesOf([]uint64{1, 2, 3, 5, 7, 8}, c.limit); !slices.Equal(got, c.want) || n != c.n {
			t.Errorf("at most %d: got %v of %d, want %v of %d", c.limit, got, n, c.want, c.n)
		}
	}
}
