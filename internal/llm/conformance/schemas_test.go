package conformance

// Schemas of tools that public reports say a provider refused: every API's
// client sends a form that its strictest rules accept.

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/proof/strict"
)

// toolRules are the rules of each API for the tools of a request.
var toolRules = map[string]func(body []byte) error{
	"openai-chat": strict.ChatTools, "openai": strict.OpenAITools, "anthropic": strict.AnthropicTools, "gemini": strict.GeminiTools,
}

// sendTools sends a request with tools, and returns what the client sent.
func (a api) sendTools(t *testing.T, what string, tools ...executor.Tool) []byte {
	t.Helper()
	req := hello
	req.Tools = tools
	got := a.ask(t, req, 0, a.answers(t)["text"])
	if got.err != nil {
		t.Errorf("%s, %s: %v", a.name, what, got.err)
		return nil
	}
	body := []byte(got.server.got()[0].body)
	if err := errors.Join(a.check(body), toolRules[a.name](body)); err != nil {
		t.Errorf("%s, %s: %v\n%.2000s", a.name, what, err, body)
	}
	return body
}

// schemaCase is a schema that somebody's provider refused.
type schemaCase struct {
	Name   string          `json:"name"`
	Source string          `json:"source"`
	Schema json.RawMessage `json:"schema"`
}

func schemaCases(t *testing.T) (cases []schemaCase) {
	t.Helper()
	text, err := os.ReadFile("testdata/schemas.json")
	must(t, err)
	must(t, json.Unmarshal(text, &cases))
	return cases
}

// TestReportedSchemasAreAccepted: each case, for each API.
func TestReportedSchemasAreAccepted(t *testing.T) {
	t.Parallel()
	for _, c := range schemaCases(t) {
		if !strings.HasPrefix(c.Source, "https://") {
			t.Errorf("%s: its source is %q", c.Name, c.Source)
		}
		for _, a := range apis() {
			a.sendTools(t, c.Name, executor.Tool{Name: "f", Schema: c.Schema})
		}
	}
}

// TestReportedNamesAreAccepted: names that a registry allows, and an API does not.
func TestReportedNamesAreAccepted(t *testing.T) {
	t.Parallel()
	var tools []executor.Tool
	for _, name := range []string{
		"21st_magic_component_builder", // https://github.com/SuperClaude-Org/SuperGemini_Framework/issues/12
		"_21st_magic_component_builder", "-", "get-user", "get_user", "Get_User", strings.Repeat("9", 64), "9" + strings.Repeat("a", 63), "8" + strings.Repeat("a", 63),
	} {
		tools = append(tools, executor.Tool{Name: name, Schema: json.RawMessage(`{}`)})
	}
	for _, a := range apis() {
		a.sendTools(t, "names", tools...)
	}
}

// TestToolsBeyondTheLimitAreLeftOut: https://github.com/anomalyco/opencode/issues/4909
func TestToolsBeyondTheLimitAreLeftOut(t *testing.T) {
	t.Parallel()
	tools := make([]executor.Tool, 142)
	for i := range tools {
		tools[i] = executor.Tool{Name: fmt.Sprintf("tool_%d", i), Schema: json.RawMessage(`{"type":"object"}`)}
	}
	for _, a := range apis() {
		body := string(a.sendTools(t, "142 tools", tools...))
		if sent := strings.Count(body, `"tool_`); sent != 128 && a.name != "anthropic" || sent != 142 && a.name == "anthropic" || !strings.Contains(body, `"tool_127"`) {
			t.Errorf("%s: %d tools of 142 are sent", a.name, sent)
		}
	}
}

// TestSchemaOfNoObjectIsLeftOut: no API takes arguments that are no object.
func TestSchemaOfNoObjectIsLeftOut(t *testing.T) {
	t.Parallel()
	for _, a := range apis() {
		body := string(a.sendTools(t, "a text", executor.Tool{Name: "text", Schema: json.RawMessage(`{"type":"string"}`)}, executor.Tool{Name: "kept", Schema: json.RawMessage(`{}`)}))
		if strings.Contains(body, `"text","parameters`) || !strings.Contains(body, `"kept"`) {
			t.Errorf("%s: sent %s", a.name, body)
		}
	}
}
