package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestReadFile(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3000)
	r := newRig(t, Options{OutputBytes: 1024}, map[string]string{
		"f": "one\ntwo\nthree\n", "no-end": "one\ntwo", "empty": "", "crlf": "a\r\nb\r\n",
		"latin1": "caf\xe9\n", "long": "a\n" + long + "\nb\n", "big": strings.Repeat("123456789\n", 1000),
		"bin": "\x7fELF\x00\x01", "dir/f": "deep",
	})
	for _, c := range []struct {
		name string
		a    args
		want string
	}{
		{"whole", args{"path": "f"}, "one\ntwo\nthree\n"},
		{"without line end", args{"path": "no-end"}, "one\ntwo"},
		{"empty", args{"path": "empty"}, "[the file is empty]"},
		{"line ends as they are", args{"path": "crlf"}, "a\r\nb\r\n"},
		{"not UTF-8", args{"path": "latin1"}, "caf\uFFFD\n"},
		{"from a line", args{"path": "f", "offset": 2}, "two\nthree\n[lines 2 to 3 of 3]"},
		{"some lines", args{"path": "f", "limit": 2}, "one\ntwo\n[lines 1 to 2 of 3; go on with offset 3]"},
		{"as many as there are", args{"path": "f", "limit": 3}, "one\ntwo\nthree\n"},
		{"in the middle", args{"path": "f", "offset": 2, "limit": 1}, "two\n[lines 2 to 2 of 3; go on with offset 3]"},
		{"last without line end", args{"path": "no-end", "offset": 2}, "two\n[lines 2 to 2 of 2]"},
		{"cut at the cap", args{"path": "big"}, strings.Repeat("123456789\n", 102) + "[lines 1 to 102 of 1000; go on with offset 103]"},
		{"a long line is not begun", args{"path": "long"}, "a\n[lines 1 to 1 of 3; go on with offset 2]"},
		{"a long line alone is cut", args{"path": "long", "offset": 2}, long[:1024] +
			"\n[lines 2 to 2 of 3; line 2 is cut, 1977 bytes of it are left out: use the shell to see them; go on with offset 3]"},
		{"absolute", args{"path": filepath.Join(r.dir, "f")}, "one\ntwo\nthree\n"},
		{"not clean", args{"path": "./dir//../f"}, "one\ntwo\nthree\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := r.h.Execute(t.Context(), (&rig{t: t, hs: r.hs}).newCall(ToolReadFile, c.a))
			if err != nil || got.Error != nil {
				t.Fatalf("got %v, %v", got.Error, err)
			}
			wantOutput(t, c.name, got.Output, c.want)
		})
	}
	wantIn(t, r.refused(CodeBinaryFile, ToolReadFile, args{"path": "bin"}), "6 bytes", "xxd")
	wantIn(t, r.refused(CodeIsDirectory, ToolReadFile, args{"path": "dir"}), "list_dir")
	wantIn(t, r.refused(CodeNotFound, ToolReadFile, args{"path": "nope"}), "nope", "glob")
	r.refused(CodeNotFound, ToolReadFile, args{"path": "no/such/dir"})
	r.refused(CodeNotDirectory, ToolReadFile, args{"path": "f/x"})
	wantIn(t, r.refused(CodeInvalidArguments, ToolReadFile, args{"path": "f", "offset": 4}), "past the end", "3 lines")
	r.refused(CodeInvalidArguments, ToolReadFile, args{"path": ""})
	r.refused(CodeInvalidArguments, ToolReadFile, args{"path": "a\x00b"})
}

