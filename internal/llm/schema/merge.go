package schema

import (
	"maps"
	"slices"
	"strings"
)

// merge returns a schema with the keywords of both. Of two values that can't be
// combined it keeps a's, so that it allows at least what both allow.
func merge(a, b object) object {
	out := maps.Clone(a)
	for key, value := range b {
		have, twice := out[key]
		if !twice {
			out[key] = value
			continue
		}
		switch key {
		case "properties", "patternProperties":
			out[key] = mergeNamed(have, value)
		case "required":
			out[key] = distinct(slices.Concat(listOf(have), listOf(value)))
		case "type":
			out[key] = commonType(have, value)
		case "enum":
			if both := common(listOf(have), listOf(value)); len(both) > 0 {
				out[key] = both
			}
		case "items", "additionalProperties":
			out[key] = mergeAny(have, value)
		}
	}
	return out
}

func mergeNamed(a, b any) any {
	named, ok := a.(object)
	if !ok {
		return b
	}
	named = maps.Clone(named)
	others, _ := b.(object)
	for name, sub := range others {
		if have, twice := named[name]; twice {
			sub = mergeAny(have, sub)
		}
		named[name] = sub
	}
	return named
}

// mergeAny merges two schemas, which may be true or false.
func mergeAny(a, b any) any {
	first, ok := a.(object)
	second, too := b.(object)
	switch {
	case ok && too:
		return merge(first, second)
	case a == true:
		return b
	case b == false:
		return b
	}
	return a
}

// commonType returns the types that both allow. A number may be an integer.
func commonType(a, b any) any {
	var both []any
	for _, x := range listOf(a) {
		for _, y := range listOf(b) {
			switch {
			case x == y, x == "integer" && y == "number":
				both = append(both, x)
			case x == "number" && y == "integer":
				both = append(both, y)
			}
		}
	}
	switch both = distinct(both); len(both) {
	case 0:
		return a
	case 1:
		return both[0]
	}
	return both
}

// common returns the values of a that b has too.
func common(a, b []any) (both []any) {
	for _, v := range a {
		if slices.ContainsFunc(b, func(other any) bool { return string(encode(v)) == string(encode(other)) }) {
			both = append(both, v)
		}
	}
	return both
}

// listOf returns a list, or a list of one value.
func listOf(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{v}
}

// flat returns an object's schema without alternatives at its top: with the
// properties of all of them. It fails if the schema allows no object.
func (n *normalizer) flat(s object) (object, error) {
	if !allows(s, "object") {
		return nil, ErrNoObject
	}
	s = maps.Clone(s)
	parts, _ := s["allOf"].([]any)
	delete(s, "allOf")
	for _, part := range parts {
		one, err := n.flatPart(part)
		if err != nil {
			return nil, err
		}
		s = merge(s, one)
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		alternatives, ok := s[keyword].([]any)
		if delete(s, keyword); !ok {
			continue
		}
		var objects []object
		for _, alternative := range alternatives {
			if one, err := n.flatPart(alternative); err == nil {
				objects = append(objects, one)
			}
		}
		if len(objects) == 0 {
			return nil, ErrNoObject
		}
		s = merge(s, union(objects))
		s = describe(s, n.alternatives(objects))
	}
	if n.d.members {
		delete(s, "enum")
		delete(s, "const")
		delete(s, "not")
	}
	s["type"] = "object"
	return s, nil
}

// flatPart is flat for a schema that may be true or false.
func (n *normalizer) flatPart(part any) (object, error) {
	switch part := part.(type) {
	case object:
		return n.flat(part)
	case bool:
		if part {
			return object{}, nil
		}
	}
	return nil, ErrNoObject
}

// union returns a schema with the properties of all alternatives. It requires
// what all of them require.
func union(all []object) object {
	out, properties, closed := object{}, object{}, true
	values := map[string][]any{}
	for _, one := range all {
		named, _ := one["properties"].(object)
		for name, sub := range named {
			values[name] = append(values[name], sub)
		}
		closed = closed && one["additionalProperties"] == false
	}
	for name, subs := range values {
		properties[name] = either(subs)
	}
	if len(properties) > 0 {
		out["properties"] = properties
	}
	if closed {
		out["additionalProperties"] = false
	}
	required := requiredOf(all[0])
	for _, one := range all[1:] {
		required = common(required, requiredOf(one))
	}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

func requiredOf(s object) []any {
	list, _ := s["required"].([]any)
	return list
}

// either returns a schema that allows what any of them allows. Constants of one
// property, which tell alternatives apart, become an enum.
func either(subs []any) any {
	if subs = distinct(subs); len(subs) == 1 {
		return subs[0]
	}
	var values []any
	for _, sub := range subs {
		s, _ := sub.(object)
		value, is := s["const"]
		if kind := s["type"]; !is || kind != nil && kind != "string" {
			return object{"anyOf": subs}
		}
		values = append(values, value)
	}
	out := object{"enum": distinct(values)}
	if first, _ := subs[0].(object); first["type"] != nil {
		out["type"] = first["type"]
	}
	return out
}

// alternatives says which properties belong together, if alternatives require
// different ones.
func (n *normalizer) alternatives(all []object) string {
	var lists []any
	for _, one := range all {
		var names []string
		for _, name := range n.names(requiredOf(one)) {
			if name, ok := name.(string); ok {
				names = append(names, name)
			}
		}
		lists = append(lists, strings.Join(names, ", "))
	}
	if lists = distinct(lists); len(lists) < 2 {
		return ""
	}
	var text []string
	for _, list := range lists {
		if list, _ := list.(string); list != "" {
			text = append(text, list)
		} else {
			text = append(text, "none of these")
		}
	}
	return "Properties that belong together: " + strings.Join(text, "; or ") + "."
}

// describe returns a schema with a sentence added to its description.
func describe(s object, sentence string) object {
	if sentence == "" {
		return s
	}
	s = maps.Clone(s)
	if text, _ := s["description"].(string); text != "" {
		sentence = text + " " + sentence
	}
	s["description"] = sentence
	return s
}
