package docs_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/refold/refold/actors/session"
)

// TestMalformedMessages: messages that are damaged at random in up to three places, and
// sent as JSON or as msgpack. What the schema refuses the fold refuses, and what
// the schema takes the fold does not refuse by its shape.
func TestMalformedMessages(t *testing.T) {
	t.Parallel()
	s := readSchemas(t)
	var taken atomic.Int64 // of all types: of some few are
	t.Cleanup(func() {
		if taken.Load() == 0 {
			t.Error("no damaged message was taken")
		}
	})
	for _, typ := range agreeing() {
		t.Run(typ, func(t *testing.T) {
			t.Parallel()
			a := newAgreement(t, s, typ)
			refused := 0
			rapid.Check(t, func(t *rapid.T) {
				message := a.base
				for range rapid.IntRange(1, 3).Draw(t, "places") {
					spots := a.spotsOf(message)
					p := spots[rapid.IntRange(0, len(spots)-1).Draw(t, "place")]
					variants := a.variants(p)
					message = p.set(variants[rapid.IntRange(0, len(variants)-1).Draw(t, "variant")])
				}
				if a.isOther(message) {
					return
				}
				outcome, complaint := a.try(message, false)
				if complaint != "" {
					t.Fatalf("%.2000s: %s", jsonText(message), complaint)
				}
				if outcome.code != "" {
					refused++
				}
			})
			taken.Add(int64(a.tried - refused))
			if refused == 0 {
				t.Errorf("none of %d damaged messages was refused", a.tried)
			}
		})
	}
}

// TestBinariesAreRefused: JSON has no binaries, so an event that holds one is
// refused by its shape, wherever it stands: also inside an object that nobody
// looks into, and between items that go back to a provider.
func TestBinariesAreRefused(t *testing.T) {
	t.Parallel()
	s := readSchemas(t)
	for _, typ := range agreeing() {
		t.Run(typ, func(t *testing.T) {
			t.Parallel()
			a, n := newAgreement(t, s, typ), 0
			for _, size := range []int{0, 3, 32, 300, 70_000} {
				everywhere(a.base, make([]byte, size), "", func(at string, message any) {
					payload, err := packedOf(message)
					if err != nil {
						t.Fatal(err)
					}
					n++
					outcome := a.fold(payload)
					if isWake := typ == session.TypeWakeSettled && at == "/data/zzz"; !outcome.byShape() && !isWake { // it has come
						t.Errorf("%d bytes at %s: got %q, want that it is refused by its shape", size, at, outcome.code)
					}
				})
			}
			if n < 25 {
				t.Errorf("%d messages", n)
			}
		})
	}
}

// everywhere calls try with every message that has a value in one more place
// than value has, or in place of another.
func everywhere(value any, put any, at string, try func(at string, message any)) {
	if at != "" {
		try(at, put)
	}
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			everywhere(v[key], put, at+"/"+key, func(at string, inner any) { try(at, with(v, key, inner)) })
		}
		try(at+"/zzz", with(v, "zzz", put))
	case []any:
		try(at+"/-", append(slices.Clone(v), put))
		for i := range v {
			everywhere(v[i], put, fmt.Sprintf("%s/%d", at, i), func(at string, inner any) {
				list := slices.Clone(v)
				list[i] = inner
				try(at, list)
			})
		}
	}
}

// TestNullableFields: the lists that readers take null for are those that the
// page names, and the optional objects that they don't are too.
func TestNullableFields(t *testing.T) {
	t.Parallel()
	s := readSchemas(t)
	lists, objects := map[string]bool{}, map[string]bool{}
	for _, typ := range agreeing() {
		a := newAgreement(t, s, typ)
		for _, p := range a.spotsOf(a.base) {
			object, _ := p.value.(map[string]any)
			for field := range declared(p.all) {
				if object == nil {
					continue
				}
				null := a.fold(jsonOf(t, p.set(with(object, field, nil)))).code == ""
				absent := a.fold(jsonOf(t, p.set(without(object, field)))).code == ""
				switch types := typesOf(a.inside(p.all, field)); {
				case types["array"] && null:
					lists[field] = true
				case types["object"] && absent && !null:
					objects[field] = true
				}
			}
		}
	}
	text := strings.Join(strings.Fields(sections(t, protocolDoc)["Encoding"]), " ")
	for begins, got := range map[string]map[string]bool{"These lists may be null: ": lists, "These objects may not be null: ": objects} {
		_, rest, found := strings.Cut(text, begins)
		rest, _, _ = strings.Cut(rest, ".")
		var want []string
		for _, name := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(rest, -1) {
			want = append(want, name[1])
		}
		if !found || !sameSet(slices.Collect(maps.Keys(got)), want) {
			t.Errorf("%s%v, the page says %v", begins, slices.Sorted(maps.Keys(got)), want)
		}
	}
}

// TestTranscriptsWindow: wherever a page says how much a transcript holds, it is
// what limits.go says.
func TestTranscriptsWindow(t *testing.T) {
	t.Parallel()
	want := fmt.Sprintf("%d,%03d items, KiB %d", session.ItemsMax/1000, session.ItemsMax%1000, session.TranscriptBytesMax>>10)
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, page := range append(pages, "README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`([0-9,]+) items, (?:and|or)( about)? ([0-9]+) KiB of references`).FindAllStringSubmatch(string(text), -1) {
			told[page] = true
			if got := fmt.Sprintf("%s items, KiB %s%s", m[1], m[3], m[2]); got != want {
				t.Errorf("%s: %q, want %s", page, m[0], want)
			}
		}
	}
	if !told[protocolDoc] || !told["docs/semantics.md"] {
		t.Errorf("told by %v alone", told)
	}
}
