package yamlfile_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/refold/refold/internal/yamlfile"
)

// FuzzCheck: a text that Check accepts is decoded, or refused by the library,
// without a panic and with memory in proportion to the text.
func FuzzCheck(f *testing.F) {
	for _, text := range []string{
		"a: 1\n", "a: &a [1, 2]\nb: *a\n", "a: &a {x: 1}\nb: {<<: *a, y: 2}\n", "- - - a\n", "? a\n: b\n", "a: !!str 1\n", "a: |\n  text\n", "{a: [b, {c: d}]}",
		"---\na\n---\nb\n", "a: \"\\u263a\"\n", "%YAML 1.2\n---\n", "&a *a", "<<: *a\n", laughs(3), laughs(7), strings.Repeat("[", 70),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 64<<10 {
			return
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if yamlfile.Check([]byte(text)) == nil {
			var value any
			_ = yaml.Unmarshal([]byte(text), &value)
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 1<<30 {
			t.Errorf("%d bytes took %d MiB", len(text), took>>20)
		}
	})
}
