package session_test

// Who folds again hears nothing, and comes to the same. That whole histories do
// is a law (laws_test.go): Fold is mute, and the state that it is compared with
// was not.

import (
	"testing"

	"github.com/refold/refold/actors/session"
)

func TestQuietStatesNumberTheirNotices(t *testing.T) {
	t.Parallel()
	install, history := builtin(t), demoHistory(t)
	loud, mute := session.New(install, "demo"), session.New(install, "demo")
	half, said := len(history)/2, 0
	mute.SetQuiet(true)
	for i, e := range history {
		if i == half {
			mute.SetQuiet(false)
		}
		want, _ := loud.Evolve(e)
		got, _ := mute.Evolve(e)
		switch {
		case i < half && len(got) > 0:
			t.Errorf("event %d: a mute state says %+v", e.Seq, got)
		case i >= half && len(got) != len(want):
			t.Errorf("event %d: got %d notices, want %d", e.Seq, len(got), len(want))
		case i >= half && len(got) > 0 && got[0].N != want[0].N:
			t.Errorf("event %d: got notice %d, want %d", e.Seq, got[0].N, want[0].N)
		}
		if i < half {
			said += len(want)
		}
		if got, want := mute.Hash(), loud.Hash(); got != want {
			t.Fatalf("event %d: got state %s, want %s", e.Seq, got, want)
		}
	}
	if said == 0 {
		t.Error("nothing was to be said while it was mute: this tests nothing")
	}
}
