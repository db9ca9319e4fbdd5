package mcp

// The results of answers.

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

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
		r := tool.resultOf(c.answer, nil)
		fault := ""
		if r.Error != nil {
			fault = r.Error.Error()
		}
		if r.Output != c.output || fault != c.fault {
			t.Errorf("%s: got %q, %q; want %q, %q", c.name, r.Output, fault, c.output, c.fault)
		}
	}
}

// TestLargeNumbersAreExact: an integer that no float can represent is unchanged
// in arguments and in structured content, and text that is equal to the
// structured content is not repeated with other digits.
func TestLargeNumbersAreExact(t *testing.T) {
	t.Parallel()
	over(t, append(slices.Clone(allWays), "json"), func(t *testing.T, w *world) {
		w.imports()
		for _, arguments := range []string{
			`{"id":9007199254740993,"list":[-9007199254740993,18446744073709551615,123456789012345678901234567890],"tag":"<a>"}`,
			`{"id":9007199254740993,"twice":true}`,
		} {
			if r := w.call(t.Context(), "large", arguments, true); r.Status != "succeeded" || r.Shown != arguments {
				t.Errorf("%s: shown %q, want %q (%s)", r.Status, r.Shown, arguments, r.Detail)
			}
		}
	})
}

// TestOtherEventsAreUnchanged: events without structured content, however the
// stream is split.
func TestOtherEventsAreUnchanged(t *testing.T) {
	t.Parallel()
	const answer = `{"id":1,"jsonrpc":"2.0","result":{"_meta":{"a":1},"structuredContent":{"n":9007199254740993}}}`
	const kept = `{"id":1,"jsonrpc":"2.0","result":{"_meta":{"a":1,"refold/structured":"{\"n\":9007199254740993}"},"structuredContent":{"n":9007199254740993}}}`
	long := strings.Repeat("x", 200<<10)
	for _, c := range []struct{ name, kind, body, want string }{
		{"a message", "application/json; charset=utf-8", answer, kept},
		{"no answer", "application/json", `{"structuredContent": 1}`, `{"structuredContent": 1}`},
		{"no JSON", "application/json", `"structuredContent"]`, `"structuredContent"]`},
		{"another type", "text/html", answer, answer},
		{"events", "text/event-stream", ": ping\n\nid: 7\ndata: " + answer + "\n\ndata: {}\n\n", ": ping\n\ndata: " + kept + "\nid: 7\n\ndata: {}\n\n"},
		{"in lines", "text/event-stream", "data: " + answer[:8] + "\r\ndata:" + answer[8:] + "\r\n\r\n", "data: " + kept + "\n\r\n"},
		{"broken off", "text/event-stream", "data: " + answer + "\n", "data: " + answer + "\n"},
		{"long", "text/event-stream", "data: " + long + "\n\ndata: " + answer + "\n\n", "data: " + long + "\n\ndata: " + kept + "\n\n"},
	} {
		r := &http.Response{Header: http.Header{"Content-Type": {c.kind}}, Body: io.NopCloser(iotest.OneByteReader(strings.NewReader(c.body)))}
		exactly(r)
		if got, err := io.ReadAll(r.Body); err != nil || string(got) != c.want {
			t.Errorf("%s: got %.300q, %v; want %.300q", c.name, got, err, c.want)
		}
	}
}
