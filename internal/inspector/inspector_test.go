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
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
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
	first := loaded(t, "app.js", map[string]bool{})
	seen := map[string]bool{}
	session := slices.Concat(loaded(t, "app.js", seen), loaded(t, "session.js", seen))
	for name, part := range map[string]struct {
		text []byte
		most int
	}{
		"the scripts that a page begins with": {first, 45 << 10},
		"the scripts of a session's page":     {session, 45 << 10},
		"the styles":                          {all[".css"], 10 << 10},
		"the scripts of a proof":              {slices.Concat(read(t, "prove.js"), Worker()), 16 << 10},
	} {
		if n := compressed(t, part.text); len(part.text) == 0 || n > part.most {
			t.Errorf("%s: %d bytes compressed, want at most %d", name, n, part.most)
		} else {
			t.Logf("%s: %d bytes compressed", name, n)
		}
	}
}

// read returns an asset.
func read(t *testing.T, name string) []byte {
	t.Helper()
	text, _, ok := Asset(name)
	if !ok {
		t.Fatalf("there is no %s", name)
	}
	return text
}

// compressed returns the size of a text, with gzip.
func compressed(t *testing.T, text []byte) int {
	t.Helper()
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = z.Write(text) // to memory
	_ = z.Close()
	return out.Len()
}

var imports = regexp.MustCompile(`(?m)from '\./([a-z_]+\.js)';$`)

// loaded returns the text of a module and of all that it imports, which a browser loads
// before the module runs.
func loaded(t *testing.T, name string, seen map[string]bool) []byte {
	t.Helper()
	text := read(t, name)
	seen[name] = true
	for _, found := range imports.FindAllSubmatch(text, -1) {
		if name := string(found[1]); !seen[name] {
			text = slices.Concat(text, loaded(t, name, seen))
		}
	}
	return text
}

// TestStarterIsThatOfGo: the script that starts the program is that of the version of Go
// which builds it.
func TestStarterIsThatOfGo(t *testing.T) {
	t.Parallel()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	for own, of := range map[string]string{"wasm/wasm_exec.js": "lib/wasm/wasm_exec.js", "wasm/LICENSE": "LICENSE"} {
		want, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), of))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := wasm.ReadFile(own); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not %s of this version of Go (%v): make wasm copies it", own, of, err)
		}
	}
}

func TestReadProgram(t *testing.T) {
	t.Parallel()
	raw := []byte("\x00asm\x01\x00\x00\x00")
	p, err := ReadProgram(raw)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ReadProgram(p.Compressed)
	if sum := sha256.Sum256(raw); err != nil || again.Hash != p.Hash || p.Hash != hex.EncodeToString(sum[:]) {
		t.Errorf("got %+v and %+v (%v), want the hash of the program in both", p, again, err)
	}
	for _, bad := range []string{"", "#!/bin/sh", "\x1f\x8bno"} {
		if _, err := ReadProgram([]byte(bad)); err == nil {
			t.Errorf("%q is taken", bad)
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
	shell, err := Shell("/x", nil)
	if err != nil || bytes.Contains(shell, []byte("<script>")) || bytes.Contains(shell, []byte(" style=")) || !bytes.Contains(shell, []byte(`data-base="/x"`)) {
		t.Errorf("the shell has a script or a style of its own, or no base (%v): %s", err, shell)
	}
}

// TestOfflineHasWhatPagesAskFor: in an exported file offline.js is in the place of api.js,
// so it has the same names. The modules come each after those that they import.
func TestOfflineHasWhatPagesAskFor(t *testing.T) {
	t.Parallel()
	exported := regexp.MustCompile(`(?m)^export (?:async )?(?:const|function\*?|class) (\w+)`)
	names := func(file string) (all []string) {
		for _, found := range exported.FindAllSubmatch(read(t, file), -1) {
			all = append(all, string(found[1]))
		}
		slices.Sort(all)
		return all
	}
	if api, offline := names("api.js"), names("offline.js"); len(api) < 10 || !slices.Equal(api, offline) {
		t.Errorf("api.js exports %q, and offline.js %q", api, offline)
	}
	modules, err := reportModules()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, m := range modules {
		for _, found := range imported.FindAllStringSubmatch(m[1], -1) {
			if !seen[found[1]] {
				t.Errorf("%s comes before %s, which it imports", m[0], found[1])
			}
		}
		if left := strings.Count(m[1], "from './") + strings.Count(m[1], "import('./") - len(imported.FindAllString(m[1], -1)) - len(later.FindAllString(m[1], -1)); left != 0 {
			t.Errorf("%s has %d imports that the file could not link", m[0], left)
		}
		seen[m[0]] = true
	}
	if !seen["prove.js"] || !seen["preact.js"] || seen["app.js"] {
		t.Errorf("the file has the modules %v", seen)
	}
}
