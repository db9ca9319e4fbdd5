// Package archivetest writes archives of histories that no server played, for tests.
package archivetest

import (
	"testing"

	"github.com/refold/refold/actors/session/scenario"
	"github.com/refold/refold/internal/archive"
	"github.com/refold/refold/internal/prove/provetest"
)

// Write writes a history into an archive, and returns the name of its file.
func Write(t testing.TB, h scenario.History) string {
	t.Helper()
	told := provetest.Tell(t, h, len(h.Events))
	first, last := h.Events[0], h.Events[len(h.Events)-1]
	w, err := archive.Create(t.TempDir(), archive.Header{
		Session: first.Session, Prefix: "refold", Written: last.Time, Count: uint64(len(h.Events)), Chain: told.Claims.Chain, Hash: told.Claims.Hash,
		First: first.Seq, Last: last.Seq, Install: archive.Install{Seq: first.Seq - 1, Time: first.Time, Payload: h.Install},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for _, e := range h.Events {
		if err := w.Event(e); err != nil {
			t.Fatal(err)
		}
	}
	name, err := w.Finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	return name
}
