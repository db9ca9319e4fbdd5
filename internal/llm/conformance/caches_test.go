package conformance

// The use of providers' prompt caches and of masked tools.

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/bridge/executor"
)

// marksOf returns which blocks of an Anthropic request are marked, counted over
// all messages, how many there are, and whether the system text and the last
// tool are.
func marksOf(t *testing.T, body []byte) (marks []int, blocks int, system, tool string) {
	t.Helper()
	type marked struct {
		Cache *struct{ Type, TTL string } `json:"cache_control"`
	}
	var request struct {
		System, Tools []marked
		Messages      []struct{ Content []marked }
	}
	must(t, json.Unmarshal(body, &request))
	last := func(all []marked) string {
		if n := len(all); n > 0 && all[n-1].Cache != nil {
			return all[n-1].Cache.Type + all[n-1].Cache.TTL
		}
		return ""
	}
	for _, m := range request.Messages {
		for _, b := range m.Content {
			if b.Cache != nil {
				marks = append(marks, blocks)
			}
			blocks++
		}
	}
	return marks, blocks, last(request.System), last(request.Tools)
}

// TestEndOfPreviousRequestIsMarked: twenty turns, each with a batch of 25
// calls, more than the 20 blocks that Anthropic's API searches back. Every
// request has a mark at the end of the previous request, and at its own.
func TestEndOfPreviousRequestIsMarked(t *testing.T) {
	t.Parallel()
	a := apiOf(t, "anthropic")
	m, c := a.sender(t, "models.example")
	req := executor.Request{Session: "s1", Effect: "r1t1", Model: "claude-sonnet-5-5", System: strings.Repeat("Be brief. ", 600), Tools: tools,
		Messages: []executor.Message{user("hello")}}
	end := -1
	for turn := 1; turn <= 20; turn++ {
		body := c.sent(t, m, req)
		if err := a.check(body); err != nil {
			t.Fatalf("turn %d: %v", turn, err)
		}
		marks, blocks, system, tool := marksOf(t, body)
		want := []int{end, blocks - 1}
		if end < 0 {
			want = want[1:]
		}
		if !slices.Equal(marks, want) || system != "ephemeral" || tool != "" {
			t.Errorf("turn %d: blocks %v of %d are marked, want %v; the system text %q, the last tool %q", turn, marks, blocks, want, system, tool)
		}
		if end >= 0 && blocks-1-end <= 20 {
			t.Errorf("turn %d: %d blocks more, which the lookback reaches: this shows nothing", turn, blocks-1-end)
		}
		end = blocks - 1
		said, results := says("Let me look."), []executor.Message(nil)
		for i := range 25 {
			id := fmt.Sprintf("r1t%dc%d", turn, i)
			said.Calls = append(said.Calls, call(id, `{"at":"a"}`))
			results = append(results, result(id, "there"))
		}
		req.Messages = append(append(req.Messages, said), results...)
		if turn%5 == 0 { // a steer comes with the results
			req.Messages = append(req.Messages, user("be quick"))
		}
	}
}

