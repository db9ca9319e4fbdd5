package host

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/refold/refold/bridge/executor"
)

func TestApplyPatch(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}, map[string]string{
		"src/app.go": "package app\n\nfunc a() {}\n", "old.sh": "echo\n", "gone.txt": "x\n", "same.txt": "x\n",
	})
	must(t, os.Chmod(filepath.Join(r.dir, "old.sh"), 0o755))
	got := r.ok(ToolApplyPatch, args{"patch": `*** Begin Patch
*** Update File: src/app.go
@@ func a() {}
+func b() {}
*** Update File: old.sh
*** Move to: bin/new.sh
-echo
+echo moved
*** Add File: docs/note.md
+note
*** Delete File: gone.txt
*** End Patch`})
	wantOutput(t, "summary", got, "updated src/app.go\nmoved old.sh to bin/new.sh\nadded docs/note.md\ndeleted gone.txt\n")
	r.wantFile("src/app.go", "package app\n\nfunc a() {}\nfunc b() {}\n")
	r.wantFile("bin/new.sh", "echo moved\n")
	r.wantFile("docs/note.md", "note\n")
	if fi, err := os.Stat(filepath.Join(r.dir, "bin/new.sh")); err != nil || fi.Mode().Perm() != 0o755 {
		t.Errorf("the moved file is %v, %v, want its old mode", fi, err)
	}
	for _, name := range []string{"old.sh", "gone.txt"} {
		if _, err := os.Stat(filepath.Join(r.dir, name)); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
	wantOutput(t, "no change", r.ok(ToolApplyPatch, args{"patch": "*** Begin Patch\n*** Update File: same.txt\n x\n*** End Patch"}),
		"the patch applies, but changes nothing:\nupdated same.txt\n")
}

// TestPatchTreatsTwoNamesAsOneFile: also within one patch.
func TestPatchTreatsTwoNamesAsOneFile(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}, map[string]string{"d/f": "a\nb\n"})
	r.symlink("d", "link")
	r.symlink("d/f", "direct")
	r.ok(ToolApplyPatch, args{"patch": "*** Begin Patch\n*** Update File: link/f\n-a\n+x\n*** Update File: direct\n-b\n+y\n*** Update File: " +
		r.dir + "/d/../d/f\n-x\n+z\n*** End Patch"})
	r.wantFile("d/f", "z\ny\n")
	r.refused(CodeNotRegular, ToolApplyPatch, args{"patch": "*** Begin Patch\n*** Update File: direct\n*** Move to: m\n*** End Patch"})
}

// TestFailedPatchChangesNothing: whatever is wrong with one part.
func TestFailedPatchChangesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}, map[string]string{
		"f": "a\nb\n", "g": "g\n", "bin": "\x00", "dir/x": "x\n", "big": strings.Repeat("x\n", fileBytesMax/2+1),
	})
	before := snapshot(t, r.dir)
	for _, c := range []struct{ code, section, detail string }{
		{CodePatchFailed, "*** Update File: g\n-nope\n+x\n", `nothing was changed. g: hunk 1: patch line 7: line not found: "nope"`},
		{CodePatchFailed, "*** Update File: none\n-x\n+y\n", "nothing was changed. none: patch line 6: no such file to update"},
		{CodePatchFailed, "*** Add File: g\n+x\n", "the file exists"},
		{CodePatchFailed, "*** Sing Song: g\n", "*** Sing Song"},
		{CodeBinaryFile, "*** Update File: bin\n-x\n+y\n", "bin is binary"},
		{CodeIsDirectory, "*** Update File: dir\n-x\n+y\n", "dir is a directory"},
		{CodeTooLarge, "*** Update File: big\n-x\n+y\n", "8388610 bytes"},
		{CodePathEscapes, "*** Add File: ../x\n+y\n", "../x leads out"},
		{CodeNotDirectory, "*** Add File: g/below\n+y\n", "g"},
		{CodeIO, "*** Add File: new\n+y\n*** Add File: new/below\n+y\n", "changed back"},
	} {
		text := "*** Begin Patch\n*** Update File: f\n-a\n+changed\n*** Add File: fresh/file\n" + c.section + "*** End Patch"
		wantIn(t, r.refused(c.code, ToolApplyPatch, args{"patch": text}), c.detail)
		wantSame(t, r.dir, before)
	}
	wantIn(t, r.refused(CodeTooLarge, ToolApplyPatch, args{"patch": strings.Repeat("x", patchBytesMax+1)}), "send several")
}

// FuzzApplyPatch: a patch that fails changes no file, and one that succeeds
// leaves only files and directories that it may create.
func FuzzApplyPatch(f *testing.F) {
	names, err := filepath.Glob("../patch/testdata/*.txtar")
	if err != nil || len(names) == 0 {
		f.Fatalf("no cases: %v", err)
	}
	for _, name := range names {
		a, err := txtar.ParseFile(name)
		must(f, err)
		content := ""
		for _, file := range a.Files {
			if strings.HasPrefix(file.Name, "before/") {
				content = string(file.Data)
			}
		}
		f.Add(string(a.Files[0].Data), content)
	}
	f.Fuzz(func(t *testing.T, text, content string) {
		root := t.TempDir()
		h := New(filepath.Join(root, "host"), Options{})
		open, err := h.Execute(context.Background(), executor.Call{Session: "s", ToolID: ToolSessionOpen})
		if err != nil || open.Error != nil {
			t.Fatal(err, open.Error)
		}
		r := &rig{t: t, h: h, root: root, dir: filepath.Join(root, "host", "s"), hs: open.HostSession}
		r.write("f.txt", content)
		r.write("d/g.txt", "a\nb\nc\n")
		r.symlink("..", "d/up")
		before := snapshot(t, root)
		call := r.newCall(ToolApplyPatch, args{"patch": text})
		call.Session = "s"
		got := r.execute(context.Background(), call)
		if got.Unknown || got.Error != nil && got.Error.Code == CodePatchPartial {
			t.Fatalf("got %+v", got)
		}
		if got.Error != nil {
			wantSame(t, root, before)
			return
		}
		after := snapshot(t, root)
		maps.DeleteFunc(after, func(name, _ string) bool { return strings.HasPrefix(name, "host/s/") })
		for name, is := range after {
			if before[name] != is {
				t.Errorf("outside of the working directory, %s is %q, and was %q", name, is, before[name])
			}
		}
	})
}
