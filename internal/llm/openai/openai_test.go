package openai

// A test server speaks the protocol, byte by byte, without the client library.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm"
	"github.com/refold/refold/internal/llm/endpoint"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files again")

const key = "sk-test-0123456789"

// reply is what the server answers to one request.
type reply struct {
	status int // 0: 200
	header map[string]string
	body   string
	cut    bool // close the connection after the body, without its end
}

// stream makes a reply of chunks; each is one event of the stream.
func stream(chunks ...string) reply {
	var b strings.Builder
	for _, c := range chunks {
		b.WriteString("data: " + c + "\n\n")
	}
	return reply{header: map[string]string{"Content-Type": "text/event-stream; charset=utf-8"}, body: b.String()}
}

// whole makes a reply of one JSON value.
func whole(status int, body string) reply {
	return reply{status: status, header: map[string]string{"Content-Type": "application/json"}, body: body}
}

// text is a stream that says one word.
func text(word string) reply {
	return stream(
		`{"model":"m-1","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`,
		fmt.Sprintf(`{"model":"m-1","choices":[{"index":0,"delta":{"content":%q}}]}`, word),
		`{"model":"m-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, "[DONE]")
}

// server answers the requests one after the other, and keeps them.
type server struct {
	*httptest.Server
	mu      sync.Mutex
	replies []reply
	bodies  [][]byte
	headers []http.Header
	paths   []string
}

func newServer(t *testing.T, replies ...reply) *server {
	t.Helper()
	s := &server{replies: replies}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		n := len(s.bodies)
		s.bodies, s.headers, s.paths = append(s.bodies, body), append(s.headers, r.Header), append(s.paths, r.Method+" "+r.URL.Path)
		s.mu.Unlock()
		if n >= len(s.replies) {
			t.Errorf("request %d, and %d were expected", n+1, len(s.replies))
			panic(http.ErrAbortHandler)
		}
		s.replies[n].write(w)
	}))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	t.Cleanup(s.Close)
	return s
}

func (r reply) write(w http.ResponseWriter) {
	for name, value := range r.header {
		w.Header().Set(name, value)
	}
	if r.status != 0 {
		w.WriteHeader(r.status)
	}
	if r.body == "" && r.cut {
		panic(http.ErrAbortHandler)
	}
	_, _ = io.WriteString(w, r.body)
	if r.cut {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// model asks the server; its waits take no time and are kept.
type model struct {
	*Model
	waits   []time.Duration
	waiting func() // called as a wait begins
	logs    bytes.Buffer
}

func (s *server) model(t *testing.T, c Config) *model {
	t.Helper()
	m := &model{}
	c.Chat, c.BaseURL, c.Client = true, s.URL+"/v1", s.Client()
	c.Wait = func(ctx context.Context, d time.Duration) error {
		m.waits = append(m.waits, d)
		if m.waiting != nil {
			m.waiting()
		}
		return ctx.Err()
	}
	var err error
	m.Model, err = New(c, slog.New(slog.NewTextHandler(&m.logs, nil)))
	must(t, err)
	return m
}

var hello = executor.Request{Session: "s1", Effect: "r1t1", Model: "m-1", Messages: []executor.Message{{Role: "user", Text: "hello"}}}

// generate returns the answer, the pieces that were streamed, and the failure.
func (m *model) generate(t *testing.T, req executor.Request) (executor.Answer, []string, *executor.Error) {
	t.Helper()
	var pieces []string
	answer, err := m.Generate(t.Context(), req, func(text string) { pieces = append(pieces, text) })
	var failure *executor.Error
	if err != nil && !errors.As(err, &failure) {
		t.Fatalf("no failure of the model's: %v", err)
	}
	if strings.Contains(m.logs.String()+fmt.Sprint(err), key) {
		t.Errorf("the key is told: %v\n%s", err, m.logs.String())
	}
	return answer, pieces, failure
}

// golden compares JSON with a file, indented.
func golden(t *testing.T, name string, body []byte) {
	t.Helper()
	var got bytes.Buffer
	must(t, json.Indent(&got, body, "", "  "))
	got.WriteByte('\n')
	path := filepath.Join("testdata", name)
	if *rewrite {
		must(t, os.WriteFile(path, got.Bytes(), 0o644))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%s: sent\n%s\nwant\n%s", path, got.Bytes(), want)
	}
}

func TestStreamedAnswer(t *testing.T) {
	t.Parallel()
	s := newServer(t, stream(
		`{"id":"c1","object":"chat.completion.chunk","model":"m-1-2026","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}`,
		`{"id":"c1","model":"m-1-2026","choices":[{"index":0,"delta":{"content":"Grüße, "},"finish_reason":null}],"usage":null}`,
		`{"id":"c1","model":"m-1-2026","choices":[{"index":0,"delta":{"content":"\ud83d\ude42\n"},"finish_reason":null}],"usage":null}`,
		`{"id":"c1","model":"m-1-2026","choices":[{"index":1,"delta":{"content":"another"},"finish_reason":null}],"usage":null}`,
		`{"id":"c1","model":"m-1-2026","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_x","type":"function","function":{"name":"get","arguments":""}}]}}]}`,
		`{"id":"c1","model":"m-1-2026","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\""}}]}}]}`,
		`{"id":"c1","model":"m-1-2026","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_x","type":"function","function":{"name":"put","arguments":"{"}},{"index":0,"function":{"arguments":": 1}"}}]}}]}`,
		`{"id":"c1","model":"m-1-2026","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"\"b\":\"\\\"\"}"}}]}}]}`,
		`{"id":"c1","model":"m-1-2026","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":null}`,
		`{"id":"c1","model":"m-1-2026","choices":[],"usage":{"prompt_tokens":90,"completion_tokens":12,"total_tokens":102,"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":5}}}`,
		"[DONE]"))
	got, pieces, failure := s.model(t, Config{Config: endpoint.Config{Key: key}}).generate(t, hello)
	want := executor.Answer{
		Text: "Grüße, 🙂\n", Model: "m-1-2026", FinishReason: "tool_calls",
		Calls: []executor.AnswerCall{{ID: "call_x", Name: "get", Arguments: `{"a": 1}`}, {ID: "call_x", Name: "put", Arguments: `{"b":"\""}`}},
		Usage: executor.Usage{InputTokens: 90, OutputTokens: 12, CachedTokens: 64, ReasoningTokens: 5},
	}
	if failure != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, failure, want)
	}
	if want := []string{"Grüße, ", "🙂\n"}; !reflect.DeepEqual(pieces, want) {
		t.Errorf("streamed %q, want %q", pieces, want)
	}
	if s.paths[0] != "POST /v1/chat/completions" || s.headers[0].Get("Authorization") != "Bearer "+key {
		t.Errorf("asked %s with %q", s.paths[0], s.headers[0].Get("Authorization"))
	}
}

