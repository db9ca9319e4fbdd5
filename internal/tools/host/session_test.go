package host

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/refold/refold/bridge/executor"
)

// TestOpenIsRepeatable: the first call of a session creates its directory and
// returns its path; a second start of the same call returns the same.
func TestOpenIsRepeatable(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	h := New(root, Options{Route: "host-a"})
	call := executor.Call{Session: "s1", ToolID: ToolSessionOpen, IdempotencyKey: "s1.r1t1c0", Arguments: json.RawMessage(`{}`)}
	first, err := h.Execute(t.Context(), call)
	if err != nil || first.Error != nil {
		t.Fatalf("got %+v, %v", first, err)
	}
	dir, _ := filepath.EvalSymlinks(filepath.Join(root, "s1"))
	if want := "host session ready; working directory: " + dir; first.Output != want {
		t.Errorf("got %q, want %q", first.Output, want)
	}
	if hs := first.HostSession; hs == nil || hs.ID == "" || hs.Status != "ready" || hs.Route != "host-a" {
		t.Errorf("got %+v, want a ready host session on host-a", first.HostSession)
	}
	second, err := New(root, Options{Route: "host-b"}).Execute(t.Context(), call)
	if err != nil || !reflect.DeepEqual(first, second) {
		t.Errorf("started again: got %+v, %v, want %+v", second, err, first)
	}
	call.IdempotencyKey = "s1.r2t1c0"
	third, _ := h.Execute(t.Context(), call)
	if third.HostSession == nil || third.HostSession.ID == first.HostSession.ID {
		t.Errorf("another call: got %+v, want another host session", third.HostSession)
	}
}

func TestOpenWorkDir(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}, nil)
	got := r.call(ToolSessionOpen, args{"workdir": "projects/app"})
	if want := "host session ready; working directory: " + filepath.Join(r.root, "projects/app"); got.Output != want {
		t.Fatalf("got %q %v, want %q", got.Output, got.Error, want)
	}
	r.hs = got.HostSession
	r.ok(ToolWriteFile, args{"path": "x", "content": "here"})
	if data, err := os.ReadFile(filepath.Join(r.root, "projects/app/x")); err != nil || string(data) != "here" {
		t.Errorf("got %q, %v: the session's files are not in its workdir", data, err)
	}
	wantIn(t, r.refused(CodePathEscapes, ToolSessionOpen, args{"workdir": "../up"}), "leave workdir out")
	wantIn(t, r.refused(CodePathEscapes, ToolSessionOpen, args{"workdir": "/etc"}), "leave workdir out")
	for _, own := range []string{".", ".sessions", ".sessions/x"} {
		r.refused(CodeInvalidArguments, ToolSessionOpen, args{"workdir": own})
	}
	must(t, os.Symlink(t.TempDir(), filepath.Join(r.root, "out")))
	r.refused(CodePathEscapes, ToolSessionOpen, args{"workdir": "out/x"})
	call := r.newCall(ToolSessionOpen, nil)
	call.Session = "../s2"
	if got := r.execute(t.Context(), call); got.Error == nil || got.Error.Code != CodeInvalidArguments {
		t.Errorf("a session id that is a path: got %+v, want %s", got, CodeInvalidArguments)
	}
}

func TestFixedWorkDir(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	r := newRig(t, Options{WorkDir: work}, map[string]string{"sub/f": "text\n"})
	wantOutput(t, "read", r.ok(ToolReadFile, args{"path": "sub/f"}), "text\n")
	if _, err := os.Stat(filepath.Join(work, recordsDir)); err == nil {
		t.Error("records are in the working directory")
	}
	r.hs = r.call(ToolSessionOpen, args{"workdir": "sub"}).HostSession
	wantOutput(t, "read below", r.ok(ToolReadFile, args{"path": "f"}), "text\n")
	r.refused(CodePathEscapes, ToolReadFile, args{"path": "../sub/f"})
}

// TestNextHostContinuesTheSession: another process with the same root continues
// with the session, since nothing of it was in memory.
func TestNextHostContinuesTheSession(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{Route: "before"}, map[string]string{"f": "text\n"})
	r.h = New(r.root, Options{Route: "after"})
	wantOutput(t, "read", r.ok(ToolReadFile, args{"path": "f"}), "text\n")
	r.ok(ToolSessionClose, nil)
	r.h = New(r.root, Options{})
	r.refused(CodeNoHostSession, ToolReadFile, args{"path": "f"})
}

