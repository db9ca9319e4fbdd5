package planner_test

// Keys of paths: random spellings of random paths, compared with the original
// path. The spellings are made without path.Clean.

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/refold/refold/planner"
)

const keyRoot = "/srv/s1"

// drawClean draws a clean path below the root, as its parts.
func drawClean(t *rapid.T, label string) []string {
	return rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "f.txt", "..a", "a b", "ä"}), 0, 4).Draw(t, label)
}

// drawSpelling draws one of the ways to write a path.
func drawSpelling(t *rapid.T, parts []string, label string) string {
	var b strings.Builder
	absolute := rapid.Bool().Draw(t, label+" absolute")
	if absolute {
		b.WriteString(rapid.SampledFrom([]string{keyRoot, "/srv/./s1", "//srv//s1", "/srv/x/../s1"}).Draw(t, label+" root"))
	}
	detour := func() { // goes nowhere, and ends between two parts
		for range rapid.IntRange(0, 2).Draw(t, label+" detours") {
			if b.Len() > 0 {
				b.WriteByte('/')
			}
			b.WriteString(rapid.SampledFrom([]string{".", "d/..", "d//..", "d/./e/../.."}).Draw(t, label+" detour"))
		}
	}
	for _, part := range parts {
		detour()
		if b.Len() > 0 {
			b.WriteString(rapid.SampledFrom([]string{"/", "//"}).Draw(t, label+" slash"))
		}
		b.WriteString(part)
	}
	detour()
	if b.Len() == 0 {
		return "."
	}
	return b.String() + rapid.SampledFrom([]string{"", "/"}).Draw(t, label+" end")
}

// pathKey returns the key of a call of read_file.
func pathKey(t *rapid.T, reg *planner.Registry, ts *planner.Toolset, root, name string) planner.Key {
	arguments, err := json.Marshal(map[string]string{"path": name})
	if err != nil {
		t.Fatal(err)
	}
	checker := planner.Checker{Root: root}
	call, why := checker.Check(reg, ts, planner.ObservedCall{ToolName: "read_file", Arguments: string(arguments)})
	if !why.OK() {
		t.Fatalf("read_file %q: %+v", name, why)
	}
	return call.Key
}

// TestSpellingsOfAPathAreOneKey: two spellings give one key if and only if they
// are of one path.
func TestSpellingsOfAPathAreOneKey(t *testing.T) {
	t.Parallel()
	reg := builtin(t)
	ts := planner.Select(reg, planner.Request{}, planner.Facts{HostSession: "ready"})
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawClean(t, "a"), drawClean(t, "b")
		first, again, other := drawSpelling(t, a, "first"), drawSpelling(t, a, "again"), drawSpelling(t, b, "other")
		key := pathKey(t, reg, &ts, keyRoot, first)
		if want := strings.Join(a, "/"); key.Bare != "host.fs" || key.Part != want && (want != "" || key.Part != ".") {
			t.Fatalf("%q: key %s, want that of %q", first, key, want)
		}
		if got := pathKey(t, reg, &ts, keyRoot, again); got != key {
			t.Fatalf("%q and %q: keys %s and %s, want one", first, again, key, got)
		}
		same := strings.Join(a, "/") == strings.Join(b, "/")
		if got := pathKey(t, reg, &ts, keyRoot, other); (got == key) != same {
			t.Fatalf("%q and %q: keys %s and %s, one path: %v", first, other, key, got, same)
		}
	})
}

// TestPathOutsideGetsTheBareKey: it overlaps every path, so such a call never
// runs concurrently with a write.
func TestPathOutsideGetsTheBareKey(t *testing.T) {
	t.Parallel()
	reg := builtin(t)
	ts := planner.Select(reg, planner.Request{}, planner.Facts{HostSession: "ready"})
	rapid.Check(t, func(t *rapid.T) {
		inside := drawSpelling(t, drawClean(t, "inside"), "inside")
		out := rapid.SampledFrom([]string{"..", "../s1", "../" + "x", "/", "/srv", "/srv/s10", "/srv/s1x/f", "/etc/passwd", keyRoot + "/.."}).Draw(t, "out")
		if !strings.HasPrefix(out, "/") {
			out = rapid.SampledFrom([]string{"", "./", "d/../"}).Draw(t, "before") + out
		}
		if got, want := pathKey(t, reg, &ts, keyRoot, out), (planner.Key{Bare: "host.fs"}); got != want {
			t.Fatalf("%q: key %s, want %s", out, got, want)
		}
		if got := pathKey(t, reg, &ts, "", inside); strings.HasPrefix(inside, "/") != (got.Part == "") {
			t.Fatalf("%q without a root: key %s", inside, got)
		}
	})
}
