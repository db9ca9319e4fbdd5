package refold_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// TestSpoilt: every event is spoilt in every place and every way that this test
// knows. What its schema refuses the fold refuses, and the other way round.
func TestSpoilt(t *testing.T) {
	t.Parallel()
	s := readSchemas(t)
	for _, typ := range session.EventTypes() {
		t.Run(typ, func(t *testing.T) {
			t.Parallel()
			packed, err := codec.Marshal(full(t, typ, reach(t, typ)))
			if err != nil {
				t.Fatal(err)
			}
			text, err := codec.ToJSON(packed)
			if err != nil {
				t.Fatal(err)
			}
			doors := s.doors(typ)
			door := doors[len(doors)-1] // what clients may say operators may say in full
			var data any
			if err := json.Unmarshal(text, &data); err != nil {
				t.Fatal(err)
			}
			event := map[string]any{"v": 1, "id": "01K", "type": typ, "at": 1, "by": "ann", "data": data}
			refused, n := 0, 0
			spoil(event, "", func(at string, spoilt any) {
				n++
				payload := jsonOf(t, spoilt)
				bad := s.check("Envelope", payload)
				taken, notices := reach(t, typ).fold(door, payload)
				if taken && bad != nil && !stricter(typ, at) || !taken && bad == nil && !looser(at) {
					t.Errorf("%s: taken by the fold: %v; schema: %v; notices %.300s", at, taken, bad, jsonOf(t, notices))
				}
				if !taken {
					refused++
				}
			})
			if n < 25 || refused < n/4 {
				t.Errorf("%d of %d spoilt messages were refused: is anything spoilt?", refused, n)
			}
		})
	}
}

// stricter reports the ways in which a schema refuses what the fold takes: it
// describes what to say, and the fold passes over what says nothing.
func stricter(typ, at string) bool {
	switch {
	case typ == session.TypeWakeSettled && strings.HasPrefix(at, "/data") && !strings.HasPrefix(at, "/data/effect"):
		return true // a wake has come, whatever else its settlement says
	case strings.HasSuffix(at, "/duration_ms = -1"), at == "/data/calls/1/size = -1":
		return true // nobody reckons with it
	case at == "/data/calls/1 - arguments_blob", at == "/data/calls/1/arguments_blob = null":
		return true // a size of nothing
	case typ == session.TypeToolOverridesSet && strings.HasSuffix(at, " = null"):
		return true // a list that is null counts as absent
	}
	// An optional object or list of a body that is null counts as absent.
	for _, field := range []string{"config", "deadlines_ms", "active_tools", "tool_refs", "step_hook", "text", "usage", "error", "host_session", "output", "budget", "prices", "retry", "codes"} {
		if strings.HasPrefix(at, "/data/") && strings.HasSuffix(at, "/"+field+" = null") {
			return true
		}
	}
	return false
}

// looser reports the places where the fold refuses what a schema can't tell.
func looser(at string) bool {
	return strings.HasSuffix(at, "/when = other") || // it is in a language of its own
		strings.HasSuffix(at, "/approval = other") || // in the same
		at == "/data/arguments = other" || // it is JSON
		strings.Contains(at, "/args_schema") || // and so is this
		strings.HasSuffix(at, "/response_format/schema/type = long") || // it has a size
		at == "/data - profiles" || // default_profile names one, and so does profile_by_provider
		strings.HasPrefix(at, "/data/tools/0") && strings.Contains(at, "description") || // a rule names the descriptor by its hash
		strings.HasSuffix(at, "/resource_key = other") // it has a form
}

// spoil calls try with every variant of a value that differs in one place, and
// says where and how.
func spoil(value any, at string, try func(at string, spoilt any)) {
	with := func(how string, v any) { try(at+how, v) }
	switch v := value.(type) {
	case map[string]any:
		more := maps.Clone(v)
		more["zzz"] = 1
		with(" + zzz", more)
		with(" = text", "x")
		with(" = list", []any{})
		for _, key := range slices.Sorted(maps.Keys(v)) {
			fewer := maps.Clone(v)
			delete(fewer, key)
			with(" - "+key, fewer)
			spoil(v[key], at+"/"+key, func(where string, inner any) {
				changed := maps.Clone(v)
				changed[key] = inner
				try(where, changed)
			})
		}
		with(" = null", nil)
	case []any:
		with(" = text", "x")
		with(" = object", map[string]any{})
		with(" + number", append(slices.Clone(v), 7))
		with(" = 1100 times", slices.Repeat(v[:1], 1100))
		for i := range v {
			spoil(v[i], fmt.Sprintf("%s/%d", at, i), func(where string, inner any) {
				changed := slices.Clone(v)
				changed[i] = inner
				try(where, changed)
			})
		}
		with(" = null", nil)
	case string:
		with(" = number", 7)
		with(" = object", map[string]any{})
		with(" = long", strings.Repeat("x", 300_000))
		with(" = other", "x y")
	case float64:
		with(" = text", "7")
		with(" = fraction", 0.5)
		with(" = -1", -1)
		with(" = huge", 1<<52)
	case bool:
		with(" = number", 1)
	}
}
