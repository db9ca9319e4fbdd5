package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/bus/bustest"
)

// TestBlobsSweep: a dry sweep and the first one within the grace period change nothing, and
// say what they found; after it one marks, and another one deletes.
func TestBlobsSweep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	kept, err := w.Store(w.ctx, client.File{Name: "a.txt", Data: []byte("kept")})
	bustest.OK(t, err)
	_, err = w.Run(w.ctx, "s1", "hello", client.RunOptions{Parts: []session.Content{kept}})
	bustest.OK(t, err)
	orphan, err := w.Store(w.ctx, client.File{Name: "b.txt", Data: []byte("an orphan")})
	bustest.OK(t, err)
	out, _ := w.does(0, "blobs", "sweep", "--dry-run")
	if !strings.Contains(out, ": 1 named, ") || !strings.Contains(out, "would be deleted: 0 blobs of 0 bytes\n") {
		t.Errorf("a dry sweep: %s", out)
	}
	later := func() time.Time { return time.Now().Add(25 * time.Hour) }
	swept, err := w.SweepBlobs(w.ctx, client.SweepOptions{Now: later})
	if err != nil || swept.Marked.Blobs != 1 {
		t.Fatalf("a sweep a day later: %+v, %v", swept, err)
	}
	out, _ = w.does(0, "blobs", "sweep")
	if !strings.Contains(out, "marked before, for less than 24h0m0s: 1 blob of 9 bytes\n") || !strings.Contains(out, "deletes those marked blobs that nothing names then\n") {
		t.Errorf("within the grace period: %s", out)
	}
	swept, err = w.SweepBlobs(w.ctx, client.SweepOptions{Now: later})
	if err != nil || swept.Deleted.Blobs != 1 {
		t.Fatalf("another sweep a day later: %+v, %v", swept, err)
	}
	if there, err := w.Keep(w.ctx, orphan); err != nil || there {
		t.Errorf("the orphan is there: %v (%v)", there, err)
	}
	if there, err := w.Keep(w.ctx, kept); err != nil || !there {
		t.Errorf("the named file is there: %v (%v)", there, err)
	}
	if out, _ := w.does(0, "blobs", "sweep", "--json"); !strings.Contains(out, `"named":{"blobs":1,"bytes":4}`) {
		t.Errorf("--json: %s", out)
	}
	if _, told := w.does(statusUsage, "blobs", "sweep", "--grace", "59m"); !strings.Contains(told, "give at least 1h0m0s") {
		t.Errorf("a short grace period: %s", told)
	}
}
