package mcp

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
)

// modern converts a JSON Schema to draft 2020-12, as registries require. Most
// servers use draft-07, and some draft-04. Keywords that have changed since are
// rewritten with the same meaning.
func modern(schema any) (json.RawMessage, error) {
	object, ok := schema.(map[string]any)
	if !ok {
		return nil, errors.New("is no JSON object")
	}
	root := respell(object)
	for _, key := range []string{"$schema", "$id", "id"} {
		if _, text := root[key].(string); text {
			delete(root, key)
		}
	}
	return json.Marshal(root)
}

// The keywords that hold schemas: one, a list, or an object of them.
var (
	holdsOne  = []string{"additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}
	holdsList = []string{"allOf", "anyOf", "items", "oneOf", "prefixItems"}
	holdsMany = []string{"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)

// respell returns a copy of a schema with today's keywords. A keyword whose value
// is null, as some servers write it, is one that is absent.
func respell(old map[string]any) map[string]any {
	s := maps.Clone(old)
	maps.DeleteFunc(s, func(key string, value any) bool { return value == nil && key != "const" && key != "default" })
	for _, key := range holdsOne {
		if sub, ok := s[key].(map[string]any); ok {
			s[key] = respell(sub)
		}
	}
	for _, key := range holdsList {
		if subs, ok := s[key].([]any); ok {
			s[key] = respellAll(subs)
		}
	}
	for _, key := range holdsMany {
		if subs, ok := s[key].(map[string]any); ok {
			named := make(map[string]any, len(subs))
			for name, sub := range subs {
				named[name] = respellOne(sub)
			}
			s[key] = named
		}
	}
	tuple(s)
	dependencies(s)
	exclusive(s, "exclusiveMinimum", "minimum")
	exclusive(s, "exclusiveMaximum", "maximum")
	return s
}

func respellOne(sub any) any {
	if object, ok := sub.(map[string]any); ok {
		return respell(object)
	}
	return sub
}

func respellAll(subs []any) []any {
	all := make([]any, len(subs))
	for i, sub := range subs {
		all[i] = respellOne(sub)
	}
	return all
}

// tuple converts items by position to prefixItems, and additionalItems to items.
func tuple(s map[string]any) {
	byPosition, ok := s["items"].([]any)
	rest, given := s["additionalItems"]
	delete(s, "additionalItems") // without a list, it has no meaning
	if !ok {
		return
	}
	delete(s, "items")
	if len(byPosition) > 0 {
		s["prefixItems"] = byPosition
	}
	if given {
		s["items"] = rest
	}
}

// dependencies converts dependencies to two keywords.
func dependencies(s map[string]any) {
	both, ok := s["dependencies"].(map[string]any)
	if !ok {
		return
	}
	delete(s, "dependencies")
	for name, needs := range both {
		key := "dependentSchemas"
		if _, list := needs.([]any); list {
			key = "dependentRequired"
		}
		into, ok := s[key].(map[string]any)
		if !ok {
			into = map[string]any{}
			s[key] = into
		}
		into[name] = needs
	}
}

// exclusive converts the boolean of draft-04, which stands next to the bound.
func exclusive(s map[string]any, key, bound string) {
	is, ok := s[key].(bool)
	if !ok {
		return
	}
	delete(s, key)
	if limit, there := s[bound]; is && there {
		s[key] = limit
		delete(s, bound)
	}
}

// legal returns text with all other characters than A-Za-z0-9_- replaced.
func legal(text string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, text)
}
