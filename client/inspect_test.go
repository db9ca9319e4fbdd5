package client_test

// What: what pages about sessions and about the system read besides a session's events.
// How: a real server, with a host; the test plays the bridge.

import (
	"slices"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/subjects"
)

// TestRestoreIsTheFold: a snapshot of any event is folded on to the state of the whole
// history.
func TestRestoreIsTheFold(t *testing.T) {
	t.Parallel()
	w := newWorld(t).host()
	w.ask("s1", "hi")
	w.answer("s1", 1, "hello")
	w.ask("s1", "again")
	w.answer("s1", 2, "hello again")
	var snapshots []session.Snapshot
	whole, err := w.Replay(w.ctx, "s1", 0, func(_ session.Event, _ []session.Notice, s *session.State) {
		snapshots = append(snapshots, s.Snapshot())
	})
	if err != nil || len(snapshots) < 4 {
		t.Fatalf("%d events (%v)", len(snapshots), err)
	}
	for _, snap := range snapshots {
		state, err := w.Restore(w.ctx, snap)
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range w.Read(w.ctx, "s1", snap.Seq+1, 0) {
			if err != nil {
				t.Fatal(err)
			}
			_, _ = state.Evolve(e)
		}
		if state.Hash() != whole.Hash {
			t.Errorf("from the snapshot at %d: got %s, want %s", snap.Seq, state.Hash(), whole.Hash)
		}
	}
}

