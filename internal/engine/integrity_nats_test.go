package engine_test

// A log on disk from which events were erased: one server, and three of them
// with three copies. Each of the damaged sessions is stopped, and no other.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/subjects"
)

// events returns the sequences of a session's events.
func (w *world) events(sid string) (seqs []uint64) {
	w.t.Helper()
	for e, err := range w.bus.ReadSession(w.ctx, sid, 1, 0, true) {
		if err != nil {
			w.t.Fatal(err)
		}
		seqs = append(seqs, e.Seq)
	}
	return seqs
}

// neighbour returns the name of a session of the same lane.
func neighbour(sid string) string {
	for i := 0; ; i++ {
		name := fmt.Sprintf("good%d", i)
		if subjects.Lane(subjects.Partition(name)) == subjects.Lane(subjects.Partition(sid)) {
			return name
		}
	}
}

// turn lets every session have a run.
func (w *world) turn(run int, sids ...string) {
	w.t.Helper()
	for _, sid := range sids {
		w.run(sid, fmt.Sprintf("question %d", run))
	}
	w.answers(run, sids...)
}

// answers lets every session end the run that it has.
func (w *world) answers(run int, sids ...string) {
	w.t.Helper()
	for _, sid := range sids {
		effect := fmt.Sprintf("r%dt1", run)
		w.asked(session.ClassLLM, "openai", sid, effect)
		w.answer(sid, effect, fmt.Sprintf("answer %d", run))
	}
	for _, sid := range sids {
		w.notices(sid, 1+2*run)
	}
}

// stopReason waits until a session is quarantined, and returns why.
func (w *world) stopReason(sid string) (stop engine.Stop) {
	w.t.Helper()
	bustest.Until(w.t, sid+" is quarantined", func() bool {
		body, found, err := w.bus.GetQuarantine(w.ctx, sid)
		return err == nil && found && json.Unmarshal(body, &stop) == nil
	})
	return stop
}

func TestErasedEvents(t *testing.T) {
	t.Parallel()
	for _, servers := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d servers", servers), func(t *testing.T) {
			t.Parallel()
			if servers == 1 {
				testErased(t, newWorldOn(t, []*bustest.Node{bustest.Server(t)}))
				return
			}
			testErased(t, newWorldOn(t, bustest.Cluster(t, servers)))
		})
	}
}

func testErased(t *testing.T, w *world) {
	lost := map[string]int{"first": 0, "snapped": 1, "behind": 2, "last": 3} // of four; the second is in the snapshot
	good := neighbour("first")
	sids := []string{good, "first", "snapped", "behind", "last"}
	one := w.begin(engine.Options{SnapshotEach: 1})
	w.turn(1, sids...)
	for _, sid := range sids {
		bustest.Until(t, "the snapshot of "+sid, func() bool {
			data, found, err := w.bus.GetSnapshot(w.ctx, sid)
			if err != nil || !found {
				return false
			}
			snap, err := session.ParseSnapshot(data)
			return err == nil && snap.Seq == w.events(sid)[1]
		})
	}
	one.stop(w)
	two := w.begin(engine.Options{SnapshotEach: 1 << 40})
	w.turn(2, sids...)
	two.stop(w)
	_, js := testbus.JS(t, w.node)
	log, err := js.Stream(w.ctx, "REFOLD_LOG")
	if err != nil {
		t.Fatal(err)
	}
	for sid, i := range lost {
		if err := log.SecureDeleteMsg(w.ctx, w.events(sid)[i]); err != nil {
			t.Fatal(err)
		}
	}
	w.host(engine.Options{SnapshotEach: 1 << 40})
	for _, sid := range sids {
		w.run(sid, "question 3")
	}
	w.asked(session.ClassLLM, "openai", good, "r3t1")
	for sid := range lost {
		stop, all := w.stopReason(sid), w.events(sid)
		if len(all) != 4 || stop.Seq != all[3] || !strings.Contains(stop.Reason, "expected ") || !strings.Contains(stop.Reason, ", found ") {
			t.Errorf("%s has the events %v, and is quarantined as %+v: want it from the last one on, with what was expected and found", sid, all, stop)
		}
		w.saidStop(sid, stop.Reason)
	}
	if _, found, err := w.bus.GetQuarantine(w.ctx, good); err != nil || found {
		t.Errorf("a session that lost nothing is quarantined (%v)", err)
	}
	// Released, it goes on from what the log has: its first run waits still.
	if err := w.bus.PutQuarantine(w.ctx, "snapped", nil); err != nil {
		t.Fatal(err)
	}
	w.wantView("snapped")
	// Its second run asks with other bytes what it asked before the loss, so that
	// it is stopped at the event that leads there, and stands where it did.
	w.answer("snapped", "r1t1", "answer 1, again")
	all := w.events("snapped")
	if stop := w.stopReason("snapped"); stop.Seq != all[len(all)-1] || !strings.Contains(stop.Reason, "r2t1: expected the ") || !strings.Contains(stop.Reason, "folded differently before") {
		t.Errorf("released, and answered, it is quarantined as %+v: want it from %d on, with the effect r2t1", stop, all[len(all)-1])
	}
	if v := w.view("snapped"); v.Seq != all[len(all)-2] {
		t.Errorf("its view is of %d: want it as it stands before it was stopped, at %d", v.Seq, all[len(all)-2])
	}
}

// saidStop waits for the notice of a quarantine.
func (w *world) saidStop(sid, reason string) {
	w.t.Helper()
	for notice, err := range w.bus.FollowNotices(w.ctx, sid, 0) {
		if err != nil {
			w.t.Fatalf("%s: no notice of its quarantine: %v", sid, err)
		}
		if !bytes.Contains(notice.Payload, []byte(session.NoticeSessionQuarantined)) {
			continue
		}
		var said struct{ Data session.SessionQuarantined }
		if err := json.Unmarshal(notice.Payload, &said); err != nil {
			w.t.Fatal(err)
		}
		if said.Data.Reason != reason {
			w.t.Errorf("%s: the notice says %q, the quarantine %q", sid, said.Data.Reason, reason)
		}
		return
	}
}
