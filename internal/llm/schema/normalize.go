package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
)

// ErrNoObject means that a schema allows no object, which all APIs require of
// arguments.
var ErrNoObject = errors.New("its arguments are no object")

// object is a decoded schema.
type object = map[string]any

// normalizer rewrites one schema.
type normalizer struct {
	d    *Dialect
	keys map[string]string // own to shown, where they differ
	open bool              // a closed dialect lacks a part of it
}

// Normalize returns a schema in the form that the API accepts, and the property
// keys that it renames, from own to shown. If there are none, keys is nil. Its
// error is ErrNoObject, or that schema is no JSON object.
func (d *Dialect) Normalize(schema json.RawMessage) (normal json.RawMessage, keys map[string]string, err error) {
	out, n, err := d.normalize(schema)
	if err != nil {
		return nil, nil, err
	}
	if len(n.keys) == 0 {
		n.keys = nil
	}
	return encode(out), n.keys, nil
}

func (d *Dialect) normalize(schema json.RawMessage) (object, *normalizer, error) {
	root, err := decode(schema)
	if err != nil {
		return nil, nil, err
	}
	root, ok := inline(root).(object)
	if !ok {
		return nil, nil, ErrNoObject
	}
	n := &normalizer{d: d, keys: rename(keysOf(root), d.isKey, func(key string) string { return key })}
	if root, err = n.flat(root); err != nil {
		return nil, nil, err
	}
	out := n.node(root, 0)
	out["type"] = "object"
	if d.members && out["properties"] == nil {
		out["properties"] = object{}
	}
	return out, n, nil
}

// node returns the normal form of a schema. A nil result allows nothing.
func (n *normalizer) node(v any, depth int) object {
	s, ok := v.(object)
	switch {
	case v == false:
		return nil
	case !ok || depth >= n.d.depthMax && isDeep(s):
		return n.anything()
	case n.d.plain:
		return n.plain(s, depth)
	}
	return n.standard(s, depth)
}

// anything returns a schema that allows every value.
func (n *normalizer) anything() object {
	n.open = true
	if !n.d.plain {
		return object{}
	}
	text := object{"type": "string"}
	return object{"anyOf": []any{
		text, object{"type": "number"}, object{"type": "boolean"}, object{"type": "object", "properties": object{}}, object{"type": "array", "items": text},
		object{"type": "null"},
	}}
}

// isDeep reports whether a schema has others within it, or will have.
func isDeep(s object) bool {
	deep := slices.Contains(kindsOf(s), "array")
	each(maps.Clone(s), func(_ string, sub any) any {
		deep = true
		return sub
	})
	return deep
}

// standard keeps all keywords, and corrects what the API refuses.
func (n *normalizer) standard(s object, depth int) object {
	out := maps.Clone(s)
	each(out, func(keyword string, sub any) any {
		_, is := sub.(bool)
		if is && (!n.d.members || keyword == "additionalProperties" || strings.HasPrefix(keyword, "unevaluated")) {
			return sub
		}
		return n.orNothing(n.node(sub, depth+1))
	})
	loosen(out, s)
	for _, key := range []string{"properties", "dependentSchemas", "dependentRequired"} {
		if named, ok := out[key].(object); ok {
			out[key] = n.renamed(named)
		}
	}
	n.require(out)
	if needs, ok := out["dependentRequired"].(object); ok {
		for name, list := range needs {
			needs[name] = n.names(list)
		}
	}
	if values, ok := out["enum"].([]any); ok {
		if out["enum"] = distinct(values); len(values) == 0 {
			delete(out, "enum")
		}
	}
	if !n.d.members {
		return out
	}
	if allows(out, "object") && out["properties"] == nil && out["type"] != nil {
		out["properties"] = object{}
	}
	if _, given := out["items"]; allows(out, "array") && out["type"] != nil && (!given || out["prefixItems"] != nil) {
		out["items"] = n.orNothing(n.node(positions(s), depth+1))
		delete(out, "prefixItems")
	}
	return out
}

// exact are the keywords of which a looser schema would allow less.
var exact = []string{"if", "not", "oneOf", "propertyNames"}

// loosen drops the exact keywords of out that differ from those of s. Of oneOf it
// keeps the alternatives.
func loosen(out, s object) {
	for _, key := range exact {
		value, ok := s[key]
		if !ok || bytes.Equal(encode(value), encode(out[key])) {
			continue
		}
		if key == "oneOf" && out["anyOf"] == nil {
			out["anyOf"] = out[key]
		}
		for _, gone := range []string{key, "unevaluatedItems", "unevaluatedProperties"} { // they depend on it
			delete(out, gone)
		}
	}
}

