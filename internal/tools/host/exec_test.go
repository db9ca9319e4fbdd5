package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestExec(t *testing.T) {
	t.Parallel()
	execAll(t, newRig(t, Options{}, map[string]string{"sub/f": "text\n"}))
}

// execAll runs what is the same with and without a sandbox.
func execAll(t *testing.T, r *rig) {
	t.Helper()
	for _, c := range []struct{ name, command, want string }{
		{"output", "echo hello", "exit status 0\nhello\n"},
		{"nothing", "true", "exit status 0\n"},
		{"status", "echo no >&2; exit 3", "exit status 3\nno\n"},
		{"both streams in order", "echo a; echo b >&2; echo c", "exit status 0\na\nb\nc\n"},
		{"working directory", "pwd; cat sub/f", "exit status 0\n" + r.dir + "\ntext\n"},
		{"PWD", "echo $PWD", "exit status 0\n" + r.dir + "\n"},
		{"no input", "cat; echo done", "exit status 0\ndone\n"},
		{"not UTF-8", `printf 'a\377\376b'`, "exit status 0\na\uFFFDb"},
		{"not found", "no-such-program 2>/dev/null", "exit status 127\n"},
		{"signal", "kill -TERM $$", "signal: terminated\n"},
		{"syntax", "if", ""},
	} {
		got := r.ok(ToolExec, args{"command": c.command})
		if c.want == "" {
			wantIn(t, got, "exit status 2\n", "yntax error")
			continue
		}
		wantOutput(t, c.name, got, c.want)
	}
	wantOutput(t, "workdir", r.ok(ToolExec, args{"command": "pwd", "workdir": "sub"}), "exit status 0\n"+r.dir+"/sub\n")
	r.refused(CodeNotFound, ToolExec, args{"command": "pwd", "workdir": "nope"})
	r.refused(CodeNotDirectory, ToolExec, args{"command": "pwd", "workdir": "sub/f"})
	r.refused(CodeInvalidArguments, ToolExec, args{"command": " "})
	r.refused(CodeInvalidArguments, ToolExec, args{"command": "echo \x00"})
	r.refused(CodeInvalidArguments, ToolExec, args{"command": "true", "timeout_ms": 0})
}

func TestExecTimeout(t *testing.T) {
	t.Parallel()
	for name, asked := range map[string]func(allowed int) args{
		"what it asks for":          func(allowed int) args { return args{"timeout_ms": allowed * 5 / 6} },
		"more than the host allows": func(int) args { return args{"timeout_ms": 3_600_000} },
		"what the host allows":      func(int) args { return args{} },
	} {
		// A command that has not begun by then has nothing to show: on a machine as
		// busy as that it is given twice as long.
		for allowed := 300; ; allowed *= 2 {
			r := newRig(t, Options{ExecTimeoutMax: time.Duration(allowed) * time.Millisecond}, nil)
			a := asked(allowed)
			a["command"] = "echo begun; sleep 300"
			got := r.call(ToolExec, a)
			if got.Error == nil || got.Error.Code != CodeTimeout || got.Unknown {
				t.Fatalf("%s: got %+v, want %s", name, got, CodeTimeout)
			}
			wantIn(t, got.Error.Detail, fmt.Sprintf("longer timeout_ms (up to %d)", allowed))
			wantIn(t, got.Output, "stopped after ")
			if strings.Contains(got.Output, "begun\n") {
				break
			}
			if allowed > 60_000 {
				t.Fatalf("%s: %q after %d ms, want what the command said", name, got.Output, allowed)
			}
		}
	}
}

