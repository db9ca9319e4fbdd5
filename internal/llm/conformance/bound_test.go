package conformance

// Thoughts bound to their prefix: a server that refuses them once the tools
// have changed, as they do when a session opens its host session.

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm/endpoint"
)

// binding is a server that thinks in its first answer, and takes those thoughts
// back under the same tools alone.
type binding struct {
	a       api
	answers map[string]string
	thought string // what of a request is a thought
	refusal string // the body of the 400
	knows   bool   // how to drop what it would refuse
	got     []request
}

func (b *binding) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	b.got = append(b.got, request{r.URL.String(), r.Header, body})
	answer := b.answers["text"]
	switch tools := bytes.Contains(body, []byte(`"stop"`)); {
	case len(b.got) == 1:
		answer = b.answers["calls"]
	case b.refuses(r, body, tools):
		answer = fmt.Sprintf("HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(b.refusal), b.refusal)
	}
	return http.ReadResponse(bufio.NewReader(strings.NewReader(answer)), r)
}

// refuses reports whether a request is refused: the first one had no tool stop.
func (b *binding) refuses(r *http.Request, body []byte, changed bool) bool {
	drops := bytes.Contains(body, []byte(`"prefix_mismatch_behavior":"drop_block"`))
	skips := bytes.Contains(body, []byte("c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I")) // skip_thought_signature_validator
	switch {
	case !b.knows && (drops || skips):
		return true
	case drops && r.Header.Get("Anthropic-Beta") != "thinking-binding-controls-2026-08-01":
		return true
	case drops:
		return false
	}
	return changed && bytes.Contains(body, []byte(b.thought))
}

// TestThoughtsBoundToTheirPrefix: tools change between two turns with thoughts.
// The run continues, and later turns are not refused again.
func TestThoughtsBoundToTheirPrefix(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		api, thought, refusal, drops string
		knows                        bool
		params                       string
		tries                        int // of the turn after the change
	}{
		{"anthropic", `"thinking"`, "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \\\"drop_block\\\".",
			`"thinking":{"block_binding":{"prefix_mismatch_behavior":"drop_block"},"type":"adaptive"}`, true, "", 2},
		{"anthropic", `"type":"thinking"`, "The block is bound to a different conversation.",
			`"thinking":{"block_binding":{"prefix_mismatch_behavior":"drop_block"},"budget_tokens":2000,"type":"enabled"}`, true, `{"thinking":{"type":"enabled","budget_tokens":2000}}`, 2},
		{"anthropic", `"type":"thinking"`, "thinking.block_binding: Extra inputs are not permitted; the block is bound to a different conversation", "", false, "", 3},
		{"anthropic", `"type":"thinking"`, "The block is bound to a different conversation.", "", false, `{"thinking":{"type":"disabled"}}`, 2},
		{"openai", `"encrypted_content":"gAAA`, "The encrypted content gAAA...up> could not be verified.", "", false, "", 2},
		{"openai-chat", `"reasoning_content"`, "messages[1].reasoning_content was made under other tools", "", false, "", 2},
		{"gemini", `"thoughtSignature":"bWFkZSB1cA=="`, "Corrupted thought signature.", `"thoughtSignature":"c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="`, true, "", 2},
		{"gemini", `"thoughtSignature":"bWFkZSB1cA=="`, "Thought signature is not valid", "", false, "", 3},
	} {
		a := apiOf(t, c.api)
		b := &binding{a: a, answers: a.answers(t), thought: c.thought, knows: c.knows,
			refusal: `{"error":{"type":"invalid_request_error","status":"INVALID_ARGUMENT","message":"` + c.refusal + `"}}`}
		m, err := a.open(endpoint.Config{BaseURL: "https://models.example", Client: &http.Client{Transport: b}}, slog.New(slog.DiscardHandler))
		must(t, err)
		req := executor.Request{Session: "s1", Effect: "r1t1", Model: "m-1", Tools: tools[:1], Messages: []executor.Message{user("hello")}, Params: []byte(c.params)}
		ask := func(tries int) executor.Answer {
			t.Helper()
			before := len(b.got)
			said, err := m.Generate(t.Context(), req, func(string) {})
			if err != nil || len(b.got)-before != tries {
				t.Fatalf("%s, knows %v: %d requests, want %d: %v", c.api, c.knows, len(b.got)-before, tries, err)
			}
			return said
		}
		first := ask(1)
		if len(first.Calls) == 0 || first.Opaque == nil {
			t.Fatalf("%s: there is no thought in %+v", c.api, first)
		}
		req.Messages = append(req.Messages, after(first).Messages[1:]...)
		req.Tools = tools
		second := ask(c.tries)
		last := unescaped(t, b.got[len(b.got)-1].body)
		if err := a.check(b.got[len(b.got)-1].body); err != nil {
			t.Errorf("%s, knows %v: %v", c.api, c.knows, err)
		}
		if c.drops != "" && !strings.Contains(last, c.drops) || c.drops == "" && strings.Contains(last, c.thought) {
			t.Errorf("%s, knows %v: sent %s", c.api, c.knows, last)
		}
		// The next turn, and the one after a restart, begin with what worked.
		req.Messages = append(req.Messages, executor.Message{Role: "assistant", Text: second.Text, Opaque: second.Opaque}, user("go on"))
		third := ask(1)
		req.Messages = append(req.Messages, executor.Message{Role: "assistant", Text: third.Text, Opaque: third.Opaque}, user("and on"))
		ask(1)
	}
}

// TestOtherRefusalsAreFinal: a refused request without thoughts, or one refused
// for another reason, is not retried.
func TestOtherRefusalsAreFinal(t *testing.T) {
	t.Parallel()
	for _, a := range apis() {
		b := &binding{a: a, answers: a.answers(t), refusal: `{"error":{"message":"there is no such parameter"}}`}
		m, err := a.open(endpoint.Config{BaseURL: "https://models.example", Client: &http.Client{Transport: b}}, slog.New(slog.DiscardHandler))
		must(t, err)
		req := hello
		req.Tools = tools[:1]
		first, err := m.Generate(t.Context(), req, func(string) {})
		must(t, err)
		next := after(first)
		next.Tools = tools
		if _, err := m.Generate(t.Context(), next, func(string) {}); err == nil || len(b.got) != 2 {
			t.Errorf("%s: a refusal of something else: %v after %d requests", a.name, err, len(b.got))
		}
		b.refusal = `{"error":{"message":"the block is bound to a different conversation"}}`
		for i := range next.Messages {
			next.Messages[i].Opaque = nil
		}
		if _, err := m.Generate(t.Context(), next, func(string) {}); err == nil || len(b.got) != 3 {
			t.Errorf("%s: a request without thoughts: %v after %d requests", a.name, err, len(b.got))
		}
	}
}
