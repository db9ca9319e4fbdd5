package planner

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestReadQuickAgreesWithTheCodec: arguments read without the codec are equal
// to the codec's, and arguments that the codec refuses are not read.
func TestReadQuickAgreesWithTheCodec(t *testing.T) {
	t.Parallel()
	// Pieces of JSON in any order are mostly none; a text that begins well is
	// malformed a little.
	pieces := []string{
		`{`, `}`, `[`, `]`, `,`, `:`, `"a":`, `"b":`, `"a"`, `"é"`, `"\n"`, "\"\xff\"", "\"\x01\"", `"`, ` `, "\n", `0`, `-0`, `-`, `01`, `7`, `-12`, `1.5`, `1e3`,
		`123456789012345`, `1234567890123456789`, `true`, `false`, `null`, `nul`, `{}`, `[]`, `{"x":{"y":[1,"z"]}}`, "\x00",
	}
	piece := rapid.SampledFrom(pieces)
	rapid.Check(t, func(t *rapid.T) {
		text := drawJSON(t, 0)
		for range rapid.IntRange(0, 3).Draw(t, "faults") {
			at := rapid.IntRange(0, len(text)).Draw(t, "at")
			text = text[:at] + piece.Draw(t, "piece") + text[min(len(text), at+rapid.IntRange(0, 2).Draw(t, "less")):]
		}
		readAsSpelled(t, text)
	})
	for _, text := range []string{
		``, `{`, `{}`, ` { } `, `[]`, `{"b":1,"a":2}`, `{"a":1,"a":2}`, `{"a":-0,"b":00}`, `{"a":1}x`, `{"a":1,}`, `{,}`, `{"a":[1,]}`, `{"a":1 "b":2}`,
		strings.Repeat(`{"a":`, 70) + `1` + strings.Repeat(`}`, 70), `{"":""}`, `{"a":"` + "\x7f" + `"}`, `{"a":"\u0061"}`, `{"a":tru}`, `{"a":"b`,
	} {
		readAsSpelled(t, text)
	}
	if _, ok := readQuick(`{"path": "a/b", "lines": [1, -20], "all": true}`, &membersRoom{}); !ok {
		t.Error("usual arguments are left to the codec")
	}
}

// drawJSON draws a JSON value, an object outside, with its members in any order.
func drawJSON(t *rapid.T, depth int) string {
	kind := rapid.IntRange(0, 5).Draw(t, "kind")
	if depth == 0 {
		kind = 0
	}
	if depth > 5 {
		kind = 5
	}
	switch kind {
	case 0:
		members := make([]string, rapid.IntRange(0, 4).Draw(t, "members"))
		for i := range members {
			members[i] = `"` + rapid.StringMatching(`[a-cé]{0,2}`).Draw(t, "name") + `" :` + drawJSON(t, depth+1)
		}
		return "{" + strings.Join(members, ", ") + " }"
	case 1:
		items := make([]string, rapid.IntRange(0, 3).Draw(t, "items"))
		for i := range items {
			items[i] = drawJSON(t, depth+1)
		}
		return "[ " + strings.Join(items, ",") + "]"
	}
	return rapid.SampledFrom([]string{`"a"`, `""`, `"é b"`, `0`, `-0`, `120`, `-7`, `1.5`, `true`, `false`, `null`, `999999999999999`, `12345678901234567`}).Draw(t, "leaf")
}

func readAsSpelled(t rapid.TB, text string) {
	got, ok := readQuick(text, &membersRoom{})
	if !ok {
		return
	}
	if want, problem := readSpelled(text); problem != "" || !reflect.DeepEqual(got, want) {
		t.Fatalf("%q: got %+v, want %+v, %s", text, got, want, problem)
	}
}
