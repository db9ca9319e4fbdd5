package strict

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The rules for the schema of an answer. Where an API does not hold the model to it,
// its rules are those for tools, but for keys.
const (
	openaiFormatName      providerRule = "openai format: name"
	openaiFormatClosed    providerRule = "openai format: a strict schema is closed"
	openaiFormatRequired  providerRule = "openai format: a strict schema requires all properties"
	openaiFormatKeyword   providerRule = "openai format: keywords of a strict schema"
	anthropicFormatClosed providerRule = "anthropic format: objects are closed"
	anthropicFormatWord   providerRule = "anthropic format: keywords"
	anthropicFormatMany   providerRule = "anthropic format: at most 24 optional properties and 16 alternatives"
)

const (
	optionalMax = 24
	unionsMax   = 16
)

// closedRules are an API's rules for a schema to which it holds the model.
type closedRules struct {
	closed, keyword providerRule
	formats         []string
}

var (
	openaiClosed    = closedRules{openaiFormatClosed, openaiFormatKeyword, nil}
	anthropicClosed = closedRules{anthropicFormatClosed, anthropicFormatWord, []string{
		"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid",
	}}
)

// check returns the first rule that a schema breaks.
func (r closedRules) check(s map[string]any) error {
	kinds := map[string][]string{
		"array": {"items"}, "object": {"properties", "required", "additionalProperties"}, "string": {"enum", "format"},
		"number": {"enum"}, "integer": {"enum"}, "boolean": {"enum"}, "null": nil,
	}
	if s["type"] != "object" {
		return breaks(r.closed, "it has type %v", s["type"])
	}
	return everySchema(s, 0, func(s map[string]any, depth int) error {
		kind, typed := s["type"].(string)
		allowed, known := kinds[kind]
		if _, choice := s["anyOf"]; choice {
			allowed, known, typed = []string{"anyOf"}, true, !typed
		}
		values, isList := s["enum"].([]any)
		switch key := unknownKey(s, allowed, "description", "title"); {
		case !typed || !known || key != "" || depth > schemaDepthMax:
			return breaks(r.keyword, "type %v has %s, %d deep", s["type"], key, depth)
		case has(s, "enum") && (!isList || len(values) == 0 || repeats(values) || slices.ContainsFunc(values, isDeep)):
			return breaks(r.keyword, "an enum is %v", s["enum"])
		case has(s, "format") && !slices.ContainsFunc(r.formats, func(f string) bool { return s["format"] == f }):
			return breaks(r.keyword, "a format is %v", s["format"])
		case kind == "array" && !isSchema(s["items"]):
			return breaks(r.keyword, "an array has the items %v", s["items"])
		case kind == "object" && (s["additionalProperties"] != false || !isSchema(s["properties"])):
			return breaks(r.closed, "an object has %v", s)
		}
		return requires(s, r.closed)
	})
}

// isDeep reports whether a value has others within it.
func isDeep(v any) bool {
	_, list := v.([]any)
	return list || isSchema(v)
}

// openaiFormat returns the first broken rule for the form of an answer, of chat
// completions or of Responses; others are servers other than OpenAI's.
func openaiFormat(body []byte, others bool) error {
	type form struct {
		Type   string          `json:"type"`
		Name   string          `json:"name"`
		Strict bool            `json:"strict"`
		Schema json.RawMessage `json:"schema"`
	}
	var request struct {
		Chat struct {
			form
			Nested *form `json:"json_schema"`
		} `json:"response_format"`
		Text struct {
			Format form `json:"format"`
		} `json:"text"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return err
	}
	f := request.Text.Format
	if request.Chat.Nested != nil {
		f = *request.Chat.Nested
	}
	if f.Schema == nil {
		return nil
	}
	s, err := objectOf(f.Schema)
	switch {
	case err != nil:
		return err
	case !IsName(f.Name):
		return breaks(openaiFormatName, "it is called %q", f.Name)
	case !f.Strict && others:
		return chatSchema("the answer", s)
	case !f.Strict:
		return openaiSchema("the answer", s)
	}
	if err := openaiClosed.check(s); err != nil {
		return err
	}
	if optional, _ := countsOf(s); optional > 0 {
		return breaks(openaiFormatRequired, "%d properties are not required", optional)
	}
	return nil
}

// anthropicFormat returns the first broken rule for the form of an answer.
func anthropicFormat(body []byte) error {
	var request struct {
		Config struct {
			Format struct {
				Schema json.RawMessage `json:"schema"`
			} `json:"format"`
		} `json:"output_config"`
	}
	if err := json.Unmarshal(body, &request); err != nil || request.Config.Format.Schema == nil {
		return err
	}
	s, err := objectOf(request.Config.Format.Schema)
	if err != nil {
		return err
	}
	if err := anthropicClosed.check(s); err != nil {
		return err
	}
	if optional, unions := countsOf(s); optional > optionalMax || unions > unionsMax {
		return breaks(anthropicFormatMany, "it has %d and %d", optional, unions)
	}
	return nil
}

// geminiFormat returns the first broken rule for the form of an answer.
func geminiFormat(body []byte) error {
	var request struct {
		Config struct {
			Schema json.RawMessage `json:"responseJsonSchema"`
		} `json:"generationConfig"`
	}
	if err := json.Unmarshal(body, &request); err != nil || request.Config.Schema == nil {
		return err
	}
	s, err := objectOf(request.Config.Schema)
	if err != nil {
		return err
	}
	return geminiSchema("the answer", s)
}

func objectOf(text json.RawMessage) (map[string]any, error) {
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	s, _ := v.(map[string]any)
	return s, err
}

// countsOf counts the properties that are not required, and the alternatives.
func countsOf(s map[string]any) (optional, unions int) {
	_ = everySchema(s, 0, func(s map[string]any, _ int) error {
		named, _ := s["properties"].(map[string]any)
		required, _ := s["required"].([]any)
		optional += len(named) - len(required)
		if s["anyOf"] != nil {
			unions++
		}
		return nil
	})
	return optional, unions
}