// TestMarksDependOnModelAndConfig: nothing below the model's minimum is marked,
// and the config sets the lifetime. Settings in params win.
func TestMarksDependOnModelAndConfig(t *testing.T) {
	t.Parallel()
	text := func(tokens int) string { return strings.Repeat("abcd", tokens) }
	base := executor.Request{Session: "s1", Effect: "r1t1", Model: "claude-sonnet-5-5", Messages: []executor.Message{user("hello")}}
	for name, c := range map[string]struct {
		change       func(r *executor.Request)
		marks        int
		system, tool string
	}{
		"short":   {func(r *executor.Request) { r.System = text(900) }, 0, "", ""},
		"long":    {func(r *executor.Request) { r.System = text(1024) }, 1, "ephemeral", ""},
		"an hour": {func(r *executor.Request) { r.System, r.CacheTTL = text(1024), "1h" }, 1, "ephemeral1h", ""},
		"off":     {func(r *executor.Request) { r.System, r.CacheTTL = text(1024), "off" }, 0, "", ""},
		"params mark": {func(r *executor.Request) {
			r.System, r.Params = text(1024), json.RawMessage(`{"cache_control":{"type":"ephemeral"}}`)
		}, 0, "", ""},
		"a short system text":     {func(r *executor.Request) { r.System, r.Messages = "Be brief.", []executor.Message{user(text(1024))} }, 1, "", ""},
		"tools, no system text":   {func(r *executor.Request) { r.Tools = []executor.Tool{{Name: "look", Description: text(1100)}} }, 1, "", "ephemeral"},
		"a model that takes 512":  {func(r *executor.Request) { r.Model, r.System = "claude-opus-5-5", text(512) }, 1, "ephemeral", ""},
		"behind a gateway":        {func(r *executor.Request) { r.Model, r.System = "anthropic/claude-opus-5", text(512) }, 1, "ephemeral", ""},
		"a model that takes more": {func(r *executor.Request) { r.Model, r.System = "claude-opus-4-6", text(4000) }, 0, "", ""},
		"an unknown model":        {func(r *executor.Request) { r.Model, r.System = "m-1", text(4000) }, 0, "", ""},
		"an unknown model, long":  {func(r *executor.Request) { r.Model, r.System = "m-1", text(4096) }, 1, "ephemeral", ""},
		"an image": {func(r *executor.Request) {
			r.Messages = []executor.Message{pictured(user("what?"), executor.Part{Text: "what?"}, executor.Part{MediaType: "image/png", Data: png})}
		}, 1, "", ""},
	} {
		req := base
		for i := range req.Tools {
			req.Tools[i].Schema = json.RawMessage(`{}`)
		}
		c.change(&req)
		for i := range req.Tools {
			req.Tools[i].Schema = json.RawMessage(`{}`)
		}
		m, sends := apiOf(t, "anthropic").sender(t, "models.example")
		body := sends.sent(t, m, req)
		marks, _, system, tool := marksOf(t, body)
		if len(marks) != c.marks || system != c.system || tool != c.tool {
			t.Errorf("%s: %d blocks are marked, the system text %q, the last tool %q; want %d, %q, %q", name, len(marks), system, tool, c.marks, c.system, c.tool)
		}
		if err := apiOf(t, "anthropic").check(body); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOpenAICacheDependsOnModelAndConfig: the key and the retention, by model,
// API and config. Settings in params win. Other servers of chat completions get
// neither.
func TestOpenAICacheDependsOnModelAndConfig(t *testing.T) {
	t.Parallel()
	const own, other = "api.openai.com", "models.example"
	for _, c := range []struct{ api, host, model, ttl, params, key, options, retention string }{
		{"openai", own, "gpt-5.6", "", "", `"s1"`, "", ""},
		{"openai", own, "gpt-5.6", "5m", "", `"s1"`, "", ""},
		{"openai", own, "gpt-5.6", "1h", "", `"s1"`, `{"ttl":"12h"}`, ""},
		{"openai", own, "gpt-6-mini", "1h", "", `"s1"`, `{"ttl":"12h"}`, ""},
		{"openai", other, "gpt-5.6", "1h", "", `"s1"`, `{"ttl":"12h"}`, ""},
		{"openai", own, "gpt-5.5-2026-04-23", "1h", "", `"s1"`, "", `"24h"`},
		{"openai", own, "gpt-5.1-codex-mini", "1h", "", `"s1"`, "", `"24h"`},
		{"openai", own, "gpt-4.1", "1h", "", `"s1"`, "", `"24h"`},
		{"openai", own, "gpt-4o", "1h", "", `"s1"`, "", ""},
		{"openai", own, "gpt-5-mini", "1h", "", `"s1"`, "", ""},
		{"openai", own, "gpt-5.6", "off", "", "", "", ""},
		{"openai", own, "gpt-5.6", "1h", `{"prompt_cache_key":"k","prompt_cache_options":{"ttl":"30m"}}`, `"k"`, `{"ttl":"30m"}`, ""},
		{"openai", own, "gpt-5.6", "1h", `{"prompt_cache_retention":"24h"}`, `"s1"`, "", `"24h"`},
		{"openai", own, "gpt-5.5", "1h", `{"prompt_cache_options":{"ttl":"30m"}}`, `"s1"`, `{"ttl":"30m"}`, ""},
		{"openai-chat", own, "gpt-5.6", "1h", "", `"s1"`, `{"ttl":"30m"}`, ""},
		{"openai-chat", own, "gpt-5.4", "1h", "", `"s1"`, "", `"24h"`},
		{"openai-chat", other, "gpt-5.6", "1h", "", "", "", ""},
	} {
		a := apiOf(t, c.api)
		m, sends := a.sender(t, c.host)
		req := hello
		req.Model, req.CacheTTL, req.Params = c.model, c.ttl, json.RawMessage(c.params)
		body := sends.sent(t, m, req)
		var got struct {
			Key       json.RawMessage `json:"prompt_cache_key"`
			Options   json.RawMessage `json:"prompt_cache_options"`
			Retention json.RawMessage `json:"prompt_cache_retention"`
		}
		must(t, json.Unmarshal(body, &got))
		if string(got.Key) != c.key || string(got.Options) != c.options || string(got.Retention) != c.retention {
			t.Errorf("%+v: got %s", c, body)
		}
		if err := a.check(body); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestMaskingDefinesAllToolsAndAllowsOffered: if the API can restrict calls,
// all tools are defined and the offered ones may be called; otherwise only the
// offered ones are defined.
func TestMaskingDefinesAllToolsAndAllowsOffered(t *testing.T) {
	t.Parallel()
	responses := func(mode string) string {
		return `"tool_choice":{"mode":"` + mode + `","tools":[{"name":"look","type":"function"}],"type":"allowed_tools"}`
	}
	chat := func(mode string) string {
		return `"tool_choice":{"allowed_tools":{"mode":"` + mode + `","tools":[{"function":{"name":"look"},"type":"function"}]},"type":"allowed_tools"}`
	}
	gemini := func(mode string) string {
		return `"functionCallingConfig":{"allowedFunctionNames":["look"],"mode":"` + mode + `"}`
	}
	want := map[string][]string{ // "", none, required, look; nothing offered
		"openai-chat": {chat("auto"), `"tool_choice":"none"`, chat("required"), `"tool_choice":{"function":{"name":"look"},"type":"function"}`, `"tool_choice":"none"`},
		"openai":      {responses("auto"), `"tool_choice":"none"`, responses("required"), `"tool_choice":{"name":"look","type":"function"}`, `"tool_choice":"none"`},
		"gemini":      {gemini("VALIDATED"), `"functionCallingConfig":{"mode":"NONE"}`, gemini("ANY"), gemini("ANY"), `"functionCallingConfig":{"mode":"NONE"}`},
	}
	for _, a := range apis() {
		for _, host := range []string{"api.openai.com", "models.example"} {
			restricts := a.name != "anthropic" && (a.name != "openai-chat" || host == "api.openai.com")
			m, sends := a.sender(t, host)
			for i, choice := range []string{"", "none", "required", "look", ""} {
				req := hello
				req.Tools, req.Defined, req.ToolChoice = tools[:1], tools, choice
				if i == 4 {
					req.Tools = nil
				}
				body := sends.sent(t, m, req)
				if err := a.check(body); err != nil {
					t.Errorf("%s at %s, %q: %v", a.name, host, choice, err)
				}
				plain := unescaped(t, body)
				if restricts && !strings.Contains(plain, want[a.name][i]) {
					t.Errorf("%s at %s, %q: got %s, want %s in it", a.name, host, choice, plain, want[a.name][i])
				}
				if defined := strings.Contains(plain, `"name":"stop"`); defined != restricts || strings.Contains(plain, "allowed_tools") && !restricts {
					t.Errorf("%s at %s, %q: the masked tool is defined: %v: %s", a.name, host, choice, defined, plain)
				}
			}
		}
	}
}
