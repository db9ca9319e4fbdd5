package host

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/refold/refold/bridge/executor"
)

// TestFilesAreRemovedAfterKeep: files are removed when their host session ended
// long enough ago, and no other uses their directory.
func TestFilesAreRemovedAfterKeep(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	h := New(root, Options{Keep: 24 * time.Hour})
	n := 0
	open := func(session, dir string) *executor.HostSession {
		t.Helper()
		n++
		arguments := "{}"
		if dir != "" {
			arguments = `{"workdir": "` + dir + `"}`
		}
		got, err := h.Execute(t.Context(), executor.Call{ToolID: ToolSessionOpen, Session: session, IdempotencyKey: session + dir + string(rune('0'+n)), Arguments: []byte(arguments)})
		if err != nil || got.HostSession == nil {
			t.Fatalf("open %s %s: %+v, %v", session, dir, got, err)
		}
		return got.HostSession
	}
	over := func(session string, hs *executor.HostSession, ago time.Duration) {
		t.Helper()
		if got, err := h.Execute(t.Context(), executor.Call{ToolID: ToolSessionClose, Session: session, HostSession: hs}); err != nil || got.Error != nil {
			t.Fatalf("close: %+v, %v", got, err)
		}
		at := time.Now().Add(-ago)
		must(t, os.Chtimes(h.recordPath(hs.ID), at, at))
	}
	const long, short = 25 * time.Hour, 23 * time.Hour
	over("old", open("old", ""), long)
	over("young", open("young", ""), short)
	over("again", open("again", ""), long)
	open("again", "")
	over("below", open("below", "shared/deep"), long)
	open("above", "shared")
	over("outer", open("outer", "outer"), long)
	over("inner", open("inner", "outer/inner"), short)
	open("live", "")
	must(t, errors.Join(os.Mkdir(filepath.Join(root, "mine"), 0o755), os.Symlink(filepath.Join(root, "mine"), filepath.Join(root, "old", "link"))))
	h.Sweep(t.Context(), &told{}, slog.New(slog.DiscardHandler))
	var left []string
	for _, dir := range []string{"old", "young", "again", "shared", "shared/deep", "outer", "outer/inner", "live", "mine"} {
		if _, err := os.Stat(filepath.Join(root, dir)); err == nil {
			left = append(left, dir)
		}
	}
	if want := []string{"young", "again", "shared", "shared/deep", "outer", "outer/inner", "live", "mine"}; !slices.Equal(left, want) {
		t.Errorf("left are %q, want %q", left, want)
	}
	records, err := filepath.Glob(filepath.Join(root, recordsDir, "*.json"))
	if err != nil || len(records) != 5 {
		t.Errorf("%d records are left, %v; want those of 5 that are open or ended of late", len(records), err)
	}

	// One that can't be read may be anybody's: nothing is removed then.
	over("late", open("late", ""), long)
	must(t, os.WriteFile(h.recordPath("hbad"), []byte("{"), 0o600))
	h.Sweep(t.Context(), &told{}, slog.New(slog.DiscardHandler))
	if _, err := os.Stat(filepath.Join(root, "late")); errors.Is(err, fs.ErrNotExist) {
		t.Error("files were removed though a record can't be read")
	}
	if err := (Options{Keep: time.Minute}).Validate(); err == nil {
		t.Error("a minute is taken, want an error")
	}
}

// TestFilesOfADeletedSessionAreRemoved: at the next sweep, also if files are kept for ever,
// and only once the host session has ended.
func TestFilesOfADeletedSessionAreRemoved(t *testing.T) {
	t.Parallel()
	for _, keep := range []time.Duration{0, 24 * time.Hour} {
		r := newRig(t, Options{Keep: keep}, map[string]string{"f": "x"})
		rec, err := r.h.record(r.hs.ID)
		must(t, err)
		has := func() bool {
			_, err := os.Stat(filepath.Join(r.h.base, rec.WorkDir))
			return err == nil
		}
		s := &told{}
		r.h.Sweep(t.Context(), s, slog.New(slog.DiscardHandler))
		s.deleted = []string{"other", rec.Session}
		r.h.Sweep(t.Context(), s, slog.New(slog.DiscardHandler))
		if !has() {
			t.Error("the files of an open host session were removed")
		}
		s.closed = true // its view says so
		r.unused(2 * settledAge)
		r.h.Sweep(t.Context(), s, slog.New(slog.DiscardHandler))
		if has() {
			t.Errorf("keep %v: the files of a deleted session are there", keep)
		}
	}
}
