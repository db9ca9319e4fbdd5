package host

// The planner and the host agree on what is one file: the planner orders the
// calls of a batch by their keys, and the host carries them out.

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/refold/refold/planner"
)

// planned is one call of a batch.
type planned struct {
	name string
	tool string
	a    args
}

var builtin = sync.OnceValues(func() (*planner.Registry, error) { return planner.Builtin().Registry() })

// plan checks calls as a session does that has this host session, and returns
// their keys and groups.
func (r *rig) plan(calls ...planned) planner.Plan {
	r.t.Helper()
	reg, err := builtin()
	if err != nil {
		r.t.Fatal(err)
	}
	set := planner.Select(reg, planner.Request{}, planner.Facts{HostSession: r.hs.Status})
	checker := planner.Checker{Root: r.hs.Root}
	var list []planner.PlanCall
	for _, c := range calls {
		raw, err := json.Marshal(c.a)
		if err != nil {
			r.t.Fatal(err)
		}
		call, why := checker.Check(reg, &set, planner.ObservedCall{ToolName: c.name, Arguments: string(raw)})
		if !why.OK() {
			r.t.Fatalf("%s %v: %+v", c.name, c.a, why)
		}
		list = append(list, call)
	}
	return planner.Schedule(list)
}

// runBackwards carries out a plan, the calls of each group in the worst order:
// calls of one group may run in any. It returns their outputs.
func (r *rig) runBackwards(plan planner.Plan, calls []planned) []string {
	r.t.Helper()
	outputs := make([]string, len(calls))
	for _, group := range plan.Groups {
		for _, i := range slices.Backward(group) {
			outputs[i] = r.ok(calls[i].tool, calls[i].a)
		}
	}
	return outputs
}

func readCall(name string) planned { return planned{"read_file", ToolReadFile, args{"path": name}} }

// TestReadsAfterAnEditAreNotStale: eight reads after an edit, in one turn, see
// the edit, however they spell the file.
func TestReadsAfterAnEditAreNotStale(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}, map[string]string{"f.txt": "old", "d/g": "x"})
	spellings := []string{
		"f.txt", "./f.txt", "d/../f.txt", "d//../f.txt", r.dir + "/f.txt",
		"nothing/../f.txt", r.dir + "/d/.././f.txt", filepath.Dir(r.dir) + "/x/../" + filepath.Base(r.dir) + "//f.txt",
	}
	for _, edited := range spellings {
		r.write("f.txt", "old")
		calls := []planned{{"edit_file", ToolEditFile, args{"path": edited, "old_text": "old", "new_text": "new"}}}
		for _, name := range spellings {
			calls = append(calls, readCall(name))
		}
		for i, output := range r.runBackwards(r.plan(calls...), calls) {
			if i > 0 && output != "new" {
				t.Errorf("an edit of %s, then a read of %s: got %q, want %q", edited, spellings[i-1], output, "new")
			}
		}
	}
}

// TestKeysAreThePathsOfTheHost: for every path that the host accepts, the key
// is the path in the working directory, or the bare key; for every other it is
// the bare key.
func TestKeysAreThePathsOfTheHost(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}, nil)
	p, err := openWorkdir(r.root, rigSession)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	parts := []string{"a", "..", ".", "", "f.txt", "..a", rigSession, rigSession + "0", "x\x00"}
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.SampledFrom([]string{"", "/", r.dir, r.dir + "/", r.root + "/", r.dir + "0/"}).Draw(t, "before")
		name := before + strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 1, 5).Draw(t, "parts"), "/")
		if name == "" {
			return // the schema takes none
		}
		key := r.plan(readCall(name)).Calls[0].Key
		want := ""
		if rel, err := p.local(name); err == nil {
			want = rel
		}
		if key.Bare != "host.fs" || key.Part != want {
			t.Fatalf("%q: key %s, want host.fs:%s", name, key, want)
		}
	})
}

// TestRootIsTheResolvedWorkingDirectory: the reported root is the working
// directory that the model sees, with symbolic links resolved. Paths by the
// host's configured name are accepted too, and get the bare key.
func TestRootIsTheResolvedWorkingDirectory(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, h: New(link, Options{}), root: dir, dir: filepath.Join(dir, rigSession)}
	got := r.call(ToolSessionOpen, nil)
	if got.Error != nil || got.HostSession.Root != r.dir || !strings.HasSuffix(got.Output, ": "+r.dir) {
		t.Fatalf("open: got %+v, %+v, want the root %s", got, got.HostSession, r.dir)
	}
	r.hs = got.HostSession
	r.write("f.txt", "x")
	byLink := filepath.Join(link, rigSession, "f.txt")
	wantOutput(t, "by the name it was configured with", r.ok(ToolReadFile, args{"path": byLink}), "x")
	plan := r.plan(readCall(byLink), readCall(r.dir+"/f.txt"))
	if bare, part := plan.Calls[0].Key, plan.Calls[1].Key; bare.String() != "host.fs" || part.String() != "host.fs:f.txt" {
		t.Errorf("keys %s and %s, want host.fs and host.fs:f.txt", bare, part)
	}
	if closed := r.call(ToolSessionClose, nil); closed.Error != nil || closed.HostSession.Root != r.dir {
		t.Errorf("close: got %+v", closed.HostSession)
	}

	// One that the session would refuse is left out.
	deep := filepath.Join(dir, strings.Repeat(strings.Repeat("d", 200)+"/", 5))
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	long := &rig{t: t, h: New(deep, Options{}), root: deep}
	if got := long.call(ToolSessionOpen, nil); got.Error != nil || got.HostSession.Root != "" {
		t.Errorf("a working directory of over %d bytes: got %+v, want no root", rootBytesMax, got.HostSession)
	}
}

// TestLinksInsideAreOtherKeys: as docs/tools.md says about links inside the
// working directory. A call through a link reaches the file. Its key is the
// link's, so a batch doesn't order it against calls that name the file.
func TestLinksInsideAreOtherKeys(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}, map[string]string{"d/f.txt": "old"})
	r.symlink("d/f.txt", "link")
	r.symlink("d", "dir")
	if err := os.Link(filepath.Join(r.dir, "d/f.txt"), filepath.Join(r.dir, "hard")); err != nil {
		t.Fatal(err)
	}
	names := []string{"d/f.txt", "link", "dir/f.txt", "hard"}
	var calls []planned
	for _, name := range names {
		wantOutput(t, name, r.ok(ToolReadFile, args{"path": name}), "old")
		calls = append(calls, planned{"write_file", ToolWriteFile, args{"path": name, "content": name}})
	}
	plan := r.plan(calls...)
	if len(plan.Groups) != 1 {
		t.Errorf("groups %v, want one: no key knows what a link leads to", plan.Groups)
	}
	// Symbolic links are written through, to the file. A file is replaced, so
	// that a hard link then has it alone.
	for _, c := range calls {
		r.ok(c.tool, c.a)
	}
	for name, want := range map[string]string{"d/f.txt": "dir/f.txt", "link": "dir/f.txt", "dir/f.txt": "dir/f.txt", "hard": "hard"} {
		wantOutput(t, name+" afterwards", r.ok(ToolReadFile, args{"path": name}), want)
	}
	if target, err := os.Readlink(filepath.Join(r.dir, "link")); err != nil || target != "d/f.txt" {
		t.Errorf("link is %q, %v, want the link that it was", target, err)
	}
}
