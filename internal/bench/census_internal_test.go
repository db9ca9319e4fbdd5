package bench

// A lane that is taken again while a row is measured notes from when on it is to be
// looked back: that belongs to no run, and is counted for none.

import (
	"testing"

	"github.com/refold/refold/subjects"
)

func TestNotesOfLanesBelongToNoRun(t *testing.T) {
	t.Parallel()
	names, err := subjects.New("")
	if err != nil {
		t.Fatal(err)
	}
	key, err := subjects.SnapshotKey("s1")
	if err != nil {
		t.Fatal(err)
	}
	for subject, want := range map[string]bool{
		names.SnapshotsSubject(subjects.PastKey(0)): true,
		names.SnapshotsSubject(subjects.PastKey(7)): true,
		names.SnapshotsSubject(key):                 false,
		names.Install():                             false,
	} {
		if got := isNote(names, subject); got != want {
			t.Errorf("%s: got %v, want %v", subject, got, want)
		}
	}
}
