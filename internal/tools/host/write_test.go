package host

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/refold/refold/bridge/executor"
)

func (r *rig) wantFile(name, want string) {
	r.t.Helper()
	data, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil || string(data) != want {
		r.t.Errorf("%s: got %q, %v, want %q", name, data, err, want)
	}
}

func TestWriteFile(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}, map[string]string{"old": "old", "dir/x": ""})
	for range 2 { // it may be repeated
		wantOutput(t, "new", r.ok(ToolWriteFile, args{"path": "new/deep/f", "content": "é\n"}), "wrote 3 bytes to new/deep/f")
		r.wantFile("new/deep/f", "é\n")
	}
	r.ok(ToolWriteFile, args{"path": "old", "content": ""})
	r.wantFile("old", "")
	r.ok(ToolWriteFile, args{"path": filepath.Join(r.dir, "abs"), "content": "a"})
	r.wantFile("abs", "a")

	before := snapshot(t, r.dir)
	r.refused(CodeIsDirectory, ToolWriteFile, args{"path": "dir", "content": "x"})
	r.refused(CodeIsDirectory, ToolWriteFile, args{"path": ".", "content": "x"})
	r.refused(CodeIsDirectory, ToolWriteFile, args{"path": "fresh/", "content": "x"})
	r.refused(CodeNotDirectory, ToolWriteFile, args{"path": "old/below", "content": "x"})
	r.refused(CodeInvalidArguments, ToolWriteFile, args{"path": "x"})
	wantSame(t, r.dir, before)
}

// TestWriteKeepsModeAndLinks: a replaced file keeps its permissions, and a link
// to it stays a link.
func TestWriteKeepsModeAndLinks(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}, map[string]string{"bin/run.sh": "old"})
	must(t, os.Chmod(filepath.Join(r.dir, "bin/run.sh"), 0o775))
	r.symlink("bin/run.sh", "run")
	r.symlink(filepath.Join(r.dir, "bin"), "abs") // inside, though absolute
	r.symlink("later", "soon")
	for _, name := range []string{"run", "abs/run.sh"} {
		wantOutput(t, name, r.ok(ToolWriteFile, args{"path": name, "content": "new"}), "wrote 3 bytes to bin/run.sh")
		r.wantFile("bin/run.sh", "new")
	}
	r.ok(ToolEditFile, args{"path": "run", "old_text": "new", "new_text": "edited"})
	if fi, err := os.Lstat(filepath.Join(r.dir, "run")); err != nil || fi.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("run is %v, %v, want a link", fi.Mode(), err)
	}
	if fi, err := os.Stat(filepath.Join(r.dir, "bin/run.sh")); err != nil || fi.Mode().Perm() != 0o775 {
		t.Errorf("mode is %v, %v, want 0775", fi.Mode(), err)
	}
	r.ok(ToolWriteFile, args{"path": "soon", "content": "now"})
	r.wantFile("later", "now")
}

func TestEditFile(t *testing.T) {
	t.Parallel()
	const text = "one\ntwo\n  three\ntwo\n"
	for _, c := range []struct {
		name, before, old, new string
		all                    any
		want, output           string
	}{
		{"once", text, "one\n", "1\n", nil, "1\ntwo\n  three\ntwo\n", "replaced 1 of 1 place in f"},
		{"all", text, "two", "2", true, "one\n2\n  three\n2\n", "replaced 2 of 2 places in f"},
		{"away", text, "one\n", "", false, "two\n  three\ntwo\n", "replaced 1 of 1 place in f"},
		{"over CRLF", "a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\n", nil, "x\r\ny\r\nc\r\n", "replaced 1 of 1 place in f"},
		{"not UTF-8 around it", "caf\xe9 x", "x", "y", nil, "caf\xe9 y", "replaced 1 of 1 place in f"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Options{}, map[string]string{"f": c.before})
			got := r.ok(ToolEditFile, args{"path": "f", "old_text": c.old, "new_text": c.new, "replace_all": c.all})
			wantOutput(t, "output", got, c.output)
			r.wantFile("f", c.want)
		})
	}
	r := newRig(t, Options{}, map[string]string{"f": text, "bin": "a\x00b", "big": strings.Repeat("x", fileBytesMax+1)})
	before := snapshot(t, r.dir)
	wantIn(t, r.refused(CodeManyMatches, ToolEditFile, args{"path": "f", "old_text": "two", "new_text": "2"}), "found 2 times", "replace_all")
	wantIn(t, r.refused(CodeNoMatch, ToolEditFile, args{"path": "f", "old_text": "nope", "new_text": "2"}), "found 0 times", "read the file again")
	wantIn(t, r.refused(CodeNoMatch, ToolEditFile, args{"path": "f", "old_text": "three\nfour", "new_text": "2"}), "line 3", "white space")
	wantIn(t, r.refused(CodeInvalidArguments, ToolEditFile, args{"path": "f", "old_text": "", "new_text": "x"}), "write_file")
	r.refused(CodeInvalidArguments, ToolEditFile, args{"path": "f", "old_text": "two", "new_text": "two"})
	r.refused(CodeBinaryFile, ToolEditFile, args{"path": "bin", "old_text": "a", "new_text": "x"})
	r.refused(CodeTooLarge, ToolEditFile, args{"path": "big", "old_text": "x", "new_text": "y", "replace_all": true})
	r.refused(CodeNotFound, ToolEditFile, args{"path": "nope", "old_text": "a", "new_text": "x"})
	wantSame(t, r.dir, before)

	r.write("grow", strings.Repeat("x", 1000))
	wantIn(t, r.refused(CodeTooLarge, ToolEditFile,
		args{"path": "grow", "old_text": "x", "new_text": strings.Repeat("y", 10_000), "replace_all": true}), "10000000 bytes")
}

