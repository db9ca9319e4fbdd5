package strict

import "slices"

// The rules for one schema, of a tool or of an answer, but for its keys.

// openaiSchema returns the first of OpenAI's rules that a schema breaks.
func openaiSchema(name string, s map[string]any) error {
	if s["type"] != "object" {
		return breaks(openaiToolObject, "%s has type %v", name, s["type"])
	}
	for _, key := range []string{"oneOf", "anyOf", "allOf", "enum", "not"} {
		if has(s, key) {
			return breaks(openaiToolTop, "%s has %s", name, key)
		}
	}
	return everySchema(s, 0, func(s map[string]any, _ int) error {
		switch {
		case s["type"] == "object" && !has(s, "properties"), s["type"] == "array" && !has(s, "items"):
			return breaks(openaiToolMember, "%s has an %v without them", name, s["type"])
		case has(s, "items") && !isSchema(s["items"]):
			return breaks(openaiToolSchema, "%s has the items %v", name, s["items"])
		case has(s, "additionalProperties") && s["additionalProperties"] == nil:
			return breaks(openaiToolSchema, "%s has the additionalProperties null", name)
		}
		named, _ := s["properties"].(map[string]any)
		for key, sub := range named {
			if !isSchema(sub) {
				return breaks(openaiToolSchema, "%s has the property %s: %v", name, key, sub)
			}
		}
		for _, key := range []string{"anyOf", "oneOf", "allOf", "prefixItems"} {
			list, _ := s[key].([]any)
			if slices.ContainsFunc(list, func(v any) bool { return !isSchema(v) }) {
				return breaks(openaiToolSchema, "%s has %s: %v", name, key, list)
			}
		}
		if values, ok := s["enum"].([]any); has(s, "enum") && (!ok || len(values) == 0 || repeats(values)) {
			return breaks(openaiToolEnum, "%s has %v", name, s["enum"])
		}
		return nil
	})
}

// chatSchema returns the first rule that a schema breaks, but for its keys.
func chatSchema(name string, s map[string]any) error {
	kinds := map[string][]string{
		"array": {"items", "minItems", "maxItems"}, "object": {"properties", "required", "additionalProperties"},
		"string": {"enum", "format", "minLength", "maxLength"}, "number": {"enum", "minimum", "maximum"}, "integer": {"enum", "minimum", "maximum"},
		"boolean": {"enum"}, "null": nil,
	}
	return everySchema(s, 0, func(s map[string]any, depth int) error {
		kind, typed := s["type"].(string)
		_, choice := s["anyOf"]
		allowed, known := kinds[kind]
		switch {
		case depth > schemaDepthMax:
			return breaks(chatToolDepth, "%s is nested %d deep", name, depth)
		case typed == choice, typed && !known:
			return breaks(chatToolType, "%s has type %v and anyOf %t", name, s["type"], choice)
		case choice:
			allowed = []string{"anyOf"}
		}
		if key := unknownKey(s, allowed, "default", "description", "title"); key != "" || s["default"] == nil && has(s, "default") {
			return breaks(chatToolKeyword, "%s has %s for type %v", name, key, s["type"])
		}
		return requires(s, chatToolRequired)
	})
}

// geminiSchema returns the first rule that a schema breaks, but for its keys.
func geminiSchema(name string, s map[string]any) error {
	kinds := map[string][]string{
		"array": {"items", "minItems", "maxItems"}, "object": {"properties", "required", "additionalProperties"},
		"string": {"enum", "format"}, "number": {"minimum", "maximum"}, "integer": {"minimum", "maximum"}, "boolean": nil, "null": nil,
	}
	return everySchema(s, 0, func(s map[string]any, _ int) error {
		kind, typed := s["type"].(string)
		_, choice := s["anyOf"]
		allowed, known := kinds[kind]
		switch {
		case typed == choice, typed && !known, choice && len(s) > 1:
			return breaks(geminiToolType, "%s has type %v, anyOf %t and %d keywords", name, s["type"], choice, len(s))
		case choice:
			return nil
		case kind == "object" && !has(s, "properties"), kind == "array" && !has(s, "items"):
			return breaks(geminiToolMember, "%s has an %s without them", name, kind)
		}
		if key := unknownKey(s, allowed, "description", "title"); key != "" {
			return breaks(geminiToolKeyword, "%s has %s for type %v", name, key, s["type"])
		}
		if f := s["format"]; f != nil && f != "date-time" && f != "enum" {
			return breaks(geminiToolKeyword, "%s has the format %v", name, f)
		}
		if values, ok := s["enum"].([]any); has(s, "enum") && (!ok || len(values) == 0 || !allTexts(values)) {
			return breaks(geminiToolEnum, "%s has %v", name, s["enum"])
		}
		return requires(s, geminiToolRequired)
	})
}
