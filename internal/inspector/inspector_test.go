package inspector

// The files of the pages: what is served is what is written, and none is larger than it
// should be.

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// TestVendoredModuleIsReproduced: static/preact.js and its licences are what make
// vendor-js wrote, by their hashes, and nobody edited them.
func TestVendoredModuleIsReproduced(t *testing.T) {
	t.Parallel()
	sums, err := os.ReadFile("npm/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(sums)), "\n")
	if len(lines) != 2 {
		t.Fatalf("got %d hashes, want 2", len(lines))
	}
	for _, line := range lines {
		want, name, _ := strings.Cut(line, "  ")
		text, _, ok := Asset(name)
		if sum := sha256.Sum256(text); !ok || hex.EncodeToString(sum[:]) != want {
			t.Errorf("static/%s has the hash %x, and npm/SHA256SUMS says %s: make vendor-js writes both", name, sum, want)
		}
	}
}

// TestAssetsAreWithinTheirBudgets: what a page loads, compressed, and the lines of a file.
func TestAssetsAreWithinTheirBudgets(t *testing.T) {
	t.Parallel()
	all := map[string][]byte{}
	err := fs.WalkDir(static, "static", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, kind, ok := Asset(strings.TrimPrefix(name, "static/"))
		if !ok || kind == "" {
			t.Errorf("%s is not served", name)
		}
		if lines := bytes.Count(text, []byte("\n")); lines >= 400 && path.Ext(name) != ".txt" {
			t.Errorf("%s has %d lines, at most 400 are allowed", name, lines)
		}
		all[path.Ext(name)] = append(all[path.Ext(name)], text...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for ext, most := range map[string]int{".js": 45 << 10, ".css": 10 << 10} {
		var out bytes.Buffer
		z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = z.Write(all[ext]) // to memory
		_ = z.Close()
		if len(all[ext]) == 0 || out.Len() > most {
			t.Errorf("%s: %d bytes compressed, want at most %d", ext, out.Len(), most)
		}
	}
}

// TestAttackNoHTMLFromText: no script makes HTML of a text, or code.
func TestAttackNoHTMLFromText(t *testing.T) {
	t.Parallel()
	sinks := regexp.MustCompile(`dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc|\beval\(|new Function|javascript:|setAttribute\('style'`)
	names, err := fs.Glob(static, "static/*.js")
	if err != nil || len(names) < 10 {
		t.Fatalf("%d scripts (%v)", len(names), err)
	}
	for _, name := range names {
		text, err := static.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if found := sinks.Find(text); found != nil && path.Base(name) != "preact.js" { // which has the first, that none of ours uses
			t.Errorf("%s has %s", name, found)
		}
	}
	shell, err := Shell("/x")
	if err != nil || bytes.Contains(shell, []byte("<script>")) || bytes.Contains(shell, []byte(" style=")) || !bytes.Contains(shell, []byte(`data-base="/x"`)) {
		t.Errorf("the shell has a script or a style of its own, or no base (%v): %s", err, shell)
	}
}