// orNothing returns a schema, or one that allows nothing in place of nil.
func (n *normalizer) orNothing(s object) any {
	if s == nil {
		return object{"not": object{}}
	}
	return s
}

// require renames the properties that an object requires. If the API refuses
// unknown ones, it gets a property for each.
func (n *normalizer) require(out object) {
	list, ok := out["required"].([]any)
	if !ok {
		return
	}
	names := n.names(list)
	if out["required"] = names; !n.d.members {
		return
	}
	if len(names) == 0 {
		delete(out, "required")
		return
	}
	if out["type"] == nil && !n.d.plain { // an alternative of an object
		return
	}
	properties, _ := out["properties"].(object)
	if properties == nil {
		properties = object{}
	}
	for _, name := range names {
		if name, ok := name.(string); ok && properties[name] == nil {
			properties[name] = n.anything()
		}
	}
	out["properties"] = properties
}

// names renames a list of keys.
func (n *normalizer) names(list any) []any {
	all, _ := list.([]any)
	renamed := make([]any, len(all))
	for i, name := range all {
		renamed[i] = name
		if own, ok := name.(string); ok {
			renamed[i] = n.key(own)
		}
	}
	return renamed
}

func (n *normalizer) key(own string) string {
	if shown, ok := n.keys[own]; ok {
		return shown
	}
	return own
}

func (n *normalizer) renamed(named object) object {
	if len(n.keys) == 0 {
		return named
	}
	all := make(object, len(named))
	for name, value := range named {
		all[n.key(name)] = value
	}
	return all
}

// keysOf returns all keys of properties in a schema, sorted.
func keysOf(s object) []string {
	found := map[string]bool{}
	add := func(names ...any) {
		for _, name := range names {
			if key, ok := name.(string); ok {
				found[key] = true
			}
		}
	}
	var visit func(s object)
	visit = func(s object) {
		for _, key := range []string{"properties", "dependentSchemas", "dependentRequired"} {
			named, _ := s[key].(object)
			for name, list := range named {
				add(name)
				if names, ok := list.([]any); ok {
					add(names...)
				}
			}
		}
		if names, ok := s["required"].([]any); ok {
			add(names...)
		}
		each(maps.Clone(s), func(_ string, sub any) any {
			if sub, ok := sub.(object); ok {
				visit(sub)
			}
			return sub
		})
	}
	visit(s)
	return slices.Sorted(maps.Keys(found))
}

// allows reports whether a schema's type, if it has one, allows a kind of value.
func allows(s object, kind string) bool {
	switch types := s["type"].(type) {
	case string:
		return types == kind
	case []any:
		return slices.Contains(types, any(kind))
	}
	return true
}

// positions returns what the items of a tuple may be, at any position.
func positions(s object) any {
	all, _ := s["prefixItems"].([]any)
	all = slices.Clone(all)
	if rest, ok := s["items"].(object); ok {
		all = append(all, rest)
	}
	switch all = distinct(all); len(all) {
	case 0:
		return true
	case 1:
		return all[0]
	}
	return object{"anyOf": all}
}

// distinct returns values without repetitions, in order.
func distinct(values []any) []any {
	var all []any
	seen := map[string]bool{}
	for _, v := range values {
		if text := string(encode(v)); !seen[text] {
			seen[text] = true
			all = append(all, v)
		}
	}
	return all
}

func decode(schema json.RawMessage) (object, error) {
	d := json.NewDecoder(bytes.NewReader(schema))
	d.UseNumber()
	var root object
	if err := d.Decode(&root); err != nil || root == nil {
		return nil, errors.New("its schema is no JSON object")
	}
	return root, nil
}

// encode returns a decoded value as JSON, with sorted keys.
func encode(v any) json.RawMessage {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil { // what was decoded can be encoded
		panic(err)
	}
	return bytes.TrimSpace(text.Bytes())
}

// The keywords whose values are schemas: one, a list, or an object of them.
var (
	withOne  = []string{"additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}
	withList = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
	withMany = []string{"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}
)

// each replaces every schema directly in s with the result of f. It replaces the
// lists and objects that hold them too.
func each(s object, f func(keyword string, sub any) any) {
	for _, key := range withOne {
		if sub, ok := s[key]; ok {
			s[key] = f(key, sub)
		}
	}
	for _, key := range withList {
		if subs, ok := s[key].([]any); ok {
			all := make([]any, len(subs))
			for i, sub := range subs {
				all[i] = f(key, sub)
			}
			s[key] = all
		}
	}
	for _, key := range withMany {
		if subs, ok := s[key].(object); ok {
			all := make(object, len(subs))
			for name, sub := range subs {
				all[name] = f(key, sub)
			}
			s[key] = all
		}
	}
}