func TestWholeAnswer(t *testing.T) {
	t.Parallel()
	said := whole(200, `{"id":"c1","object":"chat.completion","model":"m-1","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":"I look.",
		"tool_calls":[{"id":"x","type":"function","function":{"name":"get","arguments":"{}"}},{"id":"x","type":"function","function":{"name":"get","arguments":""}}]}}],
		"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}`)
	want := executor.Answer{
		Text: "I look.", Model: "m-1", FinishReason: "tool_calls", Usage: executor.Usage{InputTokens: 7, OutputTokens: 3},
		Calls: []executor.AnswerCall{{ID: "x", Name: "get", Arguments: "{}"}, {ID: "x", Name: "get"}},
	}
	// Asked for so, and from a server that doesn't stream though it is asked to.
	for _, c := range []Config{{Whole: true}, {}} {
		s := newServer(t, said)
		got, pieces, failure := s.model(t, c).generate(t, hello)
		if failure != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v\nwant %+v", got, failure, want)
		}
		if len(pieces) != 1 || pieces[0] != "I look." {
			t.Errorf("streamed %q", pieces)
		}
		if c.Whole {
			golden(t, "request_whole.json", s.bodies[0])
		}
		if _, sent := s.headers[0]["Authorization"]; sent {
			t.Error("sent an authorization without a key")
		}
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	tools := []executor.Tool{
		{Name: "get", Description: "Gets <it>.", Schema: json.RawMessage(`{"type":"object","required":["n"],"properties":{"z":{"type":"integer","maximum":9007199254740993},"n":{"type":"number","default":1.50}}}`)},
		{Name: "stop", Schema: json.RawMessage(`{}`)},
	}
	for _, c := range []struct {
		file string
		req  executor.Request
	}{
		{"request_words.json", hello},
		{"request_calls.json", executor.Request{
			Session: "s1", Effect: "r2t1", Model: "m-1", System: "Be brief & kind.", Tools: tools, ToolChoice: "auto",
			Params: json.RawMessage(`{"temperature":0.10,"seed":9007199254740993,"parallel_tool_calls":true,"stop":["<end>"],"vendor":{"b":1,"a":null}}`),
			Messages: []executor.Message{
				{Role: "user", Text: "Was weißt du? 🙂"},
				{Role: "assistant", Text: "I look.", Calls: []executor.MessageCall{
					{ID: "r1t1c0", Name: "get", Arguments: `{"n": 1.50}`}, {ID: "r1t1c1", Name: "stop"}, {ID: "r1t1c2", Name: "get", Arguments: "no JSON"}}},
				{Role: "tool", CallID: "r1t1c0", Text: "one"},
				{Role: "tool", CallID: "r1t1c1", Text: "(no output)"},
				{Role: "tool", CallID: "r1t1c2", Text: "error: invalid_arguments: not JSON", Error: true},
				{Role: "assistant", Calls: []executor.MessageCall{{ID: "r1t2c0", Name: "get", Arguments: `{}`}}},
				{Role: "tool", CallID: "r1t2c0", Text: ""},
				{Role: "assistant", Text: "", Opaque: json.RawMessage(`{"from":"elsewhere"}`)},
				{Role: "user", Text: "and now?"},
			},
		}},
		{"request_choice_named.json", executor.Request{Model: "m-1", Tools: tools[1:], ToolChoice: "stop", Messages: hello.Messages}},
		{"request_choice_none.json", executor.Request{Model: "m-1", Tools: tools[1:], ToolChoice: "none", Messages: hello.Messages}},
		{"request_choice_required.json", executor.Request{Model: "m-1", Tools: tools[1:], ToolChoice: "required", Messages: hello.Messages}},
		{"request_choice_no_tools.json", executor.Request{Model: "m-1", ToolChoice: "none", Messages: hello.Messages,
			Params: json.RawMessage(`{"stream_options":{"include_obfuscation":false}}`)}},
	} {
		s := newServer(t, text("yes"))
		answer, _, failure := s.model(t, Config{Config: endpoint.Config{Key: key}}).generate(t, c.req)
		if failure != nil || answer.Text != "yes" {
			t.Errorf("%s: %+v, %v", c.file, answer, failure)
			continue
		}
		golden(t, c.file, s.bodies[0])
	}
}

