package patch_test

// The cases under testdata are the specification: each .txtar file says why it
// exists, then has the patch, the files before it, and the files after it, or the
// error. Run with -rewrite to write the actual results, and then read the diff.

import (
	"context"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/refold/refold/internal/tools/patch"
)

var rewrite = flag.Bool("rewrite", false, "write what is got into testdata")

// tree is a set of files; it reads as package patch wants it.
type tree map[string]string

func (t tree) read(path string) (string, bool, error) {
	content, ok := t[path]
	return content, ok, nil
}

// apply runs a patch over files and returns what they become.
func apply(text string, before tree) (tree, error) {
	p, err := patch.Parse(text)
	if err != nil {
		return nil, err
	}
	changes, err := p.Changes(context.Background(), before.read)
	if err != nil {
		return nil, err
	}
	after := maps.Clone(before)
	if after == nil {
		after = tree{}
	}
	for _, c := range changes {
		delete(after, c.Path)
		if c.Exists {
			after[c.Path] = c.After
		}
	}
	return after, nil
}

type vector struct {
	comment, patch, err string
	before, after       tree
}

func readVector(t *testing.T, name string) vector {
	t.Helper()
	a, err := txtar.ParseFile(name)
	must(t, err)
	v := vector{comment: string(a.Comment), before: tree{}, after: tree{}}
	for _, f := range a.Files {
		where, path, _ := strings.Cut(f.Name, "/")
		switch where {
		case "patch":
			v.patch = string(f.Data)
		case "before":
			v.before[path] = string(f.Data)
		case "after":
			v.after[path] = string(f.Data)
		case "error":
			v.err = strings.TrimSuffix(string(f.Data), "\n")
		default:
			t.Fatalf("%s: section %q is none of patch, before, after, error", name, f.Name)
		}
	}
	if v.patch == "" || v.comment == "" {
		t.Fatalf("%s: a case has a reason and a patch", name)
	}
	return v
}

func (v vector) write(t *testing.T, name string) {
	t.Helper()
	a := txtar.Archive{Comment: []byte(v.comment), Files: []txtar.File{{Name: "patch", Data: []byte(v.patch)}}}
	add := func(dir string, files tree) {
		for _, path := range slices.Sorted(maps.Keys(files)) {
			a.Files = append(a.Files, txtar.File{Name: dir + "/" + path, Data: []byte(files[path])})
		}
	}
	add("before", v.before)
	add("after", v.after)
	if v.err != "" {
		a.Files = append(a.Files, txtar.File{Name: "error", Data: []byte(v.err + "\n")})
	}
	must(t, os.WriteFile(name, txtar.Format(&a), 0o644))
}

func TestVectors(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) < 30 {
		t.Fatalf("found %d cases (%v), want at least 30", len(names), err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			v := readVector(t, name)
			after, err := apply(v.patch, v.before)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if *rewrite {
				v.after, v.err = after, got
				v.write(t, name)
				return
			}
			if got != v.err {
				t.Fatalf("error\n got %q\nwant %q", got, v.err)
			}
			if err == nil && !maps.Equal(after, v.after) {
				t.Errorf("files\n got %q\nwant %q", after, v.after)
			}
		})
	}
}

