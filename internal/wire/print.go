package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// keywords are the order in which a schema's keywords are printed.
var keywords = []string{
	"$schema", "$id", "title", "x-doors", "$ref", "type", "const", "enum", "pattern", "minimum", "maximum", "minLength", "maxLength", "items", "minItems",
	"maxItems", "uniqueItems", "propertyNames", "properties", "additionalProperties", "minProperties", "maxProperties", "required",
	"dependentRequired", "if", "then", "else", "not", "allOf", "anyOf", "oneOf", "description", "$defs",
}

// width is the length of the lines that values are put on if they fit.
const width = 120

// text returns the text of a schema.
func text(doc node) []byte { return []byte(printed(doc, "", true, 0) + "\n") }

// printed returns the text of a value. of reports whether it is a schema, so that its
// keys are keywords; used is what precedes it on its line.
func printed(value any, indent string, schema bool, used int) string {
	if short := oneLined(value, schema); len(indent)+used+len(short) <= width && indent != "" {
		return short
	}
	inner := indent + "  "
	var parts []string
	switch v := value.(type) {
	case node:
		for _, key := range ordered(v, schema) {
			name := encoded(key) + ": "
			parts = append(parts, inner+name+printed(v[key], inner, isSchema(key, schema), len(name)))
		}
		return "{\n" + strings.Join(parts, ",\n") + "\n" + indent + "}"
	case []any:
		for _, item := range v {
			parts = append(parts, inner+printed(item, inner, schema, 0))
		}
		return "[\n" + strings.Join(parts, ",\n") + "\n" + indent + "]"
	}
	return encoded(value)
}

func oneLined(value any, schema bool) string {
	var parts []string
	switch v := value.(type) {
	case node:
		for _, key := range ordered(v, schema) {
			parts = append(parts, encoded(key)+": "+oneLined(v[key], isSchema(key, schema)))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		for _, item := range v {
			parts = append(parts, oneLined(item, schema))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return encoded(value)
}

// isSchema reports whether the keys of what is under a key are keywords: not below
// properties, whose keys are the names of fields.
func isSchema(key string, schema bool) bool {
	return !schema || key != "properties" && key != "$defs" && key != "dependentRequired"
}

func ordered(v node, schema bool) []string {
	all := keys(v)
	if schema {
		place := func(keyword string) int {
			if keyword == "description" && v["title"] != nil {
				keyword = "title" // and, being stable, after it
			}
			return slices.Index(keywords, keyword)
		}
		slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(place(a), place(b)) })
	}
	return all
}

func encoded(value any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		panic("wire: a schema does not encode: " + err.Error())
	}
	return strings.TrimSpace(b.String())
}
