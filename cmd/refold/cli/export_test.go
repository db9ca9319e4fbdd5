package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refold/refold/internal/bus/bustest"
)

// TestExport: a session becomes a file, which no other file is lost for. In Chromium,
// package web tests what it shows.
func TestExport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.begin("", "run", "s1", "hi", "--no-follow")
	w.waits("s1", 1)
	w.settle("s1", "r1t1", map[string]any{"text": "hello"})
	w.does(0, "transcript", "s1")
	name := filepath.Join(t.TempDir(), "s1.html")
	_, told := w.does(0, "export", "s1", "--html", "--output", name)
	like(t, "export", told, `^wrote .*s1\.html: [0-9]+ events of session s1, the states after [0-9]+ of them\n(?s:.*)only its owner may read it\n$`)
	text, err := os.ReadFile(name)
	bustest.OK(t, err)
	for _, want := range []string{"<!doctype html>", "default-src", `<script id="answers"`, "</html>"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the file lacks %q", want)
		}
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v (%v), want it for its owner alone", info.Mode(), err)
	}
	_, told = w.does(statusFailed, "export", "s1", "--html", "--output", name)
	like(t, "again", told, `file exists: name another file by --output`)
	if again, err := os.ReadFile(name); err != nil || string(again) != string(text) {
		t.Errorf("the file that was there is another one now (%v)", err)
	}
	if out, _ := w.does(0, "export", "s1", "--html", "--output", "-"); !strings.HasSuffix(out, "</html>\n") {
		t.Errorf("on standard output: %.100q", out)
	}
	missing := filepath.Join(t.TempDir(), "none.html")
	_, told = w.does(statusFailed, "export", "nobody", "--html", "--output", missing)
	like(t, "nobody", told, `there is no such session`)
	if _, err := os.Stat(missing); !os.IsNotExist(err) {
		t.Errorf("a session that is not there left a file (%v)", err)
	}
	_, told = w.does(statusUsage, "export", "s1")
	like(t, "no form", told, `give --html; refold replay s1 --export`)
}
