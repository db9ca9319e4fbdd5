package host

// Shared by all tests of this package: a host in temporary directories, whose
// tools are called as a bridge calls them, with JSON.

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/refold/refold/bridge/executor"
)

// rig is a host and one open session on it.
type rig struct {
	t    testing.TB
	h    *Host
	root string
	dir  string // the session's working directory
	hs   *executor.HostSession
	n    int // calls so far
}

const rigSession = "s1"

// newRig opens a host session. files are written into its working directory.
func newRig(t testing.TB, opts Options, files map[string]string) *rig {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	r := &rig{t: t, h: New(root, opts), root: root}
	got := r.call(ToolSessionOpen, nil)
	if got.Error != nil || got.HostSession == nil {
		t.Fatalf("open: got %+v", got)
	}
	r.hs = got.HostSession
	r.dir = filepath.Join(root, rigSession)
	if opts.WorkDir != "" {
		r.dir = opts.WorkDir
	}
	for name, content := range files {
		r.write(name, content)
	}
	return r
}

func (r *rig) write(name, content string) {
	r.t.Helper()
	full := filepath.Join(r.dir, name)
	must(r.t, os.MkdirAll(filepath.Dir(full), 0o755))
	must(r.t, os.WriteFile(full, []byte(content), 0o644))
}

func (r *rig) symlink(target, name string) {
	r.t.Helper()
	must(r.t, os.Symlink(target, filepath.Join(r.dir, name)))
}

func mkfifo(t *testing.T, name string) {
	t.Helper()
	must(t, syscall.Mkfifo(name, 0o600))
}

// args are arguments of a call.
type args map[string]any

func (r *rig) newCall(tool string, a args) executor.Call {
	r.t.Helper()
	raw := json.RawMessage("{}")
	if a != nil {
		var err error
		raw, err = json.Marshal(a)
		must(r.t, err)
	}
	r.n++
	effect := fmt.Sprintf("r1t%dc0", r.n)
	return executor.Call{
		Session: rigSession, Effect: effect, ToolID: tool, Arguments: raw,
		IdempotencyKey: rigSession + "." + effect, HostSession: r.hs,
	}
}

func (r *rig) call(tool string, a args) executor.Result {
	r.t.Helper()
	return r.execute(r.t.Context(), r.newCall(tool, a))
}

func (r *rig) execute(ctx context.Context, call executor.Call) executor.Result {
	r.t.Helper()
	got, err := r.h.Execute(ctx, call)
	if err != nil {
		r.t.Fatalf("%s: the executor itself failed: %v", call.ToolID, err)
	}
	if got.Error != nil && (got.Error.Code == "" || got.Error.Detail == "" || len(got.Error.Detail) > detailMax) {
		r.t.Errorf("%s: an error has a code, and a detail of 1 to %d bytes: %+v", call.ToolID, detailMax, got.Error)
	}
	if strings.ToValidUTF8(got.Output, "") != got.Output {
		r.t.Errorf("%s: output is not UTF-8: %q", call.ToolID, got.Output)
	}
	return got
}

// ok calls a tool that must succeed, and returns its output.
func (r *rig) ok(tool string, a args) string {
	r.t.Helper()
	got := r.call(tool, a)
	if got.Error != nil || got.Unknown {
		r.t.Fatalf("%s %v: got %+v %v, want success", tool, a, got, got.Error)
	}
	return got.Output
}

// refused calls a tool that must fail with a code, and returns what it says.
func (r *rig) refused(code, tool string, a args) string {
	r.t.Helper()
	got := r.call(tool, a)
	if got.Error == nil || got.Error.Code != code {
		r.t.Fatalf("%s %v: got %+v %v, want %s", tool, a, got, got.Error, code)
	}
	return got.Error.Detail
}

// wantOutput compares an output.
func wantOutput(t testing.TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s\n got %q\nwant %q", what, got, want)
	}
}

// wantIn looks for parts of a text.
func wantIn(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("got %q, want %q in it", text, part)
		}
	}
}

