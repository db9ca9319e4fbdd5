package openai

// Members of requests that a server refuses.

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/refold/refold/internal/llm/endpoint"
)

// members returns which of some members a request has.
func members(t *testing.T, body []byte, names ...string) (has []string) {
	t.Helper()
	var all map[string]json.RawMessage
	must(t, json.Unmarshal(body, &all))
	for _, name := range names {
		if _, ok := all[name]; ok {
			has = append(has, name)
		}
	}
	return has
}

// TestRefusedMembersAreLeftOut: after the refusal, the request is sent again without
// the member, and all later ones too.
func TestRefusedMembersAreLeftOut(t *testing.T) {
	t.Parallel()
	const both = "[max_completion_tokens stream_options]"
	extra := func(member string) reply {
		return whole(422, `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","`+member+`"],"msg":"Extra inputs are not permitted"}]},"type":"invalid_request_error","code":null}`)
	}
	for _, c := range []struct {
		what    string
		refused []reply
		want    string // of the members of the later requests
	}{
		{"stream_options, by its path", []reply{extra("stream_options")}, "[max_completion_tokens]"}, // mistralai/platform-docs-public#7
		{"stream_options, in a text", []reply{whole(400, `{"error":{"message":"Unrecognized request argument supplied: stream_options","type":"invalid_request_error"}}`)}, "[max_completion_tokens]"},
		{"stream_options, by param", []reply{whole(400, `{"error":{"message":"Unknown parameter","param":"stream_options"}}`)}, "[max_completion_tokens]"},
		{"the newer limit", []reply{extra("max_completion_tokens")}, "[max_tokens stream_options]"}, // editor-code-assistant/eca#231
		{"both", []reply{extra("stream_options"), extra("max_completion_tokens")}, "[max_tokens]"},
		{"none", nil, both},
	} {
		s := newServer(t, append(c.refused, text("first"), text("second"))...)
		m := s.model(t, Config{Config: endpoint.Config{Key: key}})
		req := hello
		req.OutputTokensMax = 500
		for i, want := range []string{"first", "second"} {
			answer, _, failure := m.generate(t, req)
			if failure != nil || answer.Text != want || len(m.waits) > 0 && m.waits[0] > 0 {
				t.Errorf("%s, request %d: got %+v, %v, waited %v", c.what, i, answer, failure, m.waits)
			}
		}
		if len(s.bodies) != len(c.refused)+2 {
			t.Errorf("%s: %d requests", c.what, len(s.bodies))
			continue
		}
		for _, body := range s.bodies[len(c.refused):] {
			if got := fmt.Sprint(members(t, body, "max_completion_tokens", "max_tokens", "stream_options")); got != c.want {
				t.Errorf("%s: sent %s, want %s", c.what, got, c.want)
			}
		}
		if told := strings.Count(m.logs.String(), "which is not sent any more"); told != len(c.refused) {
			t.Errorf("%s: told %d times: %s", c.what, told, m.logs.String())
		}
	}
}

// TestOtherRefusalsAreFinal: a member that params set, one that is no fault of ours, and
// one without which the server refuses the request too.
func TestOtherRefusalsAreFinal(t *testing.T) {
	t.Parallel()
	usage := whole(400, `{"error":{"message":"stream_options is not supported"}}`)
	for _, c := range []struct {
		what     string
		params   string
		replies  []reply
		requests int
	}{
		{"a member of params", `{"stream_options":{"include_usage":false}}`, []reply{usage}, 1},
		{"another member", "", []reply{whole(400, `{"error":{"message":"temperature is not supported"}}`)}, 1},
		{"words", "", []reply{whole(400, `{"error":{"message":"Please include a stream option."}}`)}, 1},
		{"refused without it, too", "", []reply{usage, usage}, 2},
	} {
		s := newServer(t, append(c.replies, text("late"))...)
		m := s.model(t, Config{Config: endpoint.Config{Key: key}})
		req := hello
		if c.params != "" {
			req.Params = json.RawMessage(c.params)
		}
		if _, _, failure := m.generate(t, req); failure == nil || failure.Code != "bad_request" || len(s.bodies) != c.requests {
			t.Errorf("%s: %d requests, %v", c.what, len(s.bodies), failure)
		}
		if _, _, failure := m.generate(t, hello); failure != nil || fmt.Sprint(members(t, s.bodies[c.requests], "stream_options")) != "[stream_options]" {
			t.Errorf("%s: it is remembered: %v, %s", c.what, failure, s.bodies[c.requests])
		}
	}
}
