package mcp

// What answers come to.

import (
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestResults(t *testing.T) {
	t.Parallel()
	tool := &Tool{Server: "peer", Name: "do"}
	long := strings.Repeat("x", 1000)
	said := func(text string) []sdk.Content { return []sdk.Content{&sdk.TextContent{Text: text}} }
	for _, c := range []struct {
		name          string
		answer        *sdk.CallToolResult
		output, fault string
	}{
		{"nothing", &sdk.CallToolResult{}, "", ""},
		{"text", &sdk.CallToolResult{Content: said("a")}, "a", ""},
		{"only structured", &sdk.CallToolResult{StructuredContent: map[string]any{"n": 1.0, "t": "<b>"}}, `{"n":1,"t":"<b>"}`, ""},
		{"a list", &sdk.CallToolResult{StructuredContent: []any{"a", true}}, `["a",true]`, ""},
		{"structured twice", &sdk.CallToolResult{Content: said(`{ "n": 1 }`), StructuredContent: map[string]any{"n": 1.0}}, `{ "n": 1 }`, ""},
		{"the text under a name", &sdk.CallToolResult{Content: said("a\nb"), StructuredContent: map[string]any{"content": "a\nb"}}, "a\nb", ""},
		{"another text under a name", &sdk.CallToolResult{Content: said("a"), StructuredContent: map[string]any{"content": "b"}}, "a\n{\"content\":\"b\"}", ""},
		{"failed", &sdk.CallToolResult{Content: said("no"), IsError: true}, "", "tool_error: no"},
		{"failed in silence", &sdk.CallToolResult{IsError: true}, "", "tool_error: do of server peer failed and gives no reason"},
		{"failed at length", &sdk.CallToolResult{Content: said(long), IsError: true}, long, "tool_error: do of server peer says that it failed:"},
		{"an empty resource", &sdk.CallToolResult{Content: []sdk.Content{&sdk.EmbeddedResource{}}}, "", ""},
	} {
		r := tool.resultOf(c.answer)
		fault := ""
		if r.Error != nil {
			fault = r.Error.Error()
		}
		if r.Output != c.output || fault != c.fault {
			t.Errorf("%s: got %q, %q; want %q, %q", c.name, r.Output, fault, c.output, c.fault)
		}
	}
}