// snapshot returns all that is under a directory: contents, modes and links.
func snapshot(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, name)
		fi, err := d.Info()
		if err != nil {
			return err
		}
		content := ""
		switch {
		case d.Type().IsRegular():
			data, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			content = string(data)
		case d.Type()&fs.ModeSymlink != 0:
			if content, err = os.Readlink(name); err != nil {
				return err
			}
		}
		all[rel] = fi.Mode().String() + " " + content
		return nil
	})
	must(t, err)
	return all
}

// wantSame fails if something under a directory is not as it was.
func wantSame(t testing.TB, dir string, before map[string]string) {
	t.Helper()
	after := snapshot(t, dir)
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if was, ok := before[name]; !ok {
			t.Errorf("%s is new", name)
		} else if was != after[name] {
			t.Errorf("%s\n is %q\nwas %q", name, after[name], was)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, ok := after[name]; !ok {
			t.Errorf("%s is gone", name)
		}
	}
}

func TestUnknownToolIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}, nil)
	if got := r.call("host.fs.chmod", nil); got.Error == nil || got.Error.Code != CodeToolUnbound {
		t.Errorf("got %+v, want %s", got, CodeToolUnbound)
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}, map[string]string{"f": "a\nb\nc\n"})
	for _, c := range []struct{ name, raw, want string }{
		{"unknown", `{"path":"f","colour":1}`, `unknown argument "colour"; the tool takes path, offset, limit`},
		{"other case", `{"Path":"f"}`, "path is missing; it must be a string"},
		{"missing", `{}`, "path is missing; it must be a string"},
		{"null", `{"path":null}`, "path is missing; it must be a string"},
		{"wrong type", `{"path":["f"]}`, "path must be a string"},
		{"not whole", `{"path":"f","offset":1.5}`, "offset must be a whole number"},
		{"text for a number", `{"path":"f","offset":"1"}`, "offset must be a whole number"},
		{"huge", `{"path":"f","offset":1e300}`, "offset must be a whole number"},
		{"zero", `{"path":"f","offset":0}`, "offset must be 1 or more"},
		{"negative", `{"path":"f","limit":-1}`, "limit must be 1 or more"},
		{"an array", `[]`, "the arguments must be one JSON object"},
		{"null for all", `null`, "the arguments must be one JSON object"},
		{"two objects", `{"path":"f"}{}`, "the arguments must be one JSON object"},
		{"cut off", `{"path":"f`, "the arguments must be one JSON object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			call := executor.Call{Session: rigSession, ToolID: ToolReadFile, Arguments: json.RawMessage(c.raw), HostSession: r.hs}
			got, err := r.h.Execute(t.Context(), call)
			if err != nil || got.Error == nil {
				t.Fatalf("got %+v, %v, want an error result", got, err)
			}
			if got.Error.Code != CodeInvalidArguments || got.Error.Detail != c.want {
				t.Errorf("got %s, want %s: %s", got.Error, CodeInvalidArguments, c.want)
			}
		})
	}
	// What JSON Schema takes for an integer is one, and null is left out.
	wantOutput(t, "2.0 is whole", r.ok(ToolReadFile, args{"path": "f", "offset": json.RawMessage("2.0"), "limit": nil}),
		"b\nc\n[lines 2 to 3 of 3]")
	call := r.newCall(ToolListDir, nil)
	call.Arguments = nil
	if got := r.execute(t.Context(), call); got.Error != nil {
		t.Errorf("no arguments at all: got %v, want those of {}", got.Error)
	}
}

func TestLongDetailsGoToTheOutput(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}, nil)
	name := strings.Repeat("é", 120) + "/x"
	got := r.call(ToolReadFile, args{"path": "../" + name})
	if got.Error == nil || got.Error.Code != CodePathEscapes || !strings.HasSuffix(got.Error.Detail, "…") {
		t.Fatalf("got %+v, want a cut detail", got.Error)
	}
	wantIn(t, got.Output, name, "relative to it")
}

func TestCancelledBeforeStart(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := r.execute(ctx, r.newCall(ToolExec, args{"command": "touch ran"}))
	if got.Error == nil || got.Error.Code != CodeCancelled || got.Unknown {
		t.Errorf("got %+v, want %s: nothing was begun", got, CodeCancelled)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "ran")); err == nil {
		t.Error("the command ran")
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
