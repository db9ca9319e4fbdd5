package conformance

// Schemas of tools that public reports say a provider refused: every API's
// client sends a form that its strictest rules accept.

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/bridge/executor"
)

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
	body := got.server.got()[0].body
	if err := a.check(body); err != nil {
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

// publishedServer is the record of a server's tools.
type publishedServer struct {
	Package, Version, Licence string
	Tools                     []struct {
		Name        string          `json:"name"`
		InputSchema json.RawMessage `json:"inputSchema"`
	}
}

func publishedServers(t *testing.T) (servers []publishedServer) {
	t.Helper()
	text, err := os.ReadFile("testdata/mcp.json")
	must(t, err)
	must(t, json.Unmarshal(text, &servers))
	return servers
}

// TestSchemasOfPublishedServers: the tools of MCP servers from npm, which testdata
// records with their licences. Each API is sent all of a server's tools.
func TestSchemasOfPublishedServers(t *testing.T) {
	t.Parallel()
	servers := publishedServers(t)
	if len(servers) < 5 {
		t.Errorf("%d servers", len(servers))
	}
	for _, s := range servers {
		if s.Version == "" || s.Licence == "" || len(s.Tools) == 0 {
			t.Errorf("%s: version %q, licence %q, %d tools", s.Package, s.Version, s.Licence, len(s.Tools))
		}
		tools := make([]executor.Tool, len(s.Tools))
		for i, tool := range s.Tools {
			tools[i] = executor.Tool{Name: tool.Name, Schema: tool.InputSchema}
		}
		for _, a := range apis() {
			body := string(a.sendTools(t, s.Package, tools...))
			for _, tool := range tools {
				if !strings.Contains(body, `"`+tool.Name+`"`) {
					t.Errorf("%s, %s: %s is not sent", a.name, s.Package, tool.Name)
				}
			}
		}
	}
}

// TestNamesAreRenamedBack: what a model calls under the names that it was shown
// arrives under the tool's own, and an earlier call is told under the shown ones.
func TestNamesAreRenamedBack(t *testing.T) {
	t.Parallel()
	const own = "at[]" // at__ in the answers' place of at
	for _, a := range apis() {
		if a.name == "openai" {
			continue // it renames nothing
		}
		req := hello
		req.Tools = []executor.Tool{{Name: "look", Schema: json.RawMessage(`{"type":"object","properties":{"at[]":{"type":"string"}}}`)}}
		req.Messages = append(slices.Clone(req.Messages),
			executor.Message{Role: "assistant", Calls: []executor.MessageCall{{ID: "r1t1c0", Name: "look", Arguments: `{"at[]": "z"}`}}},
			executor.Message{Role: "tool", CallID: "r1t1c0", Text: "seen"})
		answer := strings.NewReplacer(`\"at`, `\"at__`, `"at"`, `"at__"`, `at\"`, `at__\"`).Replace(a.answers(t)["calls"])
		answer = strings.ReplaceAll(answer, "at____", "at__")
		got := a.ask(t, req, 0, answer)
		if got.err != nil || len(got.answer.Calls) != 2 || got.answer.Calls[0].Arguments != `{"`+own+`":"a"}` {
			t.Errorf("%s: got %+v, %v", a.name, got.answer.Calls, got.err)
			continue
		}
		if body := string(got.server.got()[0].body); !strings.Contains(body, "at__") || strings.Contains(body, "at[]") {
			t.Errorf("%s: sent %s", a.name, body)
		}
	}
}