// TestLineEndsAreKept has what text files can't show: line ends.
func TestLineEndsAreKept(t *testing.T) {
	t.Parallel()
	const head, foot = "*** Begin Patch\n*** Update File: f\n", "*** End Patch\n"
	for _, c := range []struct{ name, patch, before, after string }{
		{"CRLF stays, and new lines take it", "@@\n a\n-b\n+x\n+y\n", "a\r\nb\r\nc\r\n", "a\r\nx\r\ny\r\nc\r\n"},
		{"mixed ends stay as they are", "@@\n-b\n+x\n", "a\nb\r\nc\r\nd\n", "a\nx\nc\r\nd\n"},
		{"a missing end that the patch doesn't touch stays missing", "@@\n-a\n+x\n", "a\nb", "x\nb"},
		{"a context line without end gets one before a new line", "@@\n b\n+c\n", "a\nb", "a\nb\nc\n"},
		{"a replaced last line is ended", "@@\n-b\n+x\n", "a\nb", "a\nx\n"},
		{"a last line removed", "@@\n a\n-b\n", "a\nb", "a\n"},
		{"all removed", "@@\n-a\n-b\n", "a\nb\n", ""},
		{"into an empty file", "@@\n+a\n", "", "a\n"},
		{"new lines only, at a file without end", "@@\n+b\n", "a", "a\nb\n"},
		{"loosely matched context keeps its bytes", "@@\n a\n-b\n+x\n c\n", "\ta  \n  b\nc\t\n", "\ta  \nx\nc\t\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := apply(head+c.patch+foot, tree{"f": c.before})
			must(t, err)
			if got["f"] != c.after {
				t.Errorf("got %q, want %q", got["f"], c.after)
			}
		})
	}
}

// TestCRLFPatchIsAccepted: a patch with CRLF throughout is read as if without.
func TestCRLFPatchIsAccepted(t *testing.T) {
	t.Parallel()
	text := strings.ReplaceAll("*** Begin Patch\n*** Update File: f\n@@ a\n-b\n+x\n*** Add File: g\n+new\n*** End Patch\n", "\n", "\r\n")
	got, err := apply(text, tree{"f": "a\nb\n"})
	if want := (tree{"f": "a\nx\n", "g": "new\n"}); err != nil || !maps.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

// TestReadErrorIsReturnedUnchanged: an error of the caller's read.
func TestReadErrorIsReturnedUnchanged(t *testing.T) {
	t.Parallel()
	p, err := patch.Parse("*** Begin Patch\n*** Delete File: f\n*** End Patch")
	must(t, err)
	broken := errors.New("broken disk")
	changes, err := p.Changes(t.Context(), func(string) (string, bool, error) { return "", false, broken })
	if !errors.Is(err, broken) || changes != nil {
		t.Errorf("got %v, %v, want the error of read and no changes", changes, err)
	}
}

// TestStepsAreBounded: a small patch can't take minutes, neither by hunks nor
// by sections.
func TestStepsAreBounded(t *testing.T) {
	t.Parallel()
	large := tree{"f": strings.Repeat("a\n", 1_000_000)}
	for name, body := range map[string]string{
		"hunks":    "*** Update File: f\n" + strings.Repeat("@@\n-a\n", 2000),
		"sections": strings.Repeat("*** Update File: f\n@@\n-a\n", 2000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := apply("*** Begin Patch\n"+body+"*** End Patch", large)
			if err == nil || !strings.Contains(err.Error(), "send several smaller patches") {
				t.Errorf("got %v, want it refused with what to do", err)
			}
		})
	}
}

// TestPatchEndsWithItsContext: Changes ends when its call is cancelled.
func TestPatchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	p, err := patch.Parse("*** Begin Patch\n*** Update File: f\n@@\n-a\n*** Update File: g\n@@\n-a\n*** End Patch")
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	reads := 0
	_, err = p.Changes(ctx, func(string) (string, bool, error) {
		reads++
		cancel()
		return "a\n", true, nil
	})
	if !errors.Is(err, context.Canceled) || reads != 1 {
		t.Errorf("got %v after %d reads, want the end of the context after one", err, reads)
	}
}

// TestPatchOfContextChangesNothing: it is valid.
func TestPatchOfContextChangesNothing(t *testing.T) {
	t.Parallel()
	p, err := patch.Parse("*** Begin Patch\n*** Update File: f\n@@\n a\n*** End Patch")
	must(t, err)
	changes, err := p.Changes(t.Context(), tree{"f": "a\n"}.read)
	if err != nil || len(changes) != 0 {
		t.Errorf("got %v, %v, want no changes", changes, err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