func TestExecOutputIsCut(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{OutputBytes: 2000}, nil)
	got := r.ok(ToolExec, args{"command": `i=0; while [ $i -lt 2000 ]; do echo "line $i"; i=$((i+1)); done`})
	wantIn(t, got, "exit status 0\nline 0\nline 1\n", "line 1999\n", " bytes left out …]\n")
	var all strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&all, "line %d\n", i)
	}
	head, rest, _ := strings.Cut(strings.TrimPrefix(got, "exit status 0\n"), "\n[… ")
	count, tail, _ := strings.Cut(rest, " bytes left out …]\n")
	if !strings.HasPrefix(all.String(), head) || !strings.HasSuffix(all.String(), tail) {
		t.Errorf("got %q, want the beginning and the end", got)
	}
	if want := fmt.Sprint(all.Len() - len(head) - len(tail)); count != want || len(head)+len(tail) != 2000 {
		t.Errorf("%s bytes left out of %d, want %s; kept %d, want 2000", count, all.Len(), want, len(head)+len(tail))
	}
}

// TestCaptureKeepsBothEnds compares with keeping everything.
func TestCaptureKeepsBothEnds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := &capture{max: rapid.IntRange(8, 40).Draw(t, "max")}
		var all strings.Builder
		for range rapid.IntRange(0, 12).Draw(t, "writes") {
			part := rapid.SliceOfN(rapid.SampledFrom([]rune("aé€𝄞\n")), 0, 20).Draw(t, "part")
			all.WriteString(string(part))
			for b := []byte(string(part)); len(b) > 0; { // cut anywhere
				n := rapid.IntRange(1, len(b)).Draw(t, "n")
				c.take(b[:n])
				b = b[n:]
			}
		}
		got, want := c.text(), all.String()
		if len(want) <= c.max {
			if got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
			return
		}
		head, rest, cut := strings.Cut(got, "\n[… ")
		count, tail, _ := strings.Cut(rest, " bytes left out …]\n")
		if !cut || !strings.HasPrefix(want, head) || !strings.HasSuffix(want, tail) || strings.Contains(got, "\uFFFD") {
			t.Fatalf("got %q of %q", got, want)
		}
		if left := len(want) - len(head) - len(tail); count != fmt.Sprint(left) || left < len(want)-c.max || left > len(want)-c.max+6 {
			t.Fatalf("left out %s, want %d: kept %d of at most %d", count, left, len(head)+len(tail), c.max)
		}
	})
}

// TestEnvironment: commands see allowed variables only, and no credentials.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{
		Environ: []string{
			"PATH=" + os.Getenv("PATH"), "HOME=/home/x", "LANG=C", "LC_ALL=C", "GOCACHE=/cache",
			"GOOGLE_API_KEY=secret", "OPENAI_API_KEY=secret", "NATS_CREDS=secret", "TMPDIR=/tmp/x", "HOMEBREW=secret",
		},
		EnvironAdd: []string{"GOFLAGS=-mod=mod", "HOME=/home/y"},
	}, nil)
	got := r.ok(ToolExec, args{"command": "env"})
	wantIn(t, got, "HOME=/home/y\n", "LANG=C\n", "LC_ALL=C\n", "GOCACHE=/cache\n", "TMPDIR=/tmp/x\n", "GOFLAGS=-mod=mod\n", "PWD="+r.dir)
	if strings.Contains(got, "secret") || strings.Contains(got, "/home/x") {
		t.Errorf("got %q: it has what is not allowed", got)
	}
	bare := newRig(t, Options{Environ: []string{}, EnvironAllow: []string{"NONE"}}, nil)
	wantIn(t, bare.ok(ToolExec, args{"command": "ls -d ."}), "exit status 0\n.\n") // there is a PATH
}

// TestCommandsRunConcurrently: each of several commands waits for the other's pipe.
func TestCommandsRunConcurrently(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}, nil)
	for _, name := range []string{"a", "b"} {
		mkfifo(t, filepath.Join(r.dir, name))
	}
	first := r.newCall(ToolExec, args{"command": "echo from-first > a; cat b", "timeout_ms": 60_000})
	second := r.newCall(ToolExec, args{"command": "cat a; echo from-second > b", "timeout_ms": 60_000})
	done := make(chan string)
	go func() {
		got, _ := r.h.Execute(t.Context(), first)
		done <- got.Output
	}()
	wantOutput(t, "second", r.execute(t.Context(), second).Output, "exit status 0\nfrom-first\n")
	wantOutput(t, "first", <-done, "exit status 0\nfrom-second\n")
}
