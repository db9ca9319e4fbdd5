//go:build peers

package conformance

// Requests that providers accepted pass our validators: a rule that refuses one
// is not the provider's.

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/internal/llm"
)

// notRendered are members that Refold never sends through an API, and why the
// validators, which know none but those that it sends, need not know them.
var notRendered = map[string]map[string]string{
	"openai-chat": {
		"cache_control": "gateways take it and OpenAI does not; Refold sends it to Anthropic's own API alone",
		"reasoning":     "repeats the words of reasoning_details, which go back; carries compares them",
	},
}

// stripped returns a conversation without those members, and counts them.
func stripped(v any, api string, counts map[string]int) any {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			if _, ok := notRendered[api][name]; ok {
				counts[name]++
				delete(v, name)
				continue
			}
			v[name] = stripped(inner, api, counts)
		}
	case []any:
		for i := range v {
			v[i] = stripped(v[i], api, counts)
		}
	}
	return v
}

// mended changes what other clients sent and Refold never sends: ids in the form of
// the server that was asked, arguments in twice as many quotes, blank words. These
// rules are stricter than the recorded servers, for the sake of others. counts is
// how often each is changed.
func mended(messages any, counts map[string]int) any {
	list, _ := messages.([]any)
	for _, item := range list {
		message, _ := item.(map[string]any)
		if text, is := message["content"].(string); is && message["tool_calls"] != nil && text != "" && llm.IsBlank(text) {
			counts["blank words"]++
			delete(message, "content")
		}
		if id, is := message["tool_call_id"].(string); is {
			message["tool_call_id"] = llm.CallID(id)
		}
		argue := func(of map[string]any) {
			text, _ := of["arguments"].(string)
			var inner string
			if json.Unmarshal([]byte(text), &inner) == nil {
				counts["arguments quoted twice"]++
				of["arguments"] = inner
			}
		}
		argue(message)
		calls, _ := message["tool_calls"].([]any)
		for _, c := range calls {
			call, _ := c.(map[string]any)
			id, _ := call["id"].(string)
			call["id"] = llm.CallID(id)
			function, _ := call["function"].(map[string]any)
			argue(function)
		}
	}
	return messages
}

func TestRecordingsPassTheValidators(t *testing.T) {
	t.Parallel()
	checks := map[string]func([]byte) error{}
	for _, a := range apis() {
		checks[a.name] = a.check
	}
	members := map[string]string{"openai-chat": "messages", "openai": "input", "anthropic": "messages", "gemini": "contents"}
	taken, exempt := map[string]int{}, map[string]int{}
	for _, r := range recordings(t) {
		for i, x := range r.turns {
			d := dialectOf(x)
			if d == nil { // Bedrock: another transport of Anthropic's messages
				d = &dialects()[2]
			}
			in, err := d.told(x.sent)
			var body map[string]any
			if err != nil || json.Unmarshal(x.sent, &body) != nil {
				t.Errorf("%s, %d: %v", r.file, i, err)
				continue
			}
			if in.foreign > 0 && strings.Contains(string(x.sent), "server_tool_use") {
				exempt["blocks of tools that Anthropic runs by itself"]++
				continue
			}
			conversation := map[string]any{members[d.api]: mended(stripped(body[members[d.api]], d.api, exempt), exempt)}
			if err := checks[d.api]([]byte(encode(conversation))); err != nil {
				t.Errorf("%s, %d: the provider took it, we refuse it: %v", r.file, i, err)
				continue
			}
			taken[d.api]++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(taken)) {
		t.Logf("%4d requests pass: %s", taken[name], name)
	}
	t.Logf("exempt: %v", exempt)
	if want := map[string]int{"openai-chat": 308, "openai": 78, "anthropic": 74, "gemini": 84}; !reflect.DeepEqual(taken, want) {
		t.Errorf("%v pass, want %v", taken, want)
	}
	want := map[string]int{"arguments quoted twice": 30, "blank words": 3, "blocks of tools that Anthropic runs by itself": 1, "cache_control": 40, "reasoning": 6}
	if !reflect.DeepEqual(exempt, want) {
		t.Errorf("exempt are %v, want %v", exempt, want)
	}
}
