package conformance

// Undocumented behaviour of real providers: each case was found in a recording
// (testdata/README.md), and is imitated here.

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm/endpoint"
)

// answered is a response of one piece of JSON, or of events.
func answered(events ...string) string {
	if len(events) == 1 {
		return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" + events[0]
	}
	return "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\ndata: " + strings.Join(events, "\n\ndata: ") + "\n\n"
}

func apiOf(t *testing.T, name string) api {
	t.Helper()
	for _, a := range apis() {
		if a.name == name {
			return a
		}
	}
	t.Fatalf("there is no API %s", name)
	return api{}
}

// after is the request that follows an answer to hello.
func after(said executor.Answer) executor.Request {
	turn := executor.Message{Role: "assistant", Text: said.Text, Opaque: said.Opaque}
	next := []executor.Message{user("go on")}
	for i, c := range said.Calls {
		id := fmt.Sprintf("r1t1c%d", i)
		turn.Calls = append(turn.Calls, executor.MessageCall{ID: id, Name: c.Name, Arguments: c.Arguments})
		next = append(next[:i:i], result(id, "there"))
	}
	req := hello
	req.Messages = append(append(req.Messages[:1:1], turn), next...)
	return req
}

// nextTurn returns the request that follows an answer: the user goes on, or each
// call has its result.
func (a api) nextTurn(t *testing.T, answer string) (executor.Answer, string) {
	t.Helper()
	s := serve(t, answer, answer)
	m, err := a.open(endpoint.Config{BaseURL: s.url}, slog.New(slog.DiscardHandler))
	must(t, err)
	said, err := m.Generate(t.Context(), hello, func(string) {})
	if err != nil {
		t.Fatalf("%s: %v", a.name, err)
	}
	if _, err := m.Generate(t.Context(), after(said), func(string) {}); err != nil {
		t.Fatalf("%s: %v", a.name, err)
	}
	body := s.got()[1].body
	if err := a.check(body); err != nil {
		t.Errorf("%s: %v\n%s", a.name, err, body)
	}
	return said, unescaped(t, body)
}

// TestReasoningTokensAreCountedAsOutput: some servers don't count reasoning as
// output. We do for all.
func TestReasoningTokensAreCountedAsOutput(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		usage string
		want  int64
	}{
		"a part of it":         {`"completion_tokens":40,"total_tokens":50,"completion_tokens_details":{"reasoning_tokens":30}`, 40},
		"in the total":         {`"completion_tokens":40,"total_tokens":80,"completion_tokens_details":{"reasoning_tokens":30}`, 70},
		"more than came out":   {`"completion_tokens":4,"total_tokens":14,"completion_tokens_details":{"reasoning_tokens":30}`, 34},
		"none":                 {`"completion_tokens":40,"total_tokens":50`, 40},
		"a total that is none": {`"completion_tokens":40,"completion_tokens_details":{"reasoning_tokens":30}`, 40},
	} {
		a := apiOf(t, "openai-chat")
		usage := `"usage":{"prompt_tokens":10,` + c.usage + `}`
		said := `"model":"m","choices":[{"index":0,"finish_reason":"stop",`
		for form, answer := range map[string]string{
			"whole":    answered(`{` + said + `"message":{"role":"assistant","content":"so"}}],` + usage + `}`),
			"streamed": answered(`{`+said+`"delta":{"content":"so"}}]}`, `{"choices":[],`+usage+`}`),
		} {
			got := a.ask(t, hello, 0, answer)
			if got.err != nil || got.answer.Usage.OutputTokens != c.want || got.answer.Usage.InputTokens != 10 {
				t.Errorf("%s, %s: got %+v, %v, want %d tokens out", name, form, got.answer.Usage, got.err, c.want)
			}
		}
	}
}

