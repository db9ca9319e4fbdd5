package bus_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/subjects"
)

// waitingContract: a session is listed while its latest snapshot was put as
// waiting, with the latest due, whatever else the bucket holds.
func waitingContract(t *testing.T, e env) {
	put := func(sid string, due int64, data []byte) {
		t.Helper()
		var err error
		if due == 0 {
			err = e.b.PutSnapshot(e.ctx, sid, 1, data)
		} else {
			err = e.b.PutWaiting(e.ctx, sid, 1, data, due)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	mine := []string{"waits", "waits-large", "waits-no-more", "waits-not"}
	list := func(from uint64) (all []bus.Waiting) {
		t.Helper()
		for w, err := range e.b.ListWaiting(e.ctx, from) {
			if err != nil {
				t.Fatal(err)
			}
			if slices.Contains(mine, w.Session) {
				all = append(all, w)
			}
		}
		return all
	}
	small, large := []byte("\x81\xa1a\x01"), bytes.Repeat([]byte("l"), 1<<20)
	put("waits-not", 0, small)
	put("waits-no-more", 5, small)
	put("waits", 6, small)
	put("waits", 7, small)
	put("waits-large", 1<<60, large)
	put("waits-no-more", 0, small)
	var got []bus.Waiting
	bustest.Until(t, "the snapshots are listed", func() bool {
		got = list(0)
		return len(got) == 2 && got[1].Session == "waits-large"
	})
	if fmt.Sprint(got[0].Session, got[0].Due, got[1].Due) != fmt.Sprint("waits", 7, 1<<60) || got[0].Seq >= got[1].Seq {
		t.Errorf("waiting: got %v, want waits due at 7, then waits-large due at %d", got, 1<<60)
	}
	if rest := list(got[0].Seq + 1); len(rest) != 1 || rest[0] != got[1] {
		t.Errorf("from behind the first on: got %v, want %v", rest, got[1])
	}
	if none := list(got[1].Seq + 1<<20); len(none) != 0 {
		t.Errorf("from behind the end on: got %v", none)
	}
	due := map[string]int64{}
	for w, err := range e.b.ListSnapshots(e.ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		due[w.Session] = w.Due
	}
	for sid, want := range map[string]int64{"waits": 7, "waits-large": 1 << 60, "waits-no-more": 0, "waits-not": 0} {
		if got, listed := due[sid]; !listed || got != want {
			t.Errorf("snapshots: %s is due at %d (%v), want %d", sid, got, listed, want)
		}
	}
	if data, found, err := e.b.GetSnapshot(e.ctx, "waits"); err != nil || !found || !bytes.Equal(data, small) {
		t.Errorf("snapshot: got %q %v %v, want %q", data, found, err, small)
	}
	if kept, err := e.b.EffectsKept(e.ctx); err != nil || kept != time.Hour {
		t.Errorf("effects: kept for %v (%v), want as streams.conf says", kept, err)
	}
}

// TestWaitingWithoutABucket: what is not there is said.
func TestWaitingWithoutABucket(t *testing.T) {
	t.Parallel()
	b := connect(t, bustest.Server(t), "")
	for _, err := range b.ListWaiting(testContext(t), 0) {
		if !errors.Is(err, bus.ErrNoStream) {
			t.Errorf("got %v, want ErrNoStream", err)
		}
	}
	if _, err := b.EffectsKept(testContext(t)); !errors.Is(err, bus.ErrNoStream) {
		t.Errorf("effects: got %v, want ErrNoStream", err)
	}
}

// laneHeads: of each event of a lane that is not older than a time, where it
// stands and whose it is.
func laneHeads(t *testing.T, e env) {
	heads := func(since time.Time) (all []bus.Head) {
		t.Helper()
		for lane := range subjects.LanesDefault {
			for h, err := range e.b.LaneHeads(e.ctx, lane, subjects.LanesDefault, since) {
				if err != nil {
					t.Fatal(err)
				}
				if subjects.Lane(subjects.Partition(h.Session)) != lane {
					t.Errorf("lane %d has an event of %s", lane, h.Session)
				}
				if strings.HasPrefix(h.Session, "heads-") {
					all = append(all, h)
				}
			}
		}
		slices.SortFunc(all, func(a, b bus.Head) int { return cmp.Compare(a.Seq, b.Seq) })
		return all
	}
	var want []bus.Head
	for _, sid := range []string{"heads-a", "heads-b", "heads-a", "heads-c"} {
		seq, err := e.b.Publish(e.ctx, session.DoorIn, sid, []byte(`{"type":"Nothing"}`), "")
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, bus.Head{Session: sid, Seq: seq})
	}
	bustest.Until(t, "the heads are "+fmt.Sprint(want), func() bool {
		return slices.Equal(heads(time.Now().Add(-time.Hour)), want)
	})
	third, err := e.b.EventAt(e.ctx, want[2].Seq)
	if err != nil {
		t.Fatal(err)
	}
	if got := heads(time.UnixMilli(third.Time + 1)); len(got) > 1 || len(got) == 1 && got[0] != want[3] {
		t.Errorf("since the third: got %v, want the last at most", got)
	}
	if got := heads(time.Now().Add(time.Hour)); len(got) != 0 {
		t.Errorf("since later than now: got %v", got)
	}
}
