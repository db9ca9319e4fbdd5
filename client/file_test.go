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

// A session in whose transcript it was would fail in every later turn.
func TestTooLongTextsAreRefused(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("a", client.FileBytesMax+1)
	c := new(client.Client) // it is refused before anything is sent
	for name, send := range map[string]func() (uint64, error){
		"run":   func() (uint64, error) { return c.Run(t.Context(), "s1", text, client.RunOptions{}) },
		"steer": func() (uint64, error) { return c.Steer(t.Context(), "s1", text, client.ControlOptions{}) },
		"edit":  func() (uint64, error) { return c.EditRun(t.Context(), "s1", text, client.ControlOptions{Run: 2}) },
	} {
		if _, err := send(); err == nil || !strings.Contains(err.Error(), "the text has 8388609 bytes, at most 8 MiB: shorten it") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// What a sender says of an upload is compared with its content.
func TestNewFileHoldsTheTypeAgainstTheContent(t *testing.T) {
	t.Parallel()
	png, err := os.ReadFile("../internal/media/testdata/dot.png")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ data, typ, want string }{
		{string(png), "", ""},
		{string(png), "image/png", ""},
		{string(png), "IMAGE/PNG; name=x", ""},
		{string(png), "application/octet-stream", ""},
		{string(png), "image/jpg", "file a: its media type is said to be image/jpeg, but by its content it is image/png: correct the type, or leave it out"},
		{string(png), "text/plain", "file a: its media type is said to be text/plain, but by its content it is image/png: correct the type, or leave it out"},
		{"a,b\n", "text/csv", ""},
		{"{}", "application/json", ""},
		{"no image", "image/png", "file a: its media type is said to be image/png, but by its content it is text/plain: correct the type, or leave it out"},
		{"x", "//", `file a: its media type "//" can't be read: write such as image/png, or leave it out`},
		{"", "text/plain", "file a: is empty"},
	} {
		f, err := client.NewFile(strings.NewReader(c.data), "a", c.typ)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want || err == nil && string(f.Data) != c.data {
			t.Errorf("%.8q as %s: got %q, want %q", c.data, c.typ, got, c.want)
		}
	}
}
