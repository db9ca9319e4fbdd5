// What: the files that this package writes are those of today's types, and each of its
// rules about types is broken once.
//
// How: TestFilesAreCurrent makes all files in memory and compares them; with -rewrite it
// writes them.
package wire

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the schemas and the tables of docs/protocol.md")

const root = "../.."

// TestFilesAreCurrent: docs/schemas and the tables of docs/protocol.md say what the types
// say, and docs/schemas has no other file.
func TestFilesAreCurrent(t *testing.T) {
	t.Parallel()
	files, err := Files(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		name = filepath.Join(root, name)
		got, err := os.ReadFile(name)
		switch {
		case err == nil && bytes.Equal(got, want):
		case *rewrite:
			if err := os.WriteFile(name, want, 0o644); err != nil {
				t.Fatal(err)
			}
		default:
			t.Errorf("%s is not what the types say (%v): run go generate ./internal/wire", name, err)
		}
	}
	for _, dir := range []string{"docs/schemas", "docs/schemas/parts"} {
		entries, err := os.ReadDir(filepath.Join(root, dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if name := filepath.Join(dir, entry.Name()); !entry.IsDir() && files[name] == nil {
				t.Errorf("%s: no type has this schema", name)
			}
		}
	}
}

// TestEveryMessageHasItsTable: docs/protocol.md has the fields of each schema, once.
func TestEveryMessageHasItsTable(t *testing.T) {
	t.Parallel()
	files, err := Files(root)
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	for _, place := range tablePlace.FindAllStringSubmatch(string(files[protocol]), -1) {
		shown = append(shown, place[1])
	}
	slices.Sort(shown)
	var want []string
	for name := range files {
		if name, ok := strings.CutSuffix(filepath.Base(name), ".json"); ok && name != "Names" {
			want = append(want, name)
		}
	}
	slices.Sort(want)
	if !slices.Equal(shown, want) {
		t.Errorf("%s: tables of %v\nwant %v", protocol, shown, want)
	}
}

// TestBadFields: a field that says too little has no schema, and the error names the
// field and what to do.
func TestBadFields(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ field, want string }{
		{"Label string `msgpack:\"label\" lim:\"..64\"`", "Message: label: the field has no comment"},
		{"// A label.\n\tLabel string `msgpack:\"label\"`", `Message: label: the text has no limit: give it a tag lim, lim:"any" if it may be of any length`},
		{"// A label.\n\tLabel string `msgpack:\"label\" lim:\"..LabelBytes\"`", "Message: label: " + module + "/message has no constant LabelBytes"},
		{"// A label.\n\tLabel string `msgpack:\"label\" lim:\"enum=Label\"`", "Message: label: no constant of " + module + "/message begins with Label"},
		{"// A label.\n\tLabel string `msgpack:\"label\" lim:\"short\"`", `Message: label: the tag lim has no word "short"`},
		{"// A label.\n\tLabel string `msgpack:\"label\" lim:\"@label\"`", "Message: label: parts/Names has no name label"},
		{"// A label.\n\tLabel chan int `msgpack:\"label\"`", "Message: label: a type of another module has no schema: *ast.ChanType"},
		{"// More.\n\tMore *Message `msgpack:\"more\"`", "Message: more: Message contains itself: make it a part"},
	} {
		dir := t.TempDir()
		text := "package message\n\n// Message is a message.\ntype Message struct {\n\t" + c.field + "\n}\n"
		if err := os.Mkdir(filepath.Join(dir, "message"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "message", "message.go"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := newSource(dir).schema(Row{Name: "Message", Type: "message.Message"})
		if err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s\ngot  %v\nwant %s", c.field, err, c.want)
		}
	}
}