// TestCallsWithoutHostSessionAreRefused: each of them sets the session's
// status, so that open_session is offered again.
func TestCallsWithoutHostSessionAreRefused(t *testing.T) {
	t.Parallel()
	status := func(got executor.Result) string {
		if got.HostSession == nil {
			return "unchanged"
		}
		return got.HostSession.Status
	}
	for _, c := range []struct {
		name   string
		spoil  func(t *testing.T, r *rig)
		status string
		detail string
	}{
		{"none", func(_ *testing.T, r *rig) { r.hs = nil }, "unchanged", "no host session is open; call open_session first"},
		{"not known here", func(_ *testing.T, r *rig) { r.hs = &executor.HostSession{ID: "h123", Route: "far"} }, "error",
			`host session "h123" is not known on this host ("near"; it was opened on "far"); call open_session to open another`},
		{"a path for an id", func(_ *testing.T, r *rig) { r.hs = &executor.HostSession{ID: "../.sessions/" + r.hs.ID} }, "error", "is not known on this host"},
		{"of another session", func(t *testing.T, r *rig) {
			call := r.newCall(ToolSessionOpen, nil)
			call.Session, call.IdempotencyKey = "s2", "s2.r1t1c0"
			r.hs = r.execute(t.Context(), call).HostSession
		}, "error", "is not known on this host"},
		{"closed", func(_ *testing.T, r *rig) { r.ok(ToolSessionClose, nil) }, "closed", "the host session is closed"},
		{"damaged record", func(t *testing.T, r *rig) {
			must(t, os.WriteFile(r.h.recordPath(r.hs.ID), []byte("{"), 0o600))
		}, "error", "is not known on this host"},
		{"directory gone", func(t *testing.T, r *rig) {
			must(t, os.RemoveAll(r.dir))
		}, "error", "working directory is gone"},
		{"idle too long", func(t *testing.T, r *rig) {
			long := time.Now().Add(-2 * time.Hour)
			must(t, os.Chtimes(r.h.recordPath(r.hs.ID), long, long))
		}, "expired", "expired; its files are still there"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Options{Route: "near", IdleTTL: time.Hour}, nil)
			c.spoil(t, r)
			for range 2 { // and it stays so
				got := r.call(ToolListDir, nil)
				if got.Error == nil || got.Error.Code != CodeNoHostSession || status(got) != c.status {
					t.Fatalf("got %v, status %s, want %s, status %s", got.Error, status(got), CodeNoHostSession, c.status)
				}
				if c.name != "idle too long" { // the second time it says what it is
					wantIn(t, got.Error.Detail, c.detail)
				}
			}
			r.hs = r.call(ToolSessionOpen, nil).HostSession
			r.ok(ToolListDir, nil)
		})
	}
}

// TestCallRestartsTheIdleTime: a call postpones the expiry of a host session.
func TestCallRestartsTheIdleTime(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{IdleTTL: time.Hour}, nil)
	almost := time.Now().Add(-59 * time.Minute)
	name := r.h.recordPath(r.hs.ID)
	must(t, os.Chtimes(name, almost, almost))
	r.ok(ToolListDir, nil)
	if fi, err := os.Stat(name); err != nil || time.Since(fi.ModTime()) > 30*time.Minute {
		t.Errorf("last use is %v, %v: want now", fi.ModTime(), err)
	}
}

// TestCloseIsRepeatable: an open that is carried out again after it, as a late
// repeat, neither revives the session nor returns something else.
func TestCloseIsRepeatable(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}, map[string]string{"f": "text"})
	for range 2 {
		got := r.call(ToolSessionClose, nil)
		if got.Error != nil || got.HostSession == nil || got.HostSession.Status != "closed" || got.HostSession.ID != r.hs.ID {
			t.Fatalf("got %+v %+v, want closed", got, got.HostSession)
		}
	}
	open := r.newCall(ToolSessionOpen, nil)
	open.IdempotencyKey = rigSession + ".r1t1c0" // newRig's
	if got := r.execute(t.Context(), open); got.HostSession == nil || *got.HostSession != *r.hs {
		t.Errorf("repeated open: got %+v, want %+v", got.HostSession, r.hs)
	}
	r.refused(CodeNoHostSession, ToolListDir, nil)
	if _, err := os.Stat(filepath.Join(r.dir, "f")); err != nil {
		t.Errorf("closing took the files: %v", err)
	}
	r.hs = nil
	r.refused(CodeNoHostSession, ToolSessionClose, nil)
}

// TestConcurrentOpensGiveOneSession: one call that two hosts carry out
// concurrently.
func TestConcurrentOpensGiveOneSession(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	var wg sync.WaitGroup
	results := make([]executor.Result, 16)
	for i := range results {
		wg.Go(func() {
			call := executor.Call{Session: "s1", ToolID: ToolSessionOpen, IdempotencyKey: "s1.r1t1c0"}
			results[i], _ = New(root, Options{Route: string(rune('a' + i))}).Execute(t.Context(), call)
		})
	}
	wg.Wait()
	for i, got := range results {
		if got.Error != nil || !reflect.DeepEqual(got, results[0]) {
			t.Errorf("host %d: got %+v, want %+v", i, got, results[0])
		}
	}
	entries, err := os.ReadDir(filepath.Join(root, recordsDir))
	if err != nil || len(entries) != 1 {
		t.Errorf("%d records, %v, want 1", len(entries), err)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	if err := (Options{}).Validate(); err != nil {
		t.Errorf("the zero value: got %v, want nil", err)
	}
	bad := Options{
		OutputBytes: 10, ExecTimeout: time.Hour, IdleTTL: -1, EnvironAdd: []string{"X"}, Route: strings.Repeat("x", 129),
		WorkDir: filepath.Join(t.TempDir(), "none"),
	}
	err := bad.Validate()
	if err == nil {
		t.Fatal("got nil, want six problems")
	}
	if got := strings.Count(err.Error(), "\n") + 1; got != 6 {
		t.Errorf("got %d problems, want 6: %v", got, err)
	}
	h := New(t.TempDir(), bad)
	if err := h.Prepare(); err == nil {
		t.Error("Prepare: got nil, want the problems")
	}
	got, _ := h.Execute(t.Context(), executor.Call{Session: "s1", ToolID: ToolSessionOpen})
	if got.Error == nil || got.Error.Code != CodeIO {
		t.Errorf("open: got %+v, want %s", got, CodeIO)
	}
	file := filepath.Join(t.TempDir(), "f")
	must(t, os.WriteFile(file, nil, 0o600))
	if err := New(file, Options{}).Prepare(); err == nil {
		t.Error("a file as root: got nil, want an error")
	}
}
