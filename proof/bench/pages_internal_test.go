package bench

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// Every page is touched, also the last one of which there is only the beginning.
func TestTouch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		size, pages int64
	}{
		{"empty", 0, 0}, {"a byte", 1, 1}, {"a page", pageSize, 1}, {"a byte more", pageSize + 1, 2}, {"many", 300*pageSize - 1, 300},
	} {
		if got, err := touch(bytes.NewReader(make([]byte, c.size))); err != nil || got != c.pages {
			t.Errorf("%s: touched %d pages and %v, want %d", c.name, got, err, c.pages)
		}
	}
}

// A file is held as far as it goes, also after it has grown; one that is empty, or
// that the server has removed meanwhile, is no failure.
func TestKeep(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "1.blk")
	k := keeper{}
	for _, size := range []int{0, 3 * pageSize, 3 * pageSize, 5*pageSize + 7} {
		if err := os.WriteFile(name, bytes.Repeat([]byte("x"), size), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := k.keep(name); err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		if got := len(k[name]); got != size && got != 0 { // 0: this user may lock nothing
			t.Errorf("of %d bytes %d are held", size, got)
		}
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := k.keep(name); err != nil {
		t.Errorf("a file that is gone: %v", err)
	}
	if k.release(); len(k) != 0 {
		t.Errorf("%d files are held in the end", len(k))
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
