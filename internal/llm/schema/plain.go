package schema

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// annotations are the keywords of a plain schema that restrict nothing.
var annotations = []string{"default", "description", "title"}

// plain returns a schema in which every value has one type, or is anyOf such
// schemas.
func (n *normalizer) plain(s object, depth int) object {
	s = maps.Clone(s)
	for s["allOf"] != nil {
		parts := listOf(s["allOf"])
		delete(s, "allOf")
		for _, part := range parts {
			if part == false {
				return nil
			}
			if part, ok := part.(object); ok {
				s = merge(s, part)
			}
		}
	}
	if isChoice(s) && s["properties"] != nil && (s["type"] == nil || s["type"] == "object") {
		if flat, err := n.flat(s); err == nil {
			s = flat
		}
	}
	if isChoice(s) {
		return n.alternative(s, depth)
	}
	kinds := kindsOf(s)
	switch len(kinds) {
	case 0:
		return n.join(s, listOf(n.anything()["anyOf"]))
	case 1:
		return n.typed(s, kinds[0], depth)
	}
	bare := maps.Clone(s)
	for _, key := range annotations { // they are of the whole
		delete(bare, key)
	}
	branches := make([]any, len(kinds))
	for i, kind := range kinds {
		branches[i] = n.typed(bare, kind, depth)
	}
	return n.join(s, branches)
}

func isChoice(s object) bool { return s["anyOf"] != nil || s["oneOf"] != nil }

// alternative returns the normal form of anyOf or oneOf. What stands next to them
// goes into each.
func (n *normalizer) alternative(s object, depth int) object {
	all := listOf(s["anyOf"])
	if s["anyOf"] == nil {
		all = listOf(s["oneOf"])
	}
	rest := maps.Clone(s)
	for _, key := range append([]string{"anyOf", "oneOf"}, annotations...) {
		delete(rest, key)
	}
	var branches []any
	for _, sub := range all {
		one, ok := sub.(object)
		switch {
		case sub == false:
			continue
		case !ok:
			one = object{}
		}
		normal := n.node(merge(one, rest), depth)
		switch inner, nested := normal["anyOf"].([]any); {
		case normal == nil:
		case nested:
			branches = append(branches, inner...)
		default:
			branches = append(branches, normal)
		}
	}
	if branches = distinct(branches); len(branches) == 0 {
		return nil
	}
	return n.join(s, branches)
}

// join returns alternatives with the annotations of s.
func (n *normalizer) join(s object, branches []any) object {
	notes := object{}
	for _, key := range annotations {
		if n.keeps(s, key) {
			notes[key] = s[key]
		}
	}
	if !n.d.anyOfAlone && len(branches) > 1 {
		notes["anyOf"] = branches
		return notes
	}
	first, _ := branches[0].(object)
	first = merge(describe(object{}, strings.TrimSpace(text(notes["description"])+" "+text(first["description"]))), first)
	branches[0] = first
	if branches = distinct(branches); len(branches) > 1 {
		return object{"anyOf": branches}
	}
	return merge(first, notes)
}

// keeps reports whether an annotation is kept. A default of null, or for Google and
// in closed schemas any, is not.
func (n *normalizer) keeps(s object, key string) bool {
	value, ok := s[key]
	return ok && (key != "default" || value != nil && !n.d.textEnums && !n.d.closed)
}

// typed returns the schema of one type.
func (n *normalizer) typed(s object, kind string, depth int) object {
	out := object{"type": kind}
	for _, key := range annotations {
		if n.keeps(s, key) {
			out[key] = s[key]
		}
	}
	for _, key := range n.d.keywords[kind] {
		if value, ok := s[key]; ok && (key != "format" || slices.Contains(n.d.formats, text(value))) {
			out[key] = value
		}
	}
	n.values(out, s, kind)
	switch kind {
	case "object":
		n.members(out, depth)
		n.close(out, s)
	case "array":
		items := n.node(positions(s), depth+1)
		if items == nil {
			items = n.anything()
		}
		out["items"] = items
		if count := len(listOf(s["prefixItems"])); s["prefixItems"] != nil && s["items"] == false && out["maxItems"] == nil && n.d.takes(kind, "maxItems") {
			out["maxItems"] = count
		}
	}
	return describe(out, dropped(s, out, kind))
}

