package journal_test

import (
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/subjects"
)

// The oldest event of a lane is the first one that is not acknowledged, of any of its
// sessions.
func TestLanesAged(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	b := testbus.Provisioned(t, node)
	e := testbus.Env{T: t, Ctx: t.Context(), B: b, Names: b.Names()}
	lane := subjects.Lane(subjects.Partition("first"))
	var second string // another session of the lane, in another partition
	for n := 'a'; second == ""; n++ {
		if sid := string(n); subjects.Lane(subjects.Partition(sid)) == lane && subjects.Partition(sid) != subjects.Partition("first") {
			second = sid
		}
	}
	check := func(oldest uint64, undelivered uint64) {
		t.Helper()
		all, err := b.LanesAged(e.Ctx)
		if err != nil || len(all) != subjects.LanesDefault {
			t.Fatalf("got %d lanes (%v), want %d", len(all), err, subjects.LanesDefault)
		}
		for _, l := range all {
			want := l
			want.Undelivered, want.Unacked, want.Oldest = 0, 0, time.Time{}
			if l.Lane == lane && oldest > 0 {
				event, err := b.EventAt(e.Ctx, oldest)
				if err != nil {
					t.Fatal(err)
				}
				want.Undelivered, want.Oldest = undelivered, time.UnixMilli(event.Time)
			}
			if l != want {
				t.Errorf("got %+v, want %+v", l, want)
			}
		}
	}
	check(0, 0)
	seq := e.Publish(session.DoorIn, second, "x")
	for range 3 {
		e.Publish(session.DoorIn, "first", "x")
	}
	check(seq, 4)
}