// TestChatThoughtsAreSentBack: those of a whole answer unchanged; those of a
// stream are joined, and a signature ends one.
func TestChatThoughtsAreSentBack(t *testing.T) {
	t.Parallel()
	a := apiOf(t, "openai-chat")
	const first, second = `{"index":0,"signature":"c2ln","text":"One. ","type":"reasoning.text"}`, `{"index":0,"signature":"bmFs","text":"Two.","type":"reasoning.text"}`
	const call = `"tool_calls":[{"index":0,"id":"x","type":"function","function":{"name":"look","arguments":"{}"},"extra_content":{"google":{"thought_signature":"c2ln"}}}]`
	for form, answer := range map[string]string{
		"whole": answered(`{"model":"m","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"reasoning_content":"One. Two.",
			"reasoning_details":[` + first + `,` + second + `],` + call + `}}]}`),
		"streamed": answered(`{"model":"m","choices":[{"index":0,"delta":{"reasoning_content":"One. ","reasoning_details":[{"type":"reasoning.text","text":"One","signature":"","index":0}]}}]}`,
			`{"choices":[{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.text","text":". ","index":0},{"type":"reasoning.text","text":"","signature":"c2ln","index":0}]}}]}`,
			`{"choices":[{"index":0,"delta":{"reasoning_content":"Two.","reasoning_details":[{"type":"reasoning.text","text":"Two.","index":0},{"type":"reasoning.text","signature":"bmFs","index":0}]}}]}`,
			`{"choices":[{"index":0,"finish_reason":"tool_calls","delta":{`+call+`}}]}`),
	} {
		said, sent := a.nextTurn(t, answer)
		for _, want := range []string{
			`"reasoning_details":[` + first + `,` + second + `]`, `"reasoning_content":"One. Two."`, `"extra_content":{"google":{"thought_signature":"c2ln"}}`,
		} {
			if !strings.Contains(sent, want) {
				t.Errorf("%s: %s is not sent: %s", form, want, sent)
			}
		}
		if said.Text != "" || len(said.Calls) != 1 {
			t.Errorf("%s: got %+v", form, said)
		}
	}
}

// TestSignatureAloneBelongsToTheTextBefore: a stream may end with a signature in a
// part without text. It is sent back with the text before it, as in a whole answer.
func TestSignatureAloneBelongsToTheTextBefore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ events, want []string }{
		"words": {
			[]string{`{"candidates":[{"content":{"parts":[{"text":"Good "}]}}]}`, `{"candidates":[{"content":{"parts":[{"text":"day."}]}}]}`,
				`{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"bWFkZSB1cA=="}]},"finishReason":"STOP"}]}`},
			[]string{`{"text":"Good day.","thoughtSignature":"bWFkZSB1cA=="}`},
		},
		"a call": {
			[]string{`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"look","args":{}},"thoughtSignature":"bWFkZSB1cA=="}]}}]}`,
				`{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"b3RoZXI="}]},"finishReason":"STOP"}]}`},
			[]string{`"thoughtSignature":"bWFkZSB1cA=="`},
		},
	} {
		said, sent := apiOf(t, "gemini").nextTurn(t, answered(c.events...))
		for _, want := range c.want {
			if !strings.Contains(sent, want) {
				t.Errorf("%s: %s is not sent after %+v: %s", name, want, said, sent)
			}
		}
		if strings.Contains(sent, "b3RoZXI=") {
			t.Errorf("%s: a signature of nothing is sent: %s", name, sent)
		}
	}
}

// thinkers is a server of chat completions in thinking mode: it refuses a turn of the
// model without a thought. message is what it says then.
type thinkers struct {
	capture
	message string
}

func (s *thinkers) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := s.capture.RoundTrip(r)
	var sent struct {
		Messages []struct {
			Role    string `json:"role"`
			Thought string `json:"reasoning_content"`
		} `json:"messages"`
	}
	if err != nil || json.Unmarshal(s.got[len(s.got)-1].body, &sent) != nil {
		return response, err
	}
	for _, m := range sent.Messages {
		if m.Role == "assistant" && m.Thought == "" {
			refusal := "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" + `{"error":{"message":"` + s.message + `","type":"invalid_request_error"}}`
			return http.ReadResponse(bufio.NewReader(strings.NewReader(refusal)), r)
		}
	}
	return response, nil
}