func TestRequestRefused(t *testing.T) {
	t.Parallel()
	for params, want := range map[string]string{
		`[]`:                `bad_request: params: is no JSON object`,
		`{"model":"other"}`: `bad_request: params.model: is not for params to set: leave it out`,
		`{"stream":false}`:  `bad_request: params.stream: is not for params to set: leave it out`,
		`{"n":2}`:           `bad_request: params.n: is not for params to set: leave it out`,
	} {
		req := hello
		req.Params = json.RawMessage(params)
		if _, _, failure := newServer(t).model(t, Config{}).generate(t, req); failure == nil || failure.Error() != want || failure.Retryable {
			t.Errorf("%s: got %v, want %s", params, failure, want)
		}
	}
}

func TestFinishReasons(t *testing.T) {
	t.Parallel()
	call := `"tool_calls":[{"index":0,"id":"x","function":{"name":"get","arguments":"{}"}}]`
	for _, c := range []struct{ delta, reason, want, text string }{
		{`"content":"a"`, "stop", "stop", "a"},
		{`"content":"a"`, "length", "length", "a"},
		{`"content":"a"`, "content_filter", "content_filter", "a"},
		{`"content":"a"`, "eos", "stop", "a"},
		{`"content":"a"`, "a_new_word", "a_new_word", "a"},
		{`"content":"a","refusal":" I won't."`, "stop", "refusal", "a I won't."},
		{`"content":""`, "stop", "empty", ""},
		{`"content":"a"`, "tool_calls", "tool_calls", "a"},
		{`"refusal":"I won't."`, "stop", "refusal", "I won't."},
		{call, "tool_calls", "tool_calls", ""},
		{call, "stop", "tool_calls", ""},
		{call, "length", "length", ""},
	} {
		s := newServer(t, stream(fmt.Sprintf(`{"model":"m","choices":[{"index":0,"delta":{%s},"finish_reason":%q}]}`, c.delta, c.reason)))
		got, _, failure := s.model(t, Config{}).generate(t, hello)
		if failure != nil || got.FinishReason != c.want || got.Text != c.text {
			t.Errorf("%s, %s: got %+v, %v; want %s", c.delta, c.reason, got, failure, c.want)
		}
	}
}

