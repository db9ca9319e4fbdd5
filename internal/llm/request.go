package llm

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/planner"
)

// Params returns the members of a request's params. reserved are those that
// params can't set: they are made of other parts of the config, or change the
// form of the answer. The error is a fault of the run's config.
func Params(params json.RawMessage, reserved []string) (map[string]json.RawMessage, error) {
	if len(params) == 0 {
		return nil, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(params, &members); err != nil {
		return nil, Fail(CodeBadRequest, "params: is no JSON object")
	}
	for name := range members {
		if slices.Contains(reserved, name) {
			return nil, Fail(CodeBadRequest, "params.%s: is not for params to set: leave it out", name)
		}
	}
	return members, nil
}

// Schema returns the members of a tool's schema, byte for byte, and the type
// that some APIs insist on if it has none.
func Schema(t *executor.Tool) (map[string]any, error) {
	members, err := Members(t.Schema, "tool "+t.Name+": its schema")
	if err != nil {
		return nil, err
	}
	schema := map[string]any{"type": "object"}
	for name, value := range members {
		schema[name] = value
	}
	return schema, nil
}

// RenderTools returns a request's member tools, as JSON: what one makes of each tool
// and of what schema returns for it.
func RenderTools[T any](
	tools []executor.Tool, schema func(*executor.Tool) (map[string]any, error), one func(*executor.Tool, map[string]any) T,
) ([]byte, error) {
	all := make([]T, len(tools))
	for i := range tools {
		members, err := schema(&tools[i])
		if err != nil {
			return nil, err
		}
		all[i] = one(&tools[i], members)
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, Fail(CodeBadRequest, "tools: %s", err)
	}
	return text, nil
}

// Merge adds member with value to params' object of the same name as of, which
// params may have for its other members. Members that params set are kept.
func Merge(members map[string]json.RawMessage, of, member string, value any) (map[string]any, error) {
	merged := map[string]any{member: value}
	given, ok := members[of]
	if !ok {
		return merged, nil
	}
	object, err := Members(given, "params."+of)
	if err != nil {
		return nil, err
	}
	if _, twice := object[member]; twice {
		return nil, Fail(CodeBadRequest, "params.%s.%s: the config has a response_format of its own: leave one out", of, member)
	}
	for name, value := range object {
		merged[name] = value
	}
	return merged, nil
}

// OutputTokensMax returns the limit that a request sends for its answer: what
// params give as name, else otherwise, and no more than the run's budgets leave.
// Below least the API would refuse the request, so they count as that much. 0:
// there is no limit to send.
func OutputTokensMax(req *executor.Request, name string, given json.RawMessage, otherwise, least int64) (int64, error) {
	limit := otherwise
	if len(given) > 0 && json.Unmarshal(given, &limit) != nil {
		return 0, Fail(CodeBadRequest, "params.%s: is a whole number", name)
	}
	if left := req.OutputTokensMax; left > 0 && (limit == 0 || limit > left) {
		if left = max(left, least); limit == 0 || limit > left {
			limit = left
		}
	}
	return limit, nil
}

// Members returns a JSON object's members; what is wrong is said of what.
func Members(object json.RawMessage, what string) (map[string]json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil || members == nil {
		return nil, Fail(CodeBadRequest, "%s is no JSON object", what)
	}
	return members, nil
}

// inventedName stands for a name that a model made up and no provider takes
// back. The call was refused under its own name, and its result says so.
const inventedName = "invalid_tool_name"

// ToolName returns a called tool's name as all providers take it.
func ToolName(name string) string {
	if planner.IsName(name) {
		return name
	}
	return inventedName
}

// Object returns a call's arguments as an object, for providers that take
// nothing else. What is none is shown as the text that the model wrote.
func Object(arguments string) json.RawMessage {
	text := strings.TrimSpace(arguments)
	switch {
	case text == "":
		return json.RawMessage("{}")
	case text[0] == '{' && json.Valid([]byte(text)):
		return json.RawMessage(text)
	}
	return JSON(map[string]string{"unreadable": arguments})
}

// JSON is a value as JSON, of texts, numbers and what was read from JSON.
func JSON(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil { // these can be written
		panic(err)
	}
	return text
}

// IsBlank reports whether a text is empty, or white space alone.
func IsBlank(text string) bool { return strings.TrimSpace(text) == "" }

// Spoken is a user's text for providers that take no blank one.
func Spoken(text string) string {
	if IsBlank(text) {
		return "(blank)"
	}
	return text
}

// DataURL is an image as a URL that holds it.
func DataURL(p *executor.Part) string {
	return "data:" + p.MediaType + ";base64," + base64.StdEncoding.EncodeToString(p.Data)
}

// FormatName is the name of a format's schema; APIs that want one get one.
func FormatName(f *executor.Format) string {
	if f.Name == "" {
		return "answer"
	}
	return f.Name
}

// Result is what a tool message says; no API takes an empty one.
func Result(m *executor.Message) string {
	if IsBlank(m.Text) {
		return "(no output)"
	}
	return m.Text
}