// TestConcurrentEditsAreKept: concurrent calls that change one file under
// several names lose no change.
func TestConcurrentEditsAreKept(t *testing.T) {
	t.Parallel()
	const n = 24
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, "line %02d is old\n", i)
	}
	r := newRig(t, Options{}, map[string]string{"d/f": lines.String()})
	r.symlink("d", "link")
	names := []string{"d/f", "link/f", filepath.Join(r.dir, "d/f")}
	var wg sync.WaitGroup
	for i := range n {
		from, to := fmt.Sprintf("line %02d is old", i), fmt.Sprintf("line %02d is new", i)
		name := names[i%len(names)]
		call := r.newCall(ToolEditFile, args{"path": name, "old_text": from, "new_text": to})
		if i%2 == 1 {
			call = r.newCall(ToolApplyPatch, args{"patch": "*** Begin Patch\n*** Update File: " + name + "\n-" + from + "\n+" + to + "\n*** End Patch"})
		}
		wg.Go(func() {
			if got, err := r.h.Execute(t.Context(), call); err != nil || got.Error != nil {
				t.Errorf("%d: got %v, %v", i, got.Error, err)
			}
		})
	}
	wg.Wait()
	r.wantFile("d/f", strings.ReplaceAll(lines.String(), "old", "new"))
}

// TestReadersSeeWholeFiles: while a file is replaced, a reader sees either
// content completely.
func TestReadersSeeWholeFiles(t *testing.T) {
	t.Parallel()
	a, b := strings.Repeat("a\n", 5000), strings.Repeat("b\n", 5000)
	r := newRig(t, Options{}, map[string]string{"f": a})
	done := make(chan struct{})
	read := r.newCall(ToolReadFile, args{"path": "f"})
	writes := []executor.Call{
		r.newCall(ToolWriteFile, args{"path": "f", "content": b}), r.newCall(ToolWriteFile, args{"path": "f", "content": a}),
	}
	go func() {
		defer close(done)
		for i := range 30 {
			if got, err := r.h.Execute(t.Context(), writes[i%2]); err != nil || got.Error != nil {
				t.Errorf("write: got %v, %v", got.Error, err)
			}
		}
	}()
	for reading := true; reading; {
		select {
		case <-done:
			reading = false
		default:
		}
		got, err := r.h.Execute(t.Context(), read)
		if err != nil || got.Error != nil || got.Output != a && got.Output != b {
			t.Fatalf("got %.40q %v, %v, want all a or all b", got.Output, got.Error, err)
		}
	}
}

// TestFailedCommitIsUndone: if a later file can't be renamed, earlier ones are
// restored with their permissions, and no temporary file is left.
func TestFailedCommitIsUndone(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}, map[string]string{"changed": "before", "removed": "before", "full/x": "x"})
	must(t, os.Chmod(filepath.Join(r.dir, "removed"), 0o755))
	p, err := openWorkdir(r.root, rigSession)
	must(t, err)
	defer p.close()
	before := snapshot(t, r.dir)
	writes := func() []write {
		return []write{
			{path: "changed", content: "after", existed: true, before: "before"},
			{path: "removed", remove: true, existed: true, before: "before"},
			{path: "made/new", content: "new"},
			{path: "full", content: "a file can't take a directory's name"},
		}
	}
	err = p.commit(t.Context(), writes())
	var link *os.LinkError
	if !errors.As(err, &link) {
		t.Fatalf("got %v, want the failed rename", err)
	}
	wantIn(t, err.Error(), "changed back")
	wantSame(t, r.dir, before)

	must(t, p.commit(t.Context(), writes()[:3]))
	r.wantFile("changed", "after")
	r.wantFile("made/new", "new")
	if names := slices.Sorted(maps.Keys(snapshot(t, r.dir))); len(names) != 6 { // ".", changed, made, made/new, full, full/x
		t.Errorf("got %q: something is left over, or removed is still there", names)
	}
}

// TestFailedUndoIsReported: if the undo fails too, the error tells the model to
// read the files.
func TestFailedUndoIsReported(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}, map[string]string{"f": "x"})
	p, err := openWorkdir(r.root, rigSession)
	must(t, err)
	defer p.close()
	err = p.undo([]write{{path: "f/below", existed: true, before: "y"}}, errors.New("disk on fire"))
	got := result("", err)
	if got.Error == nil || got.Error.Code != CodePatchPartial {
		t.Fatalf("got %v, want %s", err, CodePatchPartial)
	}
	wantIn(t, err.Error(), "disk on fire", "f/below", "read the files again")
}