// TestTurnsWithoutThoughtsAreFilledIn: a session that comes to a server in thinking mode
// has turns of other providers, fillers of ours, and turns that thought of nothing.
func TestTurnsWithoutThoughtsAreFilledIn(t *testing.T) {
	t.Parallel()
	a := apiOf(t, "openai-chat")
	const own = `{"of":"openai-chat models.example","pieces":[{"item":"{\"reasoning_content\":\"Hm.\"}"},{"text":3}]}`
	for _, message := range []string{
		"The `reasoning_content` in the thinking mode must be passed back to the API.",                   // nowledge-co/nowledge-mem#36
		"Missing `reasoning_content` field in the assistant message at message index 1.",                 // DeepSeek V3.2
		"thinking is enabled but reasoning_content is missing in assistant tool call message at index 2", // Kimi
		"The reasoning_content in the thinking mode must be passed back to the API. (request id: abc)",   // a gateway
	} {
		s := &thinkers{capture: capture{answer: a.answers(t)["text"]}, message: message}
		m, err := a.open(endpoint.Config{BaseURL: "https://models.example", Client: &http.Client{Transport: s}}, slog.New(slog.DiscardHandler))
		must(t, err)
		req := messages("", user("hi"), says("", call("r1t1c0", "{}")), result("r1t1c0", "there"), says("Yes"), user("one"), user("two"),
			thought(`{"of":"anthropic api.example","pieces":[{"item":"{}"},{"text":2}]}`, says("No")), user("so"), thought(own, says("Ok.")), user("and?")).req
		req.Session, req.Effect, req.Model = "s1", "r1t9", "m-1"
		said, err := m.Generate(t.Context(), req, func(string) {})
		if err != nil || len(s.got) != 2 {
			t.Errorf("%s: %d requests, %v", message, len(s.got), err)
			continue
		}
		if err := a.check(s.got[1].body); err != nil {
			t.Error(err)
		}
		if body := string(s.got[1].body); !strings.Contains(body, `"reasoning_content":"Hm."`) {
			t.Errorf("%s: its own thought is lost: %s", message, body)
		}
		req.Messages = append(req.Messages, executor.Message{Role: "assistant", Text: said.Text, Opaque: said.Opaque}, user("go on"))
		if _, err := m.Generate(t.Context(), req, func(string) {}); err != nil || len(s.got) != 3 {
			t.Errorf("%s: the next turn needs %d requests: %v", message, len(s.got)-2, err)
		}
	}
}

// TestThoughtsThatAServerRefusesAreLeftOut: Mistral refuses a member that its
// gateway answered with, by 422: BerriAI/litellm#30835.
func TestThoughtsThatAServerRefusesAreLeftOut(t *testing.T) {
	t.Parallel()
	a := apiOf(t, "openai-chat")
	refusal := "HTTP/1.1 422 Unprocessable Entity\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" +
		`{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","messages",1,"assistant","reasoning_content"],"msg":"Extra inputs are not permitted"}]},"type":"invalid_request_error"}`
	s := serve(t, refusal, a.answers(t)["text"])
	m, err := a.open(endpoint.Config{BaseURL: s.url}, slog.New(slog.DiscardHandler))
	must(t, err)
	own := `{"of":"openai-chat ` + strings.TrimPrefix(s.url, "http://") + `","pieces":[{"item":"{\"reasoning_content\":\"Hm.\"}"},{"text":3}]}`
	req := messages("", user("so"), thought(own, says("Ok.")), user("and?")).req
	req.Session, req.Effect, req.Model = "s1", "r1t9", "m-1"
	if _, err := m.Generate(t.Context(), req, func(string) {}); err != nil || len(s.got()) != 2 || strings.Contains(string(s.got()[1].body), "reasoning_content") {
		t.Errorf("%d requests, %v", len(s.got()), err)
	}
}
