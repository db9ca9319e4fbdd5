package yamlfile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/refold/refold/internal/yamlfile"
)

// laughs is a list of ten aliases of a list of ten aliases, and so on.
func laughs(levels int) string {
	text := "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n"
	for n := 1; n < levels; n++ {
		text += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", n, n, strings.Repeat(fmt.Sprintf("*a%d, ", n-1), 9), n-1)
	}
	return text
}

// TestAttackBombs: a file that would take gigabytes is refused, using a few
// megabytes.
func TestAttackBombs(t *testing.T) { //nolint:paralleltest // it counts what is allocated
	var mapping strings.Builder
	for n := range 1000 {
		fmt.Fprintf(&mapping, "x%d: 1, ", n)
	}
	for name, c := range map[string]struct{ text, want string }{
		"billion laughs":    {laughs(9), "aliases"},
		"wide aliases":      {"a: &a [" + strings.Repeat("x, ", 100_000) + "x]\nb: [" + strings.Repeat("*a, ", 10_000) + "*a]\n", "aliases"},
		"merged":            {"a: &a {" + mapping.String() + "y: 1}\nb:\n" + strings.Repeat("  - <<: *a\n", 1000), "aliases"},
		"brackets":          {strings.Repeat("[", 1<<20), "deep"},
		"braces":            {strings.Repeat("{a: ", 1<<18), "deep"},
		"lists":             {strings.Repeat("- ", 1<<19), "deep"},
		"lists of brackets": {strings.Repeat("- [", 1<<18), "deep"},
		"a long key":        {strings.Repeat("k", 500_000) + ": [" + strings.Repeat("a,", 200_000) + "a]", "shorten the key"},
		"too long":          {strings.Repeat("# \n", 1<<20), "1048576 bytes"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := yamlfile.Check([]byte(c.text))
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, c.want)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 512<<20 {
			t.Errorf("%s: %d MiB were allocated", name, took>>20)
		}
	}
}

// TestOrdinaryFiles: aliases of a few values, long texts, and usual nesting are
// accepted.
func TestOrdinaryFiles(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"aliases":    "a: &a {x: 1, y: [1, 2]}\nb: *a\nc:\n  <<: *a\n  x: 2\n",
		"of itself":  "a: &a [1, *a]\n",
		"many":       strings.Repeat("- {say: hello, calls: [{tool: read_file, arguments: {path: a.txt}}]}\n", 10_000),
		"a long one": "a: |\n" + strings.Repeat("  "+strings.Repeat("[{x: ", 200)+"\n", 500),
		"empty":      "",
		"laughs":     laughs(4),
		"nested":     "a:\n- b:\n  - c:\n    - d: [{e: [f]}]\n",
	} {
		file := filepath.Join(t.TempDir(), "f.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := yamlfile.Read(file)
		var value any
		if err == nil {
			err = yaml.Unmarshal(got, &value)
		}
		if err != nil && text != "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
