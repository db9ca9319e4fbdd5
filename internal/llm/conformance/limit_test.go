package conformance

// The output limit sent to each API: no more than the run's budgets leave, nor
// than params allow.

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/refold/refold/bridge/executor"
)

// TestOutputIsLimited: the limit in a request, by the budgets and params.
func TestOutputIsLimited(t *testing.T) {
	t.Parallel()
	for _, a := range apis() {
		// Where the API has its limit, the one that it gets without being asked,
		// and the least that it takes.
		member := map[string]string{
			"openai-chat": "max_completion_tokens", "openai": "max_output_tokens", "anthropic": "max_tokens", "gemini": "generationConfig.maxOutputTokens",
		}[a.name]
		otherwise, least := "null", "1"
		switch a.name {
		case "anthropic":
			otherwise = "8192"
		case "openai":
			least = "16"
		}
		for _, c := range []struct {
			left   int64
			params string // of the limit's member; empty: none
			want   string
		}{
			{0, "", otherwise}, {0, "500", "500"}, {0, "100000", "100000"},
			{700, "", "700"}, {700, "500", "500"}, {700, "100000", "700"}, {1, "", least}, {1, "500", least},
			{100_000, "90000", "90000"}, {100_000, "", map[bool]string{true: "8192", false: "100000"}[a.name == "anthropic"]},
		} {
			req := hello
			req.OutputTokensMax = c.left
			if c.params != "" {
				req.Params = nested(member, c.params)
			}
			if got := limitOf(t, a, req, member); got != c.want {
				t.Errorf("%s: %d are left and params say %q: asked for %s, want %s", a.name, c.left, c.params, got, c.want)
			}
		}
	}
}

// TestOutputLimitUsesTheMemberOfTheAPI: other members than the usual one,
// thinking budgets, and invalid limits.
func TestOutputLimitUsesTheMemberOfTheAPI(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ api, params, member, want string }{
		{"openai-chat", `{"max_tokens":500}`, "max_tokens", "100"},
		{"openai-chat", `{"max_tokens":500}`, "max_completion_tokens", "null"},
		{"openai-chat", `{"max_tokens":500,"max_completion_tokens":50}`, "max_completion_tokens", "50"},
		{"openai-chat", `{"max_tokens":500,"max_completion_tokens":50}`, "max_tokens", "100"},
		{"anthropic", `{"max_tokens":9000,"thinking":{"type":"enabled","budget_tokens":2000}}`, "max_tokens", "2001"},
		{"anthropic", `{"max_tokens":1500,"thinking":{"type":"enabled","budget_tokens":1200}}`, "thinking.budget_tokens", "1200"},
		{"gemini", `{"generationConfig":{"maxOutputTokens":500,"temperature":0.5}}`, "generationConfig.maxOutputTokens", "100"},
		{"gemini", `{"generationConfig":{"maxOutputTokens":500,"temperature":0.5}}`, "generationConfig.temperature", "0.5"},
	} {
		req := hello
		req.OutputTokensMax, req.Params = 100, json.RawMessage(c.params)
		if got := limitOf(t, apiOf(t, c.api), req, c.member); got != c.want {
			t.Errorf("%s with %s: %s is %s, want %s", c.api, c.params, c.member, got, c.want)
		}
	}
	for api, params := range map[string]string{
		"openai-chat": `{"max_tokens":"many"}`, "openai": `{"max_output_tokens":1.5}`, "anthropic": `{"max_tokens":[]}`,
		"gemini": `{"generationConfig":{"maxOutputTokens":"1e3"}}`,
	} {
		req := hello
		req.OutputTokensMax, req.Params = 100, json.RawMessage(params)
		a := apiOf(t, api)
		got := a.ask(t, req, 0, a.answers(t)["text"])
		if got.fault == nil || got.fault.Code != "bad_request" || !strings.Contains(got.fault.Detail, "is a whole number") {
			t.Errorf("%s with %s: got %v", api, params, got.err)
		}
	}
}

// limitOf returns the value at a path of the request that is sent, null if there is
// none.
func limitOf(t *testing.T, a api, req executor.Request, path string) string {
	t.Helper()
	got := a.ask(t, req, 0, a.answers(t)["text"])
	if got.err != nil {
		t.Fatal(got.err)
	}
	value := got.server.got()[0].body
	for _, name := range strings.Split(path, ".") {
		var members map[string]json.RawMessage
		if json.Unmarshal(value, &members) != nil || members[name] == nil {
			return "null"
		}
		value = members[name]
	}
	return string(value)
}

// nested is an object with a value at a path.
func nested(path, value string) json.RawMessage {
	outer, inner, deep := strings.Cut(path, ".")
	if deep {
		value = string(nested(inner, value))
	}
	return json.RawMessage(fmt.Sprintf(`{%q:%s}`, outer, value))
}