// Servers differ in how they tell calls apart in a stream.
func TestStreamedCallsAreSeparated(t *testing.T) {
	t.Parallel()
	for what, calls := range map[string]string{
		"whole calls, all of index 0":  `{"index":0,"id":"x","function":{"name":"a","arguments":"{}"}},{"index":0,"id":"y","function":{"name":"b","arguments":"{}"}}`,
		"whole calls without an index": `{"id":"x","function":{"name":"a","arguments":"{}"}},{"id":"y","function":{"name":"b","arguments":"{}"}}`,
		"the id in every part":         `{"index":0,"id":"x","function":{"name":"a","arguments":"{"}},{"index":0,"id":"x","function":{"arguments":"}"}},{"index":1,"id":"y","function":{"name":"b","arguments":"{}"}}`,
		"the name in every part":       `{"index":0,"id":"x","function":{"name":"a","arguments":"{"}},{"index":0,"id":"x","function":{"name":"a","arguments":"}"}},{"index":1,"id":"y","function":{"name":"b","arguments":"{}"}}`,
		"an index that begins at 1":    `{"index":1,"id":"x","function":{"name":"a","arguments":"{}"}},{"index":2,"id":"y","function":{"name":"b","arguments":"{}"}}`,
		"parts of two side by side":    `{"index":0,"id":"x","function":{"name":"a"}},{"index":1,"id":"y","function":{"name":"b"}},{"index":0,"function":{"arguments":"{}"}},{"index":1,"function":{"arguments":"{}"}}`,
	} {
		s := newServer(t, stream(fmt.Sprintf(`{"model":"m","choices":[{"index":0,"delta":{"tool_calls":[%s]},"finish_reason":"tool_calls"}]}`, calls)))
		got, _, failure := s.model(t, Config{}).generate(t, hello)
		want := []executor.AnswerCall{{ID: "x", Name: "a", Arguments: "{}"}, {ID: "y", Name: "b", Arguments: "{}"}}
		if failure != nil || !reflect.DeepEqual(got.Calls, want) {
			t.Errorf("%s: got %+v, %v", what, got.Calls, failure)
		}
	}
}

func TestImpossibleUsageIsIgnored(t *testing.T) {
	t.Parallel()
	s := newServer(t, stream(`{"model":"m","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":-1,"completion_tokens":4611686018427387904}}`))
	got, _, failure := s.model(t, Config{}).generate(t, hello)
	if failure != nil || got.Usage != (executor.Usage{}) {
		t.Errorf("got %+v, %v", got.Usage, failure)
	}
}

func TestAnswerTooLarge(t *testing.T) {
	t.Parallel()
	part := `{"model":"m","choices":[{"index":0,"delta":{"content":"` + strings.Repeat("x", 1<<20) + `"}}]}`
	parts := make([]string, 9)
	for i := range parts {
		parts[i] = part
	}
	s := newServer(t, stream(parts...))
	if _, _, failure := s.model(t, Config{}).generate(t, hello); failure == nil || failure.Code != llm.CodeBadRequest || failure.Retryable {
		t.Errorf("words: got %v", failure)
	}
	var calls []string
	for i := range 1025 {
		calls = append(calls, fmt.Sprintf(`{"index":%d,"id":"x%d","function":{"name":"a"}}`, i, i))
	}
	s = newServer(t, stream(`{"model":"m","choices":[{"index":0,"delta":{"tool_calls":[`+strings.Join(calls, ",")+`]}}]}`))
	if _, _, failure := s.model(t, Config{}).generate(t, hello); failure == nil || failure.Code != llm.CodeBadRequest || failure.Retryable {
		t.Errorf("calls: got %v", failure)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{}, "openai: base URL: give it as https://host/v1"},
		{Config{Config: endpoint.Config{BaseURL: "http://127.0.0.1:11434/v1/", Key: key}}, ""},
		{Config{Config: endpoint.Config{BaseURL: "localhost:8080"}}, "openai: base URL: give it as https://host/v1"},
		{Config{Config: endpoint.Config{BaseURL: "http://\x7f"}}, "openai: base URL: is no URL: give it as https://host/v1"},
		{Config{Config: endpoint.Config{BaseURL: "https://me:" + key + "@host/v1"}}, "openai: base URL: user, query and fragment are not sent: leave them out; the key has its own option"},
		{Config{Config: endpoint.Config{BaseURL: "file:///v1", Key: key + "\n"}}, "openai: base URL: give it as https://host/v1\nkey: has a character that no key has: was it copied with its line end?"},
	} {
		got := ""
		if _, err := New(c.config, slog.New(slog.DiscardHandler)); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v: got %q, want %q", c.config, got, c.want)
		}
	}
}

// Only cmd reads flags and environment: none of OpenAI's own variables reaches
// a server that the config names.
func TestEnvironmentIsNotRead(t *testing.T) {
	for _, name := range []string{"OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"} {
		t.Setenv(name, "of-the-environment")
	}
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
	s := newServer(t, text("yes"))
	if _, _, failure := s.model(t, Config{}).generate(t, hello); failure != nil {
		t.Fatal(failure)
	}
	for name, values := range s.headers[0] {
		if strings.Contains(strings.Join(values, " "), "of-the-environment") {
			t.Errorf("sent %s: %q", name, values)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