// TestReadLongLines: lines longer than the read buffer.
func TestReadLongLines(t *testing.T) {
	t.Parallel()
	const limit = 200 << 10
	long := strings.Repeat("x", 300<<10) + "\n"
	fits := strings.Repeat("y", 150<<10) + "\n"
	r := newRig(t, Options{OutputBytes: limit}, map[string]string{"f": "a\n" + fits + long + "b\n"})
	wantOutput(t, "not begun", r.ok(ToolReadFile, args{"path": "f"}),
		"a\n"+fits+"[lines 1 to 2 of 4; go on with offset 3]")
	wantOutput(t, "cut", r.ok(ToolReadFile, args{"path": "f", "offset": 3}), long[:limit]+
		fmt.Sprintf("\n[lines 3 to 3 of 4; line 3 is cut, %d bytes of it are left out: use the shell to see them; go on with offset 4]", len(long)-limit))
	wantOutput(t, "after it", r.ok(ToolReadFile, args{"path": "f", "offset": 4}), "b\n[lines 4 to 4 of 4]")
}

// TestReadWindowsGiveEveryLineOnce: reading from note to note.
func TestReadWindowsGiveEveryLineOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{OutputBytes: 1024}, nil)
	rapid.Check(t, func(t *rapid.T) {
		var want strings.Builder
		n := rapid.IntRange(1, 30).Draw(t, "lines")
		for i := range n {
			fmt.Fprintf(&want, "%d%s\n", i, strings.Repeat("é", rapid.IntRange(0, 500).Draw(t, "length")))
		}
		r.write("f", want.String())
		var got strings.Builder
		offset := 1
		for range n {
			text := r.ok(ToolReadFile, args{"path": "f", "offset": offset})
			if len(text) > 1024+200 {
				t.Fatalf("%d bytes", len(text))
			}
			body, note, _ := strings.Cut(text, "[lines ")
			got.WriteString(body)
			_, next, more := strings.Cut(note, "go on with offset ")
			if !more {
				break
			}
			if _, err := fmt.Sscan(strings.TrimSuffix(next, "]"), &offset); err != nil {
				t.Fatal(err)
			}
		}
		if got.String() != want.String() {
			t.Fatalf("got %q, want %q", got.String(), want.String())
		}
	})
}

// TestPipesAreRefused: a named pipe would block a reader for ever.
func TestPipesAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}, nil)
	if err := syscall.Mkfifo(filepath.Join(r.dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.refused(CodeNotRegular, ToolReadFile, args{"path": "pipe"})
	r.refused(CodeNotRegular, ToolGrep, args{"pattern": "x", "path": "pipe"})
	r.refused(CodeNotRegular, ToolWriteFile, args{"path": "pipe", "content": "x"})
	r.refused(CodeNotRegular, ToolEditFile, args{"path": "pipe", "old_text": "x", "new_text": "y"})
	r.refused(CodeNotRegular, ToolApplyPatch, args{"patch": "*** Begin Patch\n*** Delete File: pipe\n*** End Patch"})
	wantOutput(t, "grep passes it over", r.ok(ToolGrep, args{"pattern": "x"}), "no matches in 0 files")
	wantIn(t, r.ok(ToolStat, args{"path": "pipe"}), "type: other")
}

func TestStatExists(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}, map[string]string{"d/f": "12345"})
	r.symlink("d", "link")
	r.symlink("nowhere", "dangling")
	when := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := os.Chtimes(filepath.Join(r.dir, "d/f"), when, when); err != nil {
		t.Fatal(err)
	}
	want := "path: d/f\ntype: file\nsize: 5\nmode: -rw-r--r--\nmodified: 2026-01-02T03:04:05Z\n"
	wantOutput(t, "a file", r.ok(ToolStat, args{"path": "d/f"}), want)
	wantOutput(t, "through a link", r.ok(ToolStat, args{"path": "link/f"}), want)
	wantIn(t, r.ok(ToolStat, args{"path": "."}), "path: .\n", "type: directory\n")
	r.refused(CodeNotFound, ToolStat, args{"path": "nope"})
	r.refused(CodeNotFound, ToolStat, args{"path": "dangling"})
	for path, want := range map[string]string{
		"d": "true", "d/f": "true", "link/f": "true", ".": "true", r.dir: "true",
		"nope": "false", "d/nope/deep": "false", "d/f/below": "false", "dangling": "false",
	} {
		wantOutput(t, "exists "+path, r.ok(ToolExists, args{"path": path}), want)
	}
}