// TestChangesYieldRows: a session that changes has a row, each time after the one before;
// other sessions have none.
func TestChangesYieldRows(t *testing.T) {
	t.Parallel()
	w := newWorld(t).host()
	before, err := w.LastNotice(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	w.ask("b1", "other")
	w.ask("a1", "hi")
	var last client.IndexRow
	answered := false
	for row, err := range w.Changes(w.ctx, "a", before) {
		if err != nil || row.Session != "a1" {
			t.Fatalf("got a row of %q (%v), want one of a1", row.Session, err)
		}
		if last.Cursor == row.Cursor {
			t.Errorf("the row %s came twice", row.Cursor)
		}
		last = row
		if row.State == string(session.Completed) {
			break
		}
		if !answered {
			answered = true
			w.answer("a1", 1, "hello")
		}
	}
	if last.Text != "hello" {
		t.Errorf("got %+v, want the answer", last)
	}
}

// TestStoredEffects: an open effect is stored as the fold asks for it, and names the
// bridge that has claimed it.
func TestStoredEffects(t *testing.T) {
	t.Parallel()
	w := newWorld(t).host()
	w.ask("s1", "hi")
	w.stored("s1", "r1t1")
	stored, err := w.Effects(w.ctx, "s1")
	if err != nil || len(stored) != 1 {
		t.Fatalf("got %+v (%v), want one effect", stored, err)
	}
	open := w.replay("s1", 0).State.Open()[0]
	if got, want := codec.Sum(stored[0].Payload), codec.Sum(open.Payload); stored[0].Name != "r1t1" || got != want {
		t.Errorf("stored: %s %s, want %s %s", stored[0].Name, got, open.Name, want)
	}
	holder, err := w.Holder(w.ctx, "s1", session.ClassLLM, "p", "r1t1")
	if err != nil || holder != "" {
		t.Errorf("before a claim: got %q (%v), want none", holder, err)
	}
}

// TestStorage: the log's size and its streams, and what is quarantined.
func TestStorage(t *testing.T) {
	t.Parallel()
	w := newWorld(t).host()
	seq := w.ask("s1", "hi")
	s, err := w.Storage(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if s.Last < seq || s.Missing != 0 || len(s.Streams) != 9 || s.Streams[0].Messages != s.Last || s.Durability == "" {
		t.Errorf("got %+v, want %d events in 9 streams", s, seq)
	}
	stop := journal.NewStop(seq+1, "a test")
	body, err := stop.Bytes()
	if err == nil {
		err = w.bus.PutQuarantine(w.ctx, "s1", body)
	}
	if err != nil {
		t.Fatal(err)
	}
	all, err := w.Quarantines(w.ctx, 10)
	if err != nil || len(all) != 1 || all[0].Session != "s1" || all[0].Reason != "a test" {
		t.Errorf("got %+v (%v), want the quarantine of s1", all, err)
	}
	if err := w.Release(w.ctx, "s1", &all[0].Quarantined); err != nil {
		t.Fatal(err)
	}
	if all, err = w.Quarantines(w.ctx, 10); err != nil || len(all) != 0 {
		t.Errorf("after the release: got %+v (%v), want none", all, err)
	}
}

// TestInstalls: the newest record is first, and the newest valid one is pinned.
func TestInstalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, record := range []string{toolsRecord, `{"v":1,"rules":1,"tools":7}`} {
		if _, _, err := w.bus.PublishInstall(w.ctx, []byte(record), false); err != nil {
			t.Fatal(err)
		}
	}
	all, err := w.Installs(w.ctx, 10)
	if err != nil || len(all) != 3 {
		t.Fatalf("got %d records (%v), want 3", len(all), err)
	}
	if all[0].Fault == nil || all[0].IsPinned || !all[1].IsPinned || all[1].Install.Registry.Len() != 2 || all[2].IsPinned {
		t.Errorf("got %+v, want the second one pinned", all)
	}
	if all, err = w.Installs(w.ctx, 1); err != nil || len(all) != 1 {
		t.Errorf("limit 1: got %d records (%v)", len(all), err)
	}
}

// TestFleetHearsTheSessionActor: it owns all lanes, and says so.
func TestFleetHearsTheSessionActor(t *testing.T) {
	t.Parallel()
	w := newWorld(t).host()
	bustest.Until(t, "the session-actor owns all lanes", func() bool {
		fleet, err := w.Fleet(w.ctx, 2*time.Second)
		if err != nil || len(fleet.Bridges) != 0 {
			t.Fatalf("got bridges %+v (%v), and none runs", fleet, err)
		}
		if len(fleet.Actors) != 1 || fleet.Actors[0].Stated == nil {
			return false
		}
		actor := fleet.Actors[0]
		owned := func(l client.RunningLane) bool { return l.Owner == actor.Instance && l.Pinned }
		return fleet.LaneCount > 0 && len(actor.Lanes) == fleet.LaneCount && len(actor.Stated.Owned) == fleet.LaneCount &&
			actor.Stated.Takeovers == uint64(fleet.LaneCount) && actor.Rules == session.RulesVersion && len(fleet.Lanes) == fleet.LaneCount && !slices.ContainsFunc(fleet.Lanes, func(l client.RunningLane) bool { return !owned(l) })
	})
}

// TestFleetShowsLanesWithoutAnOwner: events of a lane that nobody runs wait, and the oldest
// of them says for how long.
func TestFleetShowsLanesWithoutAnOwner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, err := w.Steer(w.ctx, "s", "hi", client.ControlOptions{})
	if err == nil {
		_, err = w.Steer(w.ctx, "s", "hi again", client.ControlOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	record, found, err := w.bus.InstallBefore(w.ctx, first) // each lane gets it
	if err != nil || !found {
		t.Fatal(found, err)
	}
	fleet, err := w.Fleet(w.ctx, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if len(fleet.Lanes) != subjects.LanesDefault || len(fleet.Actors) != 0 {
		t.Fatalf("got %+v, want %d lanes and no session-actor", fleet, subjects.LanesDefault)
	}
	for _, lane := range fleet.Lanes {
		want := client.RunningLane{Lane: lane.Lane, Undelivered: 1, Oldest: time.UnixMilli(record.Time)}
		if lane.Lane == subjects.Lane(subjects.Partition("s")) {
			want.Undelivered = 3
		}
		lane.Oldest = lane.Oldest.Local()
		if lane != want {
			t.Errorf("got %+v, want %+v", lane, want)
		}
	}
}