// values sets the enum of a type, from enum or const.
func (n *normalizer) values(out, s object, kind string) {
	delete(out, "enum")
	values, _ := s["enum"].([]any)
	if constant, ok := s["const"]; ok {
		values = []any{constant}
	}
	values = slices.DeleteFunc(distinct(values), func(v any) bool {
		return !isKind(v, kind) || n.d.textEnums && v == ""
	})
	if len(values) > 0 && n.d.takes(kind, "enum") {
		out["enum"] = values
	}
}

// members normalizes the properties of an object.
func (n *normalizer) members(out object, depth int) {
	named, _ := out["properties"].(object)
	properties := make(object, len(named))
	for name, sub := range named {
		if normal := n.node(sub, depth+1); normal != nil {
			properties[n.key(name)] = normal
		}
	}
	out["properties"] = properties
	if more, ok := out["additionalProperties"].(object); ok {
		normal := n.node(more, depth+1)
		switch {
		case len(more) == 0:
			out["additionalProperties"] = true
		case normal == nil:
			out["additionalProperties"] = false
		default:
			out["additionalProperties"] = normal
		}
	}
	n.require(out)
}

// close leaves an object no other properties than those that it names, if the API
// requires that.
func (n *normalizer) close(out, s object) {
	if !n.d.closed {
		return
	}
	more, described := s["additionalProperties"].(object)
	named, _ := out["properties"].(object)
	if len(named) == 0 && s["additionalProperties"] != false || described && len(more) > 0 || s["patternProperties"] != nil {
		n.open = true
	}
	out["additionalProperties"] = false
}

// told are the constraints that a description names if an API does not take
// them, by type.
var told = map[string][]string{
	"array":   {"maxItems", "minItems", "uniqueItems"},
	"integer": {"enum", "exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"},
	"number":  {"enum", "exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"},
	"object":  {"maxProperties", "minProperties"},
	"string":  {"format", "maxLength", "minLength", "pattern"},
}

// dropped names the constraints of s that out lacks.
func dropped(s, out object, kind string) string {
	var all []string
	for _, key := range told[kind] {
		value, ok := s[key]
		if list, is := value.([]any); is && len(list) == 0 || value == false {
			continue
		}
		if ok && out[key] == nil {
			all = append(all, key+": "+strings.Trim(string(encode(value)), `"`))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return "(" + strings.Join(all, ", ") + ")"
}

// kindsOf returns the types that a schema allows, from its type, its values or
// its keywords; none: it says nothing.
func kindsOf(s object) (kinds []string) {
	if s["type"] != nil {
		for _, kind := range listOf(s["type"]) {
			kinds = append(kinds, text(kind))
		}
	}
	values, _ := s["enum"].([]any)
	if constant, ok := s["const"]; ok {
		values = []any{constant}
	}
	if len(values) > 0 {
		if kinds == nil {
			kinds = []string{"string", "number", "boolean", "object", "array", "null"}
		}
		of := slices.DeleteFunc(slices.Clone(kinds), func(kind string) bool {
			return !slices.ContainsFunc(values, func(v any) bool { return isKind(v, kind) })
		})
		if len(of) > 0 {
			return of
		}
	}
	if kinds != nil {
		return kinds
	}
	for _, implied := range []struct {
		kind     string
		keywords []string
	}{
		{"object", []string{"properties", "required", "additionalProperties", "patternProperties"}},
		{"array", []string{"items", "prefixItems", "minItems", "maxItems"}},
		{"string", []string{"pattern", "minLength", "maxLength", "format"}},
		{"number", []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}},
	} {
		if slices.ContainsFunc(implied.keywords, func(key string) bool { _, ok := s[key]; return ok }) {
			return []string{implied.kind}
		}
	}
	return nil
}

// isKind reports whether a value is of a type.
func isKind(v any, kind string) bool {
	switch v := v.(type) {
	case nil:
		return kind == "null"
	case bool:
		return kind == "boolean"
	case string:
		return kind == "string"
	case json.Number:
		return kind == "number" || kind == "integer" && !strings.ContainsAny(v.String(), ".eE")
	case []any:
		return kind == "array"
	}
	return kind == "object"
}

func text(v any) string {
	s, _ := v.(string)
	return s
}
