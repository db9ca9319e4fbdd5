package strict

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The rules for the tools of a request: their number, names and schemas.
const (
	anthropicToolName   providerRule = "anthropic tools: name"
	anthropicToolObject providerRule = "anthropic tools: input_schema is an object's"
	anthropicToolTop    providerRule = "anthropic tools: no alternatives at the top"
	anthropicToolKey    providerRule = "anthropic tools: property keys"
	anthropicToolDraft  providerRule = "anthropic tools: draft 2020-12"

	openaiToolCount  providerRule = "openai tools: at most 128"
	openaiToolName   providerRule = "openai tools: name"
	openaiToolObject providerRule = "openai tools: parameters are an object's"
	openaiToolTop    providerRule = "openai tools: no alternatives at the top"
	openaiToolMember providerRule = "openai tools: objects have properties, arrays have items"
	openaiToolEnum   providerRule = "openai tools: enum"
	openaiToolSchema providerRule = "openai tools: a schema is an object"

	chatToolName     providerRule = "chat tools: name"
	chatToolType     providerRule = "chat tools: one type, or anyOf"
	chatToolRequired providerRule = "chat tools: required properties exist"
	chatToolKey      providerRule = "chat tools: property keys"
	chatToolKeyword  providerRule = "chat tools: keywords"
	chatToolDepth    providerRule = "chat tools: depth"

	geminiToolCount    providerRule = "gemini tools: at most 128"
	geminiToolName     providerRule = "gemini tools: name"
	geminiToolType     providerRule = "gemini tools: one type, or anyOf alone"
	geminiToolRequired providerRule = "gemini tools: required properties exist"
	geminiToolKey      providerRule = "gemini tools: property keys"
	geminiToolKeyword  providerRule = "gemini tools: keywords"
	geminiToolMember   providerRule = "gemini tools: objects have properties, arrays have items"
	geminiToolEnum     providerRule = "gemini tools: enum"
)

const (
	toolsMax       = 128
	schemaDepthMax = 10
)

// tool is a tool of any API.
type tool struct {
	name   string
	schema json.RawMessage
}

