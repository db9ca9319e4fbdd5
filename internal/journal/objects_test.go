package journal_test

import (
	"errors"
	"io/fs"
	"slices"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/spacefiles"
)

func TestObjectsAreFiles(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	b := testbus.Connect(t, node, "refold")
	_, js := testbus.JS(t, node)
	store, err := js.CreateObjectStore(t.Context(), jetstream.ObjectStoreConfig{Bucket: "FILES"})
	bustest.OK(t, err)
	for name, content := range map[string]string{"a/1/x.md": "one", "a/1/d/y.md": "two", "a/2/x.md": "three", "b/x.md": "four"} {
		if _, err := store.PutBytes(t.Context(), name, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	files, err := b.Objects(t.Context(), "FILES", "a/1/")
	bustest.OK(t, err)
	var names []string
	err = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if !d.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if want := []string{"d/y.md", "x.md"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("got %v, %v, want %v", names, err, want)
	}
	if got, err := fs.ReadFile(files, "d/y.md"); err != nil || string(got) != "two" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := store.PutBytes(t.Context(), "a/1/x.md", []byte("other")); err != nil {
		t.Fatal(err)
	}
	bustest.OK(t, store.Delete(t.Context(), "a/1/d/y.md"))
	for _, name := range []string{"x.md", "d/y.md"} {
		if got, err := fs.ReadFile(files, name); !errors.Is(err, spacefiles.ErrReplaced) {
			t.Errorf("%s was replaced or deleted since it was listed: got %q, %v", name, got, err)
		}
	}
	if _, err := b.Objects(t.Context(), "NOPE", ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a store that is not there: got %v", err)
	}
}
