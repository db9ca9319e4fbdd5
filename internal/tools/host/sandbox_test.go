package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/tools/sandbox"
)

// The sandbox has tests of its own. Here: the shell runs in it, with the same
// output as without.

// boxed returns a sandbox, and what holds in it. Where this system has none at
// all, the report must say so, and the shell runs as without one.
func boxed(t *testing.T) (*sandbox.Box, sandbox.Report) {
	t.Helper()
	box, report, err := sandbox.New(sandbox.Config{})
	must(t, err)
	if box == nil && !strings.HasPrefix(report.String(), "sandbox enforces nothing; not enforced: files (") {
		t.Fatalf("there is no sandbox, and the report says %q", report)
	}
	return box, report
}

func TestExecInSandbox(t *testing.T) {
	t.Parallel()
	box, _ := boxed(t)
	execAll(t, newRig(t, Options{Sandbox: box}, map[string]string{"sub/f": "text\n"}))
}

func TestExecInSandboxTimeout(t *testing.T) {
	t.Parallel()
	box, report := boxed(t)
	r := newRig(t, Options{Sandbox: box}, nil)
	got := r.call(ToolExec, args{"command": "(trap '' TERM HUP; setsid sleep 300) & echo begun; sleep 300", "timeout_ms": 3000})
	if got.Error == nil || got.Error.Code != CodeTimeout {
		t.Fatalf("got %+v, want %s", got, CodeTimeout)
	}
	wantIn(t, got.Output, "stopped after ", "begun\n")
	if report.Holds(sandbox.Ends) && strings.Contains(got.Output, "outside of the command's process group") {
		t.Errorf("a process is left: %q", got.Output)
	}
}

func TestExecInSandboxWorkDir(t *testing.T) {
	t.Parallel()
	box, report := boxed(t)
	r := newRig(t, Options{Sandbox: box, Environ: []string{"PATH=/usr/bin:/bin", "OPENAI_API_KEY=sk-secret", "HOME=/root"}}, nil)
	if out := r.ok(ToolExec, args{"command": "env"}); strings.Contains(out, "secret") {
		t.Errorf("environment: %q; want no key", out)
	}
	if box != nil {
		wantOutput(t, "home", r.ok(ToolExec, args{"command": "echo $HOME; echo x > $TMPDIR/f && cat $TMPDIR/f"}), "exit status 0\n"+r.dir+"\nx\n")
	}
	left, err := filepath.Glob(filepath.Join(r.dir, tempPrefix+"*"))
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files after the call: %v, %v; want none", left, err)
	}
	other := filepath.Join(r.root, "other")
	must(t, os.MkdirAll(other, 0o755))
	must(t, os.WriteFile(filepath.Join(other, "f"), []byte("theirs"), 0o644))
	for _, line := range []string{"cat " + other + "/f", "cat ../.sessions/*", "echo x > " + other + "/g"} {
		if out := r.ok(ToolExec, args{"command": line}); report.Holds(sandbox.Files) && (!strings.HasPrefix(out, "exit status ") || strings.HasPrefix(out, "exit status 0")) {
			t.Errorf("%s: %q; want it refused", line, out)
		}
	}
}

func TestExecStopsAFlood(t *testing.T) {
	t.Parallel()
	box, _ := boxed(t)
	for name, b := range map[string]*sandbox.Box{"in a sandbox": box, "without": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Options{Sandbox: b, OutputMax: 1 << 20, ExecTimeout: time.Minute}, nil)
			got := r.call(ToolExec, args{"command": "yes"})
			if got.Error == nil || got.Error.Code != CodeResourceLimit || got.Unknown {
				t.Fatalf("got %+v, want %s", got.Error, CodeResourceLimit)
			}
			wantIn(t, got.Output, "stopped: too much output\n", "bytes left out")
		})
	}
}