// AnthropicTools returns the first rule that a request's tools break.
func AnthropicTools(body []byte) error {
	var request struct {
		Tools []struct {
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"input_schema"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return err
	}
	var tools []tool
	for _, t := range request.Tools {
		tools = append(tools, tool{t.Name, t.Schema})
	}
	return eachTool(tools, anthropicToolName, IsName, func(name string, s map[string]any) error {
		switch {
		case s["type"] != "object":
			return breaks(anthropicToolObject, "%s has type %v", name, s["type"])
		case s["oneOf"] != nil || s["allOf"] != nil || s["anyOf"] != nil:
			return breaks(anthropicToolTop, "%s has oneOf, allOf or anyOf", name)
		}
		if err := keys(s, wordDot, anthropicToolKey); err != nil {
			return err
		}
		c := jsonschema.NewCompiler()
		c.DefaultDraft(jsonschema.Draft2020)
		c.UseLoader(nowhere{})
		if err := c.AddResource("mem:tool", s); err != nil {
			return breaks(anthropicToolDraft, "%s: %v", name, err)
		}
		if _, err := c.Compile("mem:tool"); err != nil {
			return breaks(anthropicToolDraft, "%s: %v", name, err)
		}
		return nil
	})
}

// nowhere is a loader that has nothing: a schema stands for itself.
type nowhere struct{}

func (nowhere) Load(url string) (any, error) { return nil, fmt.Errorf("%s is elsewhere", url) }

// OpenAITools returns the first rule that the tools of a request to OpenAI break,
// of chat completions or of Responses.
func OpenAITools(body []byte) error {
	tools, err := functions(body)
	if err != nil {
		return err
	}
	if len(tools) > toolsMax {
		return breaks(openaiToolCount, "there are %d", len(tools))
	}
	return eachTool(tools, openaiToolName, IsName, openaiSchema)
}

// ChatTools returns the first rule that the tools of a request to a strict server
// of chat completions break.
func ChatTools(body []byte) error {
	if err := OpenAITools(body); err != nil {
		return err
	}
	tools, _ := functions(body)
	return eachTool(tools, chatToolName, func(name string) bool { return isLettered(name) && name[0] != '_' }, func(name string, s map[string]any) error {
		if err := keys(s, wordDot, chatToolKey); err != nil {
			return err
		}
		return chatSchema(name, s)
	})
}

// GeminiTools returns the first rule that a request's tools break.
func GeminiTools(body []byte) error {
	var request struct {
		Tools []struct {
			Functions []struct {
				Name       string          `json:"name"`
				Parameters json.RawMessage `json:"parameters"`
				Schema     json.RawMessage `json:"parametersJsonSchema"`
			} `json:"functionDeclarations"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return err
	}
	var tools []tool
	for _, t := range request.Tools {
		for _, f := range t.Functions {
			tools = append(tools, tool{f.Name, slices.Concat(f.Parameters, f.Schema)})
		}
	}
	if len(tools) > toolsMax {
		return breaks(geminiToolCount, "there are %d", len(tools))
	}
	return eachTool(tools, geminiToolName, isLettered, func(name string, s map[string]any) error {
		if s["type"] != "object" {
			return breaks(geminiToolType, "%s has type %v", name, s["type"])
		}
		if err := keys(s, identifier, geminiToolKey); err != nil {
			return err
		}
		return geminiSchema(name, s)
	})
}

// functions returns the tools of chat completions or Responses.
func functions(body []byte) (tools []tool, err error) {
	type function struct {
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"parameters"`
	}
	var request struct {
		Tools []struct {
			function
			Function *function `json:"function"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, err
	}
	for _, t := range request.Tools {
		f := t.function
		if t.Function != nil {
			f = *t.Function
		}
		tools = append(tools, tool{f.Name, f.Schema})
	}
	return tools, nil
}

// eachTool checks the names of tools, and decodes their schemas for check.
func eachTool(tools []tool, rule providerRule, isName func(string) bool, check func(name string, s map[string]any) error) error {
	seen := map[string]bool{}
	for _, t := range tools {
		if !isName(t.name) || seen[t.name] {
			return breaks(rule, "%q is no name, or is repeated", t.name)
		}
		seen[t.name] = true
		s, err := jsonschema.UnmarshalJSON(strings.NewReader(string(t.schema)))
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		object, ok := s.(map[string]any)
		if !ok {
			return fmt.Errorf("%s: %s is no object", t.name, t.schema)
		}
		if err := check(t.name, object); err != nil {
			return err
		}
	}
	return nil
}

// isLettered reports whether a name is one, and begins with a letter or an
// underscore.
func isLettered(name string) bool {
	return IsName(name) && name[0] != '-' && (name[0] < '0' || name[0] > '9')
}

var (
	wordDot    = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)
	identifier = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]{0,63}$`)
)

// keys checks the names of all properties, and of those that are required.
func keys(s map[string]any, form *regexp.Regexp, rule providerRule) error {
	return everySchema(s, 0, func(s map[string]any, _ int) error {
		named, _ := s["properties"].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(named)) {
			if !form.MatchString(key) {
				return breaks(rule, "%q is not %s", key, form)
			}
		}
		return nil
	})
}

// requires checks that required properties are properties.
func requires(s map[string]any, rule providerRule) error {
	names, isList := s["required"].([]any)
	if has(s, "required") && (!isList || len(names) == 0) {
		return breaks(rule, "required is %v", s["required"])
	}
	named, _ := s["properties"].(map[string]any)
	for _, name := range names {
		if text, _ := name.(string); !has(named, text) {
			return breaks(rule, "%v is required", name)
		}
	}
	return nil
}

// everySchema calls check for a schema and all schemas within it. depth counts
// those around it.
func everySchema(s map[string]any, depth int, check func(s map[string]any, depth int) error) error {
	if err := check(s, depth); err != nil {
		return err
	}
	visit := func(v any, depth int) error {
		if sub, ok := v.(map[string]any); ok {
			return everySchema(sub, depth, check)
		}
		return nil
	}
	for _, key := range []string{"items", "additionalProperties", "contains", "not", "if", "then", "else", "propertyNames"} {
		if err := visit(s[key], depth+1); err != nil {
			return err
		}
	}
	for _, key := range []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"} {
		named, _ := s[key].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(named)) {
			if err := visit(named[name], depth+1); err != nil {
				return err
			}
		}
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf", "prefixItems"} {
		list, _ := s[key].([]any)
		for _, sub := range list {
			if err := visit(sub, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// unknownKey returns the first keyword that is in neither list, or "".
func unknownKey(s map[string]any, allowed []string, also ...string) string {
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if key != "type" && !slices.Contains(allowed, key) && !slices.Contains(also, key) {
			return key
		}
	}
	return ""
}

func has(s map[string]any, key string) bool { _, ok := s[key]; return ok }

func isSchema(v any) bool { _, ok := v.(map[string]any); return ok }

func allTexts(values []any) bool {
	return !slices.ContainsFunc(values, func(v any) bool { text, ok := v.(string); return !ok || text == "" })
}

func repeats(values []any) bool {
	seen := map[string]bool{}
	for _, v := range values {
		text, _ := json.Marshal(v)
		if seen[string(text)] {
			return true
		}
		seen[string(text)] = true
	}
	return false
}
