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

// narrowing are the words of a schema that refuse values. They have lines for what
// clients write: a value that was taken stays one.
var narrowing = []string{
	"additionalProperties", "const", "dependentRequired", "else", "if", "maxItems", "maxLength", "maxProperties", "maximum",
	"minItems", "minLength", "minProperties", "minimum", "not", "pattern", "propertyNames", "then", "uniqueItems",
}

// walk adds the lines of the schema at a place, such as RunRequested.input.
func (s *schemas) walk(at string, schema object, u use) {
	if t := kind(schema); t != "" {
		s.say("%s %s", at, t)
	}
	if values, ok := schema["enum"].([]any); ok {
		for _, v := range values {
			s.say("%s may be %s", at, compact(v))
		}
	}
	required, _ := schema["required"].([]any)
	properties, _ := schema["properties"].(object)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		field := at + "." + name
		if u.given && slices.Contains(required, any(name)) {
			s.say("%s", field+always)
		}
		s.walk(field, objectOf(properties[name]), u)
	}
	if u.taken && len(properties) > 0 {
		s.say("%s requires %s", at, compact(append([]any{}, required...)))
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
			for _, one := range schema[word].([]any) {
				s.say("%s has in %s %s", at, word, compact(one))
			}
		case u.taken && slices.Contains(narrowing, word):
			s.say("%s has %s %s", at, word, compact(schema[word]))
		}
	}
}

// objectOf returns a schema that takes every value as one without words.
func objectOf(schema any) object {
	o, _ := schema.(object)
	return o
}

// kind returns a schema's type, or the name of the schema that it refers to.
func kind(schema object) string {
	if ref, ok := schema["$ref"].(string); ok {
		return reference.Replace(ref)
	}
	if schema["type"] == nil {
		return ""
	}
	return strings.Trim(compact(schema["type"]), `"`)
}

var reference = strings.NewReplacer("#/components/schemas/", "", "parts/", "", ".json", "", "#/$defs/", "#", "/$defs/", "#")

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
