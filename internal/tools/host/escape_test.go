package host

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/refold/refold/bridge/executor"
)

// outside makes a directory with a file that no tool may reach.
func outside(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "secret"), []byte("secret\n"), 0o644))
	return dir
}

// TestEscapes: each tool refuses each escape, and nothing changes outside or
// inside.
func TestEscapes(t *testing.T) {
	t.Parallel()
	out := outside(t)
	r := newRig(t, Options{}, map[string]string{"in": "text\n", "d/f": "x\n"})
	sibling := r.root + "/" + rigSession + "-other"
	must(t, os.Mkdir(sibling, 0o755))
	must(t, os.WriteFile(sibling+"/secret", []byte("secret\n"), 0o644))
	r.symlink(out, "abs-dir")
	r.symlink(filepath.Join(out, "secret"), "abs-file")
	rel, err := filepath.Rel(r.dir, out)
	must(t, err)
	r.symlink(rel, "rel-dir")
	r.symlink("rel-dir", "twice")
	r.symlink("../..", "d/up")
	r.symlink("d/../../"+rigSession+"-other", "sideways")

	paths := []string{
		filepath.Join(out, "secret"), rel + "/secret", "d/../../" + rigSession + "-other/secret",
		"abs-dir/secret", "abs-file", "rel-dir/secret", "twice/secret", "d/up/x/secret", "sideways/secret",
		"abs-dir/new", r.dir + "/../" + rigSession + "-other/secret", sibling + "/secret", "/", "/etc/passwd", "..",
	}
	beforeIn, beforeOut, beforeSibling := snapshot(t, r.dir), snapshot(t, out), snapshot(t, sibling)
	for _, path := range paths {
		for _, c := range []struct {
			tool string
			a    args
		}{
			{ToolReadFile, args{"path": path}},
			{ToolStat, args{"path": path}},
			{ToolExists, args{"path": path}},
			{ToolListDir, args{"path": path}},
			{ToolGrep, args{"pattern": "secret", "path": path}},
			{ToolWriteFile, args{"path": path, "content": "x"}},
			{ToolEditFile, args{"path": path, "old_text": "secret", "new_text": "x"}},
			{ToolExec, args{"command": "echo ran > ran", "workdir": path}},
			{ToolApplyPatch, args{"patch": "*** Begin Patch\n*** Add File: " + path + "\n+x\n*** End Patch"}},
			{ToolApplyPatch, args{"patch": "*** Begin Patch\n*** Update File: " + path + "\n-secret\n+x\n*** End Patch"}},
			{ToolApplyPatch, args{"patch": "*** Begin Patch\n*** Update File: in\n*** Move to: " + path + "\n-text\n+x\n*** End Patch"}},
		} {
			got := r.call(c.tool, c.a)
			if got.Error == nil || got.Error.Code != CodePathEscapes {
				t.Errorf("%s %v: got %q %v, want %s", c.tool, c.a, got.Output, got.Error, CodePathEscapes)
			}
			if strings.Contains(got.Output, "secret\n") {
				t.Errorf("%s %v: shows %q", c.tool, c.a, got.Output)
			}
		}
	}
	// A link itself may be named where it is not followed, and is refused too.
	for _, link := range []string{"abs-file", "abs-dir", "twice"} {
		r.refused(CodeNotRegular, ToolApplyPatch, args{"patch": "*** Begin Patch\n*** Delete File: " + link + "\n*** End Patch"})
	}
	for _, pattern := range []string{"abs-dir/*", "*/secret", "**/secret", "rel-dir/secret", "d/up/**"} {
		if got := r.ok(ToolGlob, args{"pattern": pattern}); got != "no matches" {
			t.Errorf("glob %s: got %q, want no matches", pattern, got)
		}
	}
	for _, pattern := range []string{"../*", "d/../../*", "/etc/*", sibling + "/*", rel + "/*", r.dir + "/../*", "..", "{..,nothing}/*", "{" + out + ",nothing}/*"} {
		r.refused(CodePathEscapes, ToolGlob, args{"pattern": pattern})
	}
	if got := r.ok(ToolGrep, args{"pattern": "secret"}); !strings.HasPrefix(got, "no matches") {
		t.Errorf("grep: got %q, want no matches", got)
	}
	wantSame(t, r.dir, beforeIn)
	wantSame(t, out, beforeOut)
	wantSame(t, sibling, beforeSibling)
}

