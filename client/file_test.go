package client_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refold/refold/client"
)

func TestReadFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	png, err := os.ReadFile("../internal/media/testdata/dot.png")
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("ä", 90) + ".png" // 184 bytes
	for name, data := range map[string][]byte{
		"photo.jpg": png, long: png, "notes.txt": []byte("Grüße\n"), "empty.png": nil, "a.zip": []byte("PK\x03\x04\xff"), "old.tiff": []byte("II*\x00\x08\x00\x00\x00"),
		"zero.txt": []byte("a\x00b"), "latin1.txt": []byte("Gr\xfc\xdfe"), "huge.txt": bytes.Repeat([]byte("a"), client.FileBytesMax+1),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{ // the name, or the error
		"photo.jpg": "photo.jpg", "notes.txt": "notes.txt", long: strings.Repeat("ä", 62) + ".png",
		"missing.png": "DIR/missing.png: does not exist: check the path",
		"":            "DIR: is a folder: give its files one by one",
		"empty.png":   "DIR/empty.png: is empty",
		"a.zip":       "DIR/a.zip: by its content it is no image, PDF or UTF-8 text: convert it, or let a tool read it",
		"zero.txt":    "DIR/zero.txt: by its content it is no image, PDF or UTF-8 text: convert it, or let a tool read it",
		"latin1.txt":  "DIR/latin1.txt: by its content it is no image, PDF or UTF-8 text: convert it, or let a tool read it",
		"old.tiff":    "DIR/old.tiff: is image/tiff, which no provider takes: convert it to PNG or JPEG",
		"huge.txt":    "DIR/huge.txt: has more than 8 MiB, the most of a file that a model is shown: make it smaller, or let a tool read it",
	} {
		f, err := client.ReadFile(filepath.Join(dir, name))
		got := f.Name
		if err != nil {
			got = strings.ReplaceAll(strings.TrimPrefix(err.Error(), "file "), dir, "DIR")
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
