package bench

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// Every page is touched, also the last one of which there is only the beginning,
// and a file that the server has removed meanwhile is no failure.
func TestTouch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct {
		name        string
		size, pages int64
	}{
		{"empty", 0, 0}, {"a byte", 1, 1}, {"a page", pageSize, 1}, {"a byte more", pageSize + 1, 2}, {"many", 300*pageSize - 1, 300},
	} {
		name := filepath.Join(dir, c.name)
		if err := os.WriteFile(name, make([]byte, c.size), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := touch(name); err != nil || got != c.pages {
			t.Errorf("%s: touched %d pages and %v, want %d", c.name, got, err, c.pages)
		}
	}
	if got, err := touch(filepath.Join(dir, "removed")); err != nil || got != 0 {
		t.Errorf("removed: touched %d pages and %v, want none", got, err)
	}
}

// All files under a directory are kept, whatever directories they are in, until it
// is enough.
func TestKeepFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var want []string
	for _, name := range []string{"log/msgs/1.blk", "log/msgs/2.blk", "meta.inf"} {
		name = filepath.Join(dir, name)
		want = append(want, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := filesUnder(dir)
	slices.Sort(got)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q and %v, want %q", got, err, want)
	}
	if got, err := filesUnder(filepath.Join(dir, "gone")); err != nil || len(got) > 0 {
		t.Errorf("a directory that is gone: got %q and %v, want none", got, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := keepFiles(ctx, dir); err != nil {
		t.Errorf("keeping ended with %v", err)
	}
}
