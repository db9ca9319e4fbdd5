package docs_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestOptionalFieldsOfEffects: the page lists the fields that an effect may be
// without, which a bridge of an earlier release may not know, and no others.
func TestOptionalFieldsOfEffects(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "| effect | optional fields |\n|---|---|\n")
	if !found {
		t.Fatal("docs/protocol.md has no table of the optional fields of effects")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	got := map[string][]string{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		for _, field := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(cells[2], -1) {
			got[strings.TrimSpace(cells[1])] = append(got[strings.TrimSpace(cells[1])], field[1])
		}
	}
	s := readSchemas(t)
	for _, name := range effectSchemas {
		properties, _ := s.docs[name]["properties"].(map[string]any)
		required, _ := s.docs[name]["required"].([]any)
		var want []string
		for field := range properties {
			if !slices.Contains(required, any(field)) {
				want = append(want, field)
			}
		}
		slices.Sort(want)
		if !slices.Equal(got[name], want) {
			t.Errorf("optional fields of %s: docs/protocol.md has %v, docs/schemas/%s.json %v", name, got[name], name, want)
		}
	}
}