func TestListDir(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}, map[string]string{"b.txt": "12", "a/x": "", "new\nline": ""})
	r.symlink("b.txt", "c")
	want := "directory\t-\ta/\nfile\t2\tb.txt\nlink\t-\tc -> b.txt\nfile\t0\tnew\\nline\n"
	wantOutput(t, "the working directory", r.ok(ToolListDir, nil), want)
	wantOutput(t, "by name", r.ok(ToolListDir, args{"path": "a"}), "file\t0\tx\n")
	if err := os.Mkdir(filepath.Join(r.dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	wantOutput(t, "empty", r.ok(ToolListDir, args{"path": "empty"}), "[the directory is empty]")
	wantIn(t, r.refused(CodeNotDirectory, ToolListDir, args{"path": "a/x"}), "use its directory a")
	r.refused(CodeNotFound, ToolListDir, args{"path": "nope"})
	for i := range namesMax {
		r.write(fmt.Sprintf("many/%04d", i), "")
	}
	r.write("many/x1", "")
	r.write("many/x2", "")
	wantIn(t, r.ok(ToolListDir, args{"path": "many"}), "file\t0\t0000\n", "[2 more; use glob")
}

func TestGlob(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}, map[string]string{"a.go": "", "b.txt": "", "p/c.go": "", "p/q/d.go": "", "p/q/e.md": "", "lit[1].go": ""})
	r.symlink("p", "link")
	for pattern, want := range map[string]string{
		"*.go":         "a.go\nlit[1].go\n",
		"**/*.go":      "a.go\nlit[1].go\np/c.go\np/q/d.go\n",
		"p/**":         "p/\np/c.go\np/q/\np/q/d.go\np/q/e.md\n",
		"*":            "a.go\nb.txt\nlink\nlit[1].go\np/\n",
		"**/*.{md,go}": "a.go\nlit[1].go\np/c.go\np/q/d.go\np/q/e.md\n",
		"./p/./*.go":   "p/c.go\n",
		"lit\\[1].go":  "lit[1].go\n",
		"[ab].*":       "a.go\nb.txt\n",
		"*.rs":         "no matches",
		"p":            "p/\n",
		"p/":           "p/\n",
		".":            "./\n",
	} {
		wantOutput(t, pattern, r.ok(ToolGlob, args{"pattern": pattern}), want)
	}
	wantOutput(t, "absolute", r.ok(ToolGlob, args{"pattern": r.dir + "/p/*.go"}), "p/c.go\n")
	wantIn(t, r.refused(CodeInvalidArguments, ToolGlob, args{"pattern": "[a"}), "no glob")
	r.refused(CodeInvalidArguments, ToolGlob, args{"pattern": ""})
	for _, out := range []string{"../*", "p/../../*", "/etc/*"} {
		r.refused(CodePathEscapes, ToolGlob, args{"pattern": out})
	}
	for i := range namesMax + 3 {
		r.write(fmt.Sprintf("many/%04d", i), "")
	}
	wantIn(t, r.ok(ToolGlob, args{"pattern": "many/*"}), "many/0000\n", "[3 more; use a narrower pattern]")
}