func TestLinksInCircles(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}, map[string]string{"d/f": "x"})
	r.symlink("b", "a")
	r.symlink("a", "b")
	r.symlink(".", "d/self")
	wantIn(t, r.refused(CodeNotRegular, ToolReadFile, args{"path": "a"}), "40 symbolic links")
	wantOutput(t, "a few times round", r.ok(ToolReadFile, args{"path": "d/self/self/self/f"}), "x")
	wantOutput(t, "glob ends", r.ok(ToolGlob, args{"pattern": "**/f"}), "d/f\n")
	wantIn(t, r.ok(ToolGrep, args{"pattern": "x"}), "d/f:1:x")
}

// TestResolveIsCanonical: all names of a file give one path.
func TestResolveIsCanonical(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}, map[string]string{"d/e/f": "x"})
	r.symlink("d/e", "link")
	r.symlink("../e/f", "d/e/back")
	p, err := openWorkdir(r.root, rigSession)
	must(t, err)
	defer p.close()
	for name, want := range map[string]string{
		"d/e/f": "d/e/f", "./d//e/f/": "d/e/f", "link/f": "d/e/f", "d/e/back": "d/e/f", "link/back": "d/e/f",
		r.dir + "/link/f": "d/e/f", ".": ".", r.dir: ".", "link/..": ".", "new/x": "new/x", "link/new": "d/e/new",
		"a/../b": "b", "dots..": "dots..", "..dots/x": "..dots/x",
	} {
		if got, err := p.resolve(name); err != nil || got != want {
			t.Errorf("resolve(%q): got %q, %v, want %q", name, got, err, want)
		}
	}
}

// TestSwappedLinks: while another process keeps replacing a directory by a link
// to the outside and back, no call reads or writes there.
func TestSwappedLinks(t *testing.T) {
	t.Parallel()
	out := outside(t)
	r := newRig(t, Options{}, map[string]string{"real/secret": "harmless\n"})
	before := snapshot(t, out)
	dir := filepath.Join(r.dir, "d")
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			_ = os.Symlink("real", dir)
			_ = os.Remove(dir)
			_ = os.Symlink(out, dir)
			_ = os.Remove(dir)
		}
	}()
	calls := []executor.Call{
		r.newCall(ToolReadFile, args{"path": "d/secret"}),
		r.newCall(ToolGrep, args{"pattern": "secret", "path": "d"}),
		r.newCall(ToolEditFile, args{"path": "d/secret", "old_text": "secret", "new_text": "gone"}),
		r.newCall(ToolWriteFile, args{"path": "d/secret", "content": "harmless\n"}),
		r.newCall(ToolApplyPatch, args{"patch": "*** Begin Patch\n*** Update File: d/secret\n-secret\n+gone\n*** End Patch"}),
		r.newCall(ToolApplyPatch, args{"patch": "*** Begin Patch\n*** Delete File: d/secret\n*** End Patch"}),
	}
	for i := range 1200 {
		got, err := r.h.Execute(t.Context(), calls[i%len(calls)])
		must(t, err)
		if strings.Contains(got.Output, "secret\n") && !strings.Contains(got.Output, "deleted") && !strings.Contains(got.Output, "wrote") {
			t.Errorf("%s shows %q", calls[i%len(calls)].ToolID, got.Output)
		}
	}
	stop.Store(true)
	<-done
	wantSame(t, out, before)
}
