package api

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

type object = map[string]any

// schemas collects the lines of JSON Schemas.
type schemas struct {
	lines []string
}

// use says which way a schema goes.
type use struct{ taken, given bool }

// Wire returns the lines of the JSON Schemas in dir and below it, but for those of the
// named messages. Programs write and read all of them.
func Wire(dir fs.FS, except ...string) ([]string, error) {
	var s schemas
	err := fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		message := strings.TrimSuffix(path.Base(name), ".json")
		if err != nil || d.IsDir() || slices.Contains(except, message) {
			return err
		}
		text, err := fs.ReadFile(dir, name)
		if err != nil {
			return err
		}
		var schema object
		if err := json.Unmarshal(text, &schema); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if doors, ok := schema["x-doors"].([]any); ok {
			for _, door := range doors {
				s.say("%s through the door %v", message, door)
			}
		}
		s.walk(message, schema, use{true, true})
		return nil
	})
	return sorted(s.lines), err
}

func (s *schemas) say(format string, args ...any) {
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

// narrowing are the words of a schema that refuse values.
var narrowing = []string{
	"additionalProperties", "allOf", "anyOf", "dependentRequired", "else", "enum", "if", "maxItems", "maxLength", "maxProperties", "maximum",
	"minItems", "minLength", "minProperties", "minimum", "not", "oneOf", "pattern", "propertyNames", "then", "uniqueItems",
}

// walk adds the lines of the schema at a place, such as RunRequested.input.
func (s *schemas) walk(at string, schema object, u use) {
	s.say("%s %s", at, kind(schema, u))
	for _, v := range append(listOf(schema["enum"]), listOf(schema["const"])...) {
		s.say("%s may be %s", at, compact(v))
	}
	required := listOf(schema["required"])
	properties, _ := schema["properties"].(object)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		field := at + "." + name
		if u.given && slices.Contains(required, any(name)) {
			s.say("%s", field+always)
		}
		s.walk(field, objectOf(properties[name]), u)
	}
	if u.taken && len(properties) > 0 {
		s.say("%s requires %s", at, compact(required))
	}
	for _, word := range slices.Sorted(maps.Keys(schema)) {
		inner, isObject := schema[word].(object)
		switch {
		case word == "$defs":
			for _, name := range slices.Sorted(maps.Keys(inner)) {
				s.walk(at+"#"+name, objectOf(inner[name]), u)
			}
		case word == "items":
			s.walk(at+"[]", inner, u)
		case word == "additionalProperties" && isObject:
			s.walk(at+"{}", inner, u)
		case word == "allOf" || word == "anyOf" || word == "oneOf":
			for _, one := range listOf(schema[word]) {
				s.say("%s has in %s %s", at, word, compact(one))
			}
		}
	}
}

// kind returns a schema's type, or the name of the schema that it refers to. Of one that
// clients write it also returns what refuses values, so that one more such word is a
// change of the line. Alternatives and values have lines of their own.
func kind(schema object, u use) string {
	is := "any"
	if ref, ok := schema["$ref"].(string); ok {
		is = reference.Replace(ref)
	} else if schema["type"] != nil {
		is = strings.Trim(compact(schema["type"]), `"`)
	}
	var limits []string
	for _, word := range narrowing {
		value, there := schema[word]
		_, isObject := value.(object)
		switch {
		case !there || !u.taken:
		case word == "enum" || word == "allOf" || word == "anyOf" || word == "oneOf" || word == "additionalProperties" && isObject:
			limits = append(limits, word)
		default:
			limits = append(limits, word+" "+compact(value))
		}
	}
	if len(limits) == 0 {
		return is
	}
	return is + " with " + strings.Join(limits, ", ")
}

var reference = strings.NewReplacer("#/components/schemas/", "", "parts/", "", ".json", "", "#/$defs/", "#", "/$defs/", "#")

// objectOf returns a schema that takes every value as one without words.
func objectOf(schema any) object {
	o, _ := schema.(object)
	return o
}

// listOf returns a list, one value as a list of it, and nothing as an empty one.
func listOf(v any) []any {
	switch v := v.(type) {
	case nil:
		return []any{}
	case []any:
		return v
	}
	return []any{v}
}

// compact returns a value as JSON, without the descriptions in it.
func compact(v any) string {
	text, err := json.Marshal(undescribed(v))
	if err != nil {
		panic(err) // it was read from JSON
	}
	return string(text)
}

func undescribed(v any) any {
	switch v := v.(type) {
	case object:
		out := object{}
		for key, value := range v {
			if _, isText := value.(string); key != "description" || !isText {
				out[key] = undescribed(value)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = undescribed(v[i])
		}
		return out
	}
	return v
}