// TestTemporaryDirectory: it lies in the same mount as the working directory, so
// that files can be renamed into it. Git and the file tools don't see it, and
// nothing of it is left.
func TestTemporaryDirectory(t *testing.T) {
	t.Parallel()
	box, _ := boxed(t)
	if box == nil {
		t.Fatal("there is no sandbox on this system, so nothing is tested")
	}
	r := newRig(t, Options{Sandbox: box}, map[string]string{"sub/f": "text\n"})
	mkfifo(t, filepath.Join(r.dir, "ready"))
	mkfifo(t, filepath.Join(r.dir, "go"))
	const line = `git init -q . && git status --porcelain && test -d "$TMPDIR" && perl -e 'rename "sub/f", "$ENV{TMPDIR}/f" and rename "$ENV{TMPDIR}/f", "sub/g" or die $!' && ln sub/g $TMPDIR/h && mkdir -p $TMPDIR/a/b && echo needle >$TMPDIR/a/b/c && chmod 000 $TMPDIR/a/b && chmod 000 $TMPDIR/a && echo x >ready && read never <go`
	other := *r
	done, waits := make(chan executor.Result, 1), make(chan error, 1)
	go func() { done <- r.call(ToolExec, args{"command": line}) }()
	go func() {
		_, err := os.ReadFile(filepath.Join(r.dir, "ready"))
		waits <- err
	}()
	select {
	case got := <-done:
		t.Fatalf("the command: %+v, want it to wait", got)
	case err := <-waits:
		must(t, err)
	}
	for tool, a := range map[string]args{ToolListDir: nil, ToolGlob: {"pattern": "**"}, ToolGrep: {"pattern": "needle"}} {
		if out := other.ok(tool, a); strings.Contains(out, tempPrefix) {
			t.Errorf("%s: %q; want no temporary directory", tool, out)
		}
	}
	must(t, os.WriteFile(filepath.Join(r.dir, "go"), []byte("x\n"), 0o600))
	wantOutput(t, "the command", (<-done).Output, "exit status 0\n?? sub/\n")
	left, err := filepath.Glob(filepath.Join(r.dir, tempPrefix+"*"))
	if err != nil || len(left) > 0 {
		t.Errorf("temporary directories after the call: %v, %v; want none", left, err)
	}
}

// TestReadOnlyWorkingDirectory: a command can undo that it made the working
// directory read-only.
func TestReadOnlyWorkingDirectory(t *testing.T) {
	t.Parallel()
	box, _ := boxed(t)
	r := newRig(t, Options{Sandbox: box}, nil)
	r.ok(ToolExec, args{"command": "chmod 0555 ."})
	wantOutput(t, "chmod", r.ok(ToolExec, args{"command": "chmod 0755 ."}), "exit status 0\n")
}

// TestAttackSwappedDirectory: two sessions share a directory. One of them replaces
// the other's working directory by a link that leads out, while commands start.
func TestAttackSwappedDirectory(t *testing.T) {
	t.Parallel()
	box, report := boxed(t)
	if !report.Holds(sandbox.Files) {
		t.Fatalf("files are not confined on this system, so nothing is tested: %s", report)
	}
	out := outside(t)
	r := newRig(t, Options{Sandbox: box}, map[string]string{"sub/own": "x"})
	opened := r.call(ToolSessionOpen, args{"workdir": rigSession + "/sub"})
	if opened.Error != nil {
		t.Fatal(opened.Error)
	}
	r.hs = opened.HostSession
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		sub, moved := filepath.Join(r.dir, "sub"), filepath.Join(r.dir, "moved")
		for {
			_ = os.Rename(sub, moved)
			_ = os.Symlink(out, sub)
			_ = os.Remove(sub)
			_ = os.Rename(moved, sub)
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	for range 1500 {
		r.call(ToolExec, args{"command": "echo x >escaped; chmod 0604 secret"}) // most find no directory
	}
	close(stop)
	<-done
	if fi, err := os.Stat(filepath.Join(out, "secret")); err != nil || fi.Mode().Perm() != 0o644 {
		t.Errorf("the file outside: %v, %v; want it unchanged", fi, err)
	}
	if entries, err := os.ReadDir(out); err != nil || len(entries) != 1 {
		t.Errorf("outside: %v, %v; want no new file", entries, err)
	}
}