func TestGrep(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}, map[string]string{
		"a.go": "package a\nfunc Foo() {}\n", "sub/b.go": "func foo() {}\r\n// Foo\n", "sub/c.txt": "Foo\n",
		"bin": "Foo\x00", ".git/config": "Foo\n", ".hidden": "Foo\n", "wide": strings.Repeat("é", 400) + "Foo\n",
	})
	r.symlink("a.go", "link.go")
	for _, c := range []struct {
		name string
		a    args
		want string
	}{
		{"all", args{"pattern": "Foo", "glob": "*.{go,txt}"}, "a.go:2:func Foo() {}\nsub/b.go:2:// Foo\nsub/c.txt:1:Foo\n"},
		{"hidden files, not .git", args{"pattern": "^Foo$"}, ".hidden:1:Foo\nsub/c.txt:1:Foo\n"},
		{"ignoring case", args{"pattern": "^FUNC foo", "ignore_case": true}, "a.go:2:func Foo() {}\nsub/b.go:1:func foo() {}\n"},
		{"below", args{"pattern": "Foo", "path": "sub"}, "sub/b.go:2:// Foo\nsub/c.txt:1:Foo\n"},
		{"one file", args{"pattern": "Foo", "path": "sub/c.txt"}, "sub/c.txt:1:Foo\n"},
		{"one file by a link", args{"pattern": "Foo", "path": "link.go"}, "a.go:2:func Foo() {}\n"},
		{"glob of paths", args{"pattern": "Foo", "glob": "sub/**/*.go"}, "sub/b.go:2:// Foo\n"},
		{"glob of any depth", args{"pattern": "Foo", "glob": "**/*.go"}, "a.go:2:func Foo() {}\nsub/b.go:2:// Foo\n"},
		{"none", args{"pattern": "Bar", "glob": "*.go"}, "no matches in 2 files"},
		{"long line", args{"pattern": "Foo", "path": "wide"}, "wide:1:" + strings.Repeat("é", 250) + " […]\n"},
		{"not case", args{"pattern": "foo", "ignore_case": false, "path": "sub"}, "sub/b.go:1:func foo() {}\n"},
	} {
		wantOutput(t, c.name, r.ok(ToolGrep, c.a), c.want)
	}
	wantIn(t, r.refused(CodeInvalidArguments, ToolGrep, args{"pattern": "a(?=b)"}), "RE2")
	r.refused(CodeInvalidArguments, ToolGrep, args{"pattern": ""})
	r.refused(CodeInvalidArguments, ToolGrep, args{"pattern": "x", "glob": "[a"})
	r.refused(CodeNotFound, ToolGrep, args{"pattern": "x", "path": "nope"})

	r.write("lots", strings.Repeat("needle\n", matchesMax+1))
	got := r.ok(ToolGrep, args{"pattern": "needle"})
	if n := strings.Count(got, "lots:"); n != matchesMax {
		t.Errorf("got %d matches, want %d", n, matchesMax)
	}
	wantIn(t, got, "[stopped after 500 matching lines; there are more")
	r.write("endless", strings.Repeat("y", lineBytesMax+1)+"\nunicorn\n")
	wantIn(t, r.ok(ToolGrep, args{"pattern": "unicorn"}), "no matches", "[1 files or directories were not read to the end")
}

// TestWalksEndWithTheirContext: also a search of a tree.
func TestWalksEndWithTheirContext(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{}, map[string]string{"a/b": "x"})
	p, err := openWorkdir(r.root, rigSession)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, run := range tools {
		switch name {
		case ToolStat, ToolExists, ToolListDir: // one call of the system each
			continue
		}
		raw := map[string]string{
			ToolExec: `{"command":"touch ran"}`, ToolReadFile: `{"path":"a/b"}`, ToolGrep: `{"pattern":"x"}`, ToolGlob: `{"pattern":"**"}`,
			ToolWriteFile: `{"path":"a/b","content":"y"}`, ToolEditFile: `{"path":"a/b","old_text":"x","new_text":"y"}`,
			ToolApplyPatch: `{"patch":"*** Begin Patch\n*** Update File: a/b\n-x\n+y\n*** End Patch"}`,
		}[name]
		before := snapshot(t, r.dir)
		if _, err := run(r.h, ctx, p, []byte(raw)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want %v", name, err, context.Canceled)
		}
		wantSame(t, r.dir, before)
	}
}
