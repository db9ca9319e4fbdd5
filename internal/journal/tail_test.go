package journal_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/natsio"
)

// The end of a session is known without reading up to the log's.
func tailContract(t *testing.T, e testbus.Env) {
	var seqs []uint64
	for range 12 {
		e.Publish(session.DoorIn, "tail-other", "x")
		seqs = append(seqs, e.Publish(session.DoorIn, "tail-a", "x"), e.Publish(session.DoorLLM, "tail-a", "y"))
	}
	last := seqs[len(seqs)-1]
	for sid, want := range map[string]uint64{"tail-a": 24, "tail-other": 12, "tail-none": 0} {
		if got, err := e.B.CountEvents(e.Ctx, sid, last); err != nil || got != want {
			t.Errorf("%s: got %d events %v, want %d", sid, got, err, want)
		}
	}
	if got, err := e.B.CountEvents(e.Ctx, "tail-a", 1<<40); err != nil || got != 0 {
		t.Errorf("of a log that is not as long: got %d %v, want 0", got, err)
	}
	for door, want := range map[session.Door]uint64{session.DoorIn: seqs[22], session.DoorLLM: last, session.DoorTool: 0} {
		if got, err := e.B.LastSeqOf(e.Ctx, door, "tail-a"); err != nil || got != want {
			t.Errorf("last through %s: got %d %v, want %d", door, got, err, want)
		}
	}
	if got, err := e.B.LeaderEventAt(e.Ctx, last); err != nil || got.Session != "tail-a" || got.Door != session.DoorLLM || string(got.Payload) != "y" {
		t.Errorf("got %+v %v", got, err)
	}
	if _, err := e.B.LeaderEventAt(e.Ctx, 1<<40); !errors.Is(err, natsio.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	for i, b := range e.All {
		bustest.Until(t, "all is read", func() bool { // a replica may be behind
			var stretch, next []uint64
			for one, err := range b.ReadStretch(e.Ctx, "tail-a", seqs[1], last) {
				if err != nil {
					t.Fatal(err)
				}
				stretch = append(stretch, one.Seq)
			}
			for one, err := range b.ReadNext(e.Ctx, "tail-a", seqs[0]+1, last, 5) {
				if err != nil {
					t.Fatal(err)
				}
				next = append(next, one.Seq)
			}
			if n := len(stretch); !slices.Equal(stretch, seqs[1:][:n]) {
				t.Fatalf("server %d: got %v, want the first of %v", i, stretch, seqs[1:])
			}
			return len(stretch) == len(seqs)-1 && slices.Equal(next, seqs[1:6])
		})
	}
}
