// Package draw draws what models, tools and people may put into a request, for tests
// that hold requests against the rules of package strict.
package draw

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// Keys are keys of properties, some of which an API refuses or a renaming could
// collide with.
var Keys = []string{"a", "b", "$a", "_a", "b[]", "b__", "", "type", "a.b", "9", "Gr\u00fc\u00dfe", "nul\x00", strings.Repeat("k", 65)}

// kinds are the names of types.
var kinds = []string{"string", "integer", "number", "boolean", "null", "array", "object"}

// small returns schemas without others. Callers change what is drawn.
func small() []any {
	return []any{true, false, map[string]any{}, map[string]any{"type": "string"}, map[string]any{"type": "integer"}, map[string]any{"$ref": "#"}}
}

// values returns values of enums, constants and defaults.
func values() []any { return []any{"x", "", 1, 1.5, true, nil, map[string]any{"a": 1}, []any{}} }

// Document draws a whole schema of an object, with definitions.
func Document(t *rapid.T) json.RawMessage {
	root, ok := Schema(t, 4, nil).(map[string]any)
	if !ok {
		root = map[string]any{}
	}
	root["$defs"] = map[string]any{"d": Schema(t, 2, nil)}
	if n := rapid.IntRange(0, 30).Draw(t, "levels"); n > 5 { // a deep one
		root["properties"] = map[string]any{"deep": nested(n)}
	}
	text, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// nested returns a schema of that many objects and lists within each other.
func nested(levels int) (s any) {
	s = map[string]any{"type": "string"}
	for i := range levels {
		if i%2 == 0 {
			s = map[string]any{"type": "object", "properties": map[string]any{"a": s}}
		} else {
			s = map[string]any{"type": "array", "items": s}
		}
	}
	return s
}

// Schema draws a schema: any keywords, on any level, also such that do not go
// together. If without lists any, it has none of these, and every schema with
// keywords has a type, so that none is derived from the others.
func Schema(t *rapid.T, depth int, without []string) any {
	if depth == 0 || rapid.IntRange(0, 9).Draw(t, "leaf") == 0 {
		return rapid.SampledFrom(small()).Draw(t, "small")
	}
	s := map[string]any{}
	keywords := keywordsOf(t, func() any { return Schema(t, depth-1, without) })
	names := slices.Sorted(maps.Keys(keywords))
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 4, rapid.ID[string]).Draw(t, "keywords") {
		s[name] = keywords[name]()
	}
	if rapid.IntRange(0, 3).Draw(t, "list of types") == 0 {
		s["type"] = rapid.SliceOfNDistinct(rapid.SampledFrom(kinds), 1, 3, rapid.ID[string]).Draw(t, "types")
	}
	for _, name := range without {
		delete(s, name)
	}
	if without != nil && s["type"] == nil {
		s["type"] = kinds
	}
	return s
}

// keywordsOf returns the keywords with what draws their values; sub draws a schema.
func keywordsOf(t *rapid.T, sub func() any) map[string]func() any {
	list := func() any {
		all := make([]any, rapid.IntRange(1, 2).Draw(t, "count"))
		for i := range all {
			all[i] = sub()
		}
		return all
	}
	named := func(of func() any) map[string]any {
		all := map[string]any{}
		for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom(Keys), 0, 3, rapid.ID[string]).Draw(t, "keys") {
			all[key] = of()
		}
		return all
	}
	texts := func() any {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(Keys), 0, 2, rapid.ID[string]).Draw(t, "names")
	}
	just := func(v any) func() any { return func() any { return v } }
	one := func(all ...any) func() any { return func() any { return rapid.SampledFrom(all).Draw(t, "value") } }
	return map[string]func() any{
		"type": func() any { return rapid.SampledFrom(kinds).Draw(t, "type") }, "const": one(values()...),
		"enum":       func() any { return rapid.SliceOfN(rapid.SampledFrom(values()), 0, 3).Draw(t, "enum") },
		"properties": func() any { return named(sub) }, "required": texts, "additionalProperties": sub,
		"items": sub, "prefixItems": list, "anyOf": list, "oneOf": list, "allOf": list, "not": sub, "if": sub, "then": sub, "else": sub,
		"minimum": just(1), "exclusiveMaximum": just(9.5), "multipleOf": just(0.5), "maxLength": just(3), "minItems": one(1, 2), "uniqueItems": just(true),
		"pattern": just("^a"), "format": one("uri", "date-time", "email", "int64", "date", "uuid"), "default": one(values()...),
		"description": one("d", "nul \x00"), "title": just("T"), "examples": just([]any{1}), "$comment": just("c"), "nullable": just(true),
		"dependentRequired": func() any { return named(texts) }, "dependentSchemas": func() any { return named(sub) },
		"patternProperties": func() any { return map[string]any{"^x": sub()} }, "propertyNames": sub, "contains": sub,
		"unevaluatedProperties": just(false), "unevaluatedItems": sub, "$ref": one("#/$defs/d", "#"), "minProperties": just(1),
	}
}
