package llm

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm/schema"
	"github.com/refold/refold/planner"
)

// Params returns the members of a request's params. params can't set the
// reserved ones: they come from other parts of the config, or change the form
// of the answer. The error is a fault of the run's config.
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

// RenderTools returns a request's member tools as JSON, with schemas in the form
// that the API accepts. one makes an entry from a tool and its schema.
func RenderTools[T any](d *schema.Dialect, tools []executor.Tool, one func(*executor.Tool, map[string]any) T) ([]byte, error) {
	all := make([]T, len(tools))
	for i := range tools {
		members, err := d.Members(&tools[i])
		if err != nil {
			return nil, Fail(CodeBadRequest, "tool %s: %s", tools[i].Name, err)
		}
		all[i] = one(&tools[i], members)
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, Fail(CodeBadRequest, "tools: %s", err)
	}
	return text, nil
}

// Merge returns params' object of, which may have other members, with member
// set to value. It is an error if params set member too.
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

// OutputTokensMax returns the limit to send for the answer: the member name of
// params, else otherwise, but no more than the run's budgets leave. A budget below
// least counts as least, because the API would refuse it. 0 means no limit.
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

// Members returns a JSON object's members; what names the object in errors.
func Members(object json.RawMessage, what string) (map[string]json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil || members == nil {
		return nil, Fail(CodeBadRequest, "%s is no JSON object", what)
	}
	return members, nil
}

// inventedName replaces a name that a model made up and no provider accepts.
// The call was refused under its own name, and its result says so.
const inventedName = "invalid_tool_name"

// ToolName returns a called tool's name in a form that all providers accept.
func ToolName(name string) string {
	if planner.IsName(name) {
		return name
	}
	return inventedName
}

// JSON encodes a value of texts, numbers and decoded JSON.
func JSON(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil { // such values always have a JSON form
		panic(err)
	}
	return text
}

// IsBlank reports whether a text is empty or white space.
func IsBlank(text string) bool { return strings.TrimSpace(text) == "" }

// Spoken returns a user's text for providers that refuse a blank one.
func Spoken(text string) string {
	if IsBlank(text) {
		return "(blank)"
	}
	return text
}

// DataURL returns an image or a document as a data URL.
func DataURL(p *executor.Part) string {
	return "data:" + p.MediaType + ";base64," + base64.StdEncoding.EncodeToString(p.Data)
}

// FormatName returns the name of a format's schema, or a default.
func FormatName(f *executor.Format) string {
	if f.Name == "" {
		return "answer"
	}
	return f.Name
}

// Result returns the text of a tool message; no API accepts an empty one.
func Result(m *executor.Message) string {
	if IsBlank(m.Text) {
		return "(no output)"
	}
	return m.Text
}
