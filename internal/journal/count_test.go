package journal_test

import (
	"slices"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
)

// A count finds the end of a session without reading to the log's end.
func countContract(t *testing.T, e testbus.Env) {
	var seqs []uint64
	for range 12 {
		e.Publish(session.DoorIn, "count-other", "x")
		seqs = append(seqs, e.Publish(session.DoorIn, "count-a", "x"), e.Publish(session.DoorLLM, "count-a", "y"))
	}
	last := seqs[len(seqs)-1]
	for sid, want := range map[string]uint64{"count-a": 24, "count-other": 12, "count-none": 0} {
		if got, err := e.B.CountEvents(e.Ctx, sid, last); err != nil || got != want {
			t.Errorf("%s: got %d events %v, want %d", sid, got, err, want)
		}
	}
	if got, err := e.B.CountEvents(e.Ctx, "count-a", 1<<40); err != nil || got != 0 {
		t.Errorf("of a log that is not as long: got %d %v, want 0", got, err)
	}
	for _, b := range e.All {
		bustest.Until(t, "all is read", func() bool { // a replica may be behind
			var next []uint64
			for one, err := range b.ReadNext(e.Ctx, "count-a", seqs[0]+1, last, 5) {
				if err != nil {
					t.Fatal(err)
				}
				next = append(next, one.Seq)
			}
			return slices.Equal(next, seqs[1:6])
		})
	}
}
