package conformance

// The results of the answers in testdata, which are the same for every API.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm/endpoint"
)

// asked is what became of one generation.
type asked struct {
	answer executor.Answer
	pieces []string
	fault  *executor.Error
	err    error
	waits  []time.Duration
	log    string
	server *server
}

var hello = executor.Request{Session: "s1", Effect: "r1t1", Model: "m-1", Messages: []executor.Message{{Role: "user", Text: "hello"}}}

// ask asks a server that gives these responses, one after the other.
func (a api) ask(t *testing.T, req executor.Request, idle time.Duration, responses ...string) asked {
	t.Helper()
	var log bytes.Buffer
	got := asked{server: serve(t, responses...)}
	m, err := a.open(endpoint.Config{
		BaseURL: got.server.url, Key: key, Idle: idle, FirstByte: time.Hour,
		Wait: func(ctx context.Context, d time.Duration) error {
			got.waits = append(got.waits, d)
			return ctx.Err()
		},
	}, slog.New(slog.NewTextHandler(&log, nil)))
	must(t, err)
	got.answer, got.err = m.Generate(t.Context(), req, func(text string) { got.pieces = append(got.pieces, text) })
	errors.As(got.err, &got.fault)
	if got.err != nil && got.fault == nil {
		t.Errorf("%s: an error without a code: %v", a.name, got.err)
	}
	got.log = log.String()
	said := fmt.Sprintf("%v %v %+v %s", got.err, got.fault, got.answer, got.log)
	if strings.Contains(said, key) {
		t.Errorf("%s: the key is told: %s", a.name, said)
	}
	return got
}

// cacheWrites are the tokens that testdata's texts were written to a cache, by
// API.
var cacheWrites = map[string]int64{"anthropic": 6, "openai": 7, "openai-chat": 8}

func TestAnswersGiveTheSameResult(t *testing.T) {
	t.Parallel()
	for _, a := range apis() {
		answers := a.answers(t)
		for name, want := range map[string]executor.Answer{
			"text": {Text: "Grüße, 🙂", Model: "m-1-2026", FinishReason: "stop",
				Usage: executor.Usage{InputTokens: 90, OutputTokens: 12, CachedTokens: 64, ReasoningTokens: 5}},
			"calls": {Text: "Let me look.", Model: "m-1-2026", FinishReason: "tool_calls", Calls: []executor.AnswerCall{
				{Name: "look", Arguments: `{"at":"a"}`}, {Name: "look", Arguments: `{"at":"b"}`},
			}},
			"length": {Text: "half", Model: "m-1-2026", FinishReason: "length"},
			"filter": {Text: "half", Model: "m-1-2026", FinishReason: "content_filter"},
		} {
			if name == "filter" && a.name == "anthropic" {
				want.FinishReason = "refusal" // the API's word for it
			}
			got := a.ask(t, hello, 0, answers[name])
			for i := range got.answer.Calls {
				got.answer.Calls[i].ID = "" // data
			}
			if opaque := got.answer.Opaque != nil; opaque != (name == "calls") {
				t.Errorf("%s, %s: opaque is %s", a.name, name, got.answer.Opaque)
			}
			got.answer.Opaque = nil
			if want.Usage != (executor.Usage{}) {
				want.Usage.CacheWriteTokens = cacheWrites[a.name]
			}
			if got.err != nil || !reflect.DeepEqual(got.answer, want) {
				t.Errorf("%s, %s: got %+v, %v\nwant %+v", a.name, name, got.answer, got.err, want)
			}
			if streamed := strings.Join(got.pieces, ""); streamed != want.Text || name == "text" && len(got.pieces) != 2 {
				t.Errorf("%s, %s: streamed %q", a.name, name, got.pieces)
			}
			r := got.server.got()[0]
			header, value, _ := strings.Cut(a.header, ": ")
			if r.path != a.path || r.header.Get(header) != value {
				t.Errorf("%s: asked %s with %v, want %s with %s", a.name, r.path, r.header, a.path, a.header)
			}
		}
	}
}

// One request, one code.
func TestFinalFailuresAreNotRetried(t *testing.T) {
	t.Parallel()
	for _, a := range apis() {
		answers := a.answers(t)
		for name, code := range map[string]string{"bad_request": "bad_request", "too_long": "context_length_exceeded", "auth": "auth"} {
			got := a.ask(t, hello, 0, answers[name])
			if got.fault == nil || got.fault.Code != code || got.fault.Retryable || len(got.waits) > 0 {
				t.Errorf("%s, %s: got %v, waited %v, want %s at once", a.name, name, got.err, got.waits, code)
			}
		}
	}
}

// The next answer counts, and nobody reads two beginnings.
func TestTemporaryFailuresAreRetried(t *testing.T) {
	t.Parallel()
	for _, a := range apis() {
		answers := a.answers(t)
		for name, want := range map[string]struct{ code, streamed string }{
			"limited": {"rate_limited", "Grüße, 🙂"}, "down": {"overloaded", "Grüße, 🙂"}, "overloaded": {"overloaded", "Grüße, 🙂"},
			"midfault": {"overloaded", "Grüße, 🙂"}, "truncated": {"network", "begun"}, "garbage": {"network", "begun"},
		} {
			got := a.ask(t, hello, 0, answers[name], answers["text"])
			if got.err != nil || got.answer.Text != "Grüße, 🙂" || len(got.waits) != 1 || !strings.Contains(got.log, "code="+want.code+" ") {
				t.Errorf("%s, %s: got %+v, %v, waited %v, logged %s", a.name, name, got.answer, got.err, got.waits, got.log)
			}
			if streamed := strings.Join(got.pieces, ""); streamed != want.streamed {
				t.Errorf("%s, %s: streamed %q, want %q", a.name, name, streamed, want.streamed)
			}
			if name == "limited" && !slices.Equal(got.waits, []time.Duration{7 * time.Second}) {
				t.Errorf("%s: waited %v, and was asked to wait 7s", a.name, got.waits)
			}
		}
		// A connection that is closed without an answer.
		if got := a.ask(t, hello, 0, "", answers["text"]); got.err != nil || !strings.Contains(got.log, "code=network ") {
			t.Errorf("%s, no answer: got %v, logged %s", a.name, got.err, got.log)
		}
	}
}

// An answer that may have been paid for is requested once more, neither more
// often here nor by the bridge.
func TestBrokenAnswersAreRetriedOnce(t *testing.T) {
	t.Parallel()
	for _, a := range apis() {
		answers := a.answers(t)
		for _, second := range []string{"truncated", "garbage"} {
			got := a.ask(t, hello, 0, answers["truncated"], answers["limited"], answers[second])
			if got.fault == nil || got.fault.Code != "network" || got.fault.Retryable || len(got.waits) != 2 {
				t.Errorf("%s, %s: got %+v after waits of %v", a.name, second, got.fault, got.waits)
			}
			if streamed := strings.Join(got.pieces, ""); streamed != "begun" {
				t.Errorf("%s, %s: streamed %q", a.name, second, streamed)
			}
		}
	}
}

// A slow stream is not given up.
func TestSilentStreamIsGivenUp(t *testing.T) {
	t.Parallel()
	for _, a := range apis() {
		answers := a.answers(t)
		got := a.ask(t, hello, 20*time.Millisecond, answers["truncated"]+hang, answers["text"])
		if got.err != nil || got.answer.Text != "Grüße, 🙂" || !strings.Contains(got.log, "silent for too long") {
			t.Errorf("%s: got %+v, %v, logged %s", a.name, got.answer, got.err, got.log)
		}
	}
}

// TestAttackRedirect: a redirect is not followed, since the key and the
// conversation would be sent there.
func TestAttackRedirect(t *testing.T) {
	t.Parallel()
	for _, a := range apis() {
		other := serve(t, "")
		got := a.ask(t, hello, 0, "HTTP/1.1 307 Temporary Redirect\r\nLocation: "+other.url+"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		if got.fault == nil || got.fault.Code != "bad_request" || got.fault.Retryable || !strings.Contains(got.fault.Detail, "redirect to "+other.url) || len(other.got()) > 0 {
			t.Errorf("%s: got %v, and %d requests elsewhere", a.name, got.err, len(other.got()))
		}
	}
}

// Only cmd reads the environment: none of it reaches a server that the config
// names.
func TestEnvironmentIsNotRead(t *testing.T) {
	for _, name := range []string{
		"OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GOOGLE_API_KEY",
		"GEMINI_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION",
	} {
		t.Setenv(name, "of-the-environment")
	}
	for _, name := range []string{"OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"} {
		t.Setenv(name, "http://127.0.0.1:1")
	}
	t.Setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
	for _, a := range apis() {
		s := serve(t, a.answers(t)["text"])
		m, err := a.open(endpoint.Config{BaseURL: s.url}, slog.New(slog.DiscardHandler))
		must(t, err)
		if _, err := m.Generate(t.Context(), hello, func(string) {}); err != nil {
			t.Fatalf("%s: %v", a.name, err)
		}
		if sent := fmt.Sprintf("%+v %s", s.got()[0].header, s.got()[0].path); strings.Contains(sent, "of-the-environment") || strings.Contains(sent, key) {
			t.Errorf("%s: sent %s", a.name, sent)
		}
	}
}

// A conversation moves from every provider to every other one: each is sent its
// own items unchanged, and only the text and calls of the others.
func TestEachProviderIsSentOnlyItsOwnItems(t *testing.T) {
	t.Parallel()
	own := map[string][]string{ // what none but the provider itself may be sent
		"openai": {`"encrypted_content":"gAAA<made up>"`, `"id":"rs_1"`},
		"openai-chat": {
			`"reasoning_content":"Two places, so two looks."`, `{"data":"EmwKmadeup==","id":"rs_1","index":1,"type":"reasoning.encrypted"}`,
			`{"format":"unknown","index":0,"signature":"EqQBmadeup==","text":"Two places, so two looks.","type":"reasoning.text"}`,
			`"extra_content":{"google":{"thought_signature":"bWFkZSB1cA=="}}`,
		},
		"anthropic": {`"signature":"EqQBmadeup=="`, `"thinking":"Two places, so two looks."`, `"data":"EmwKmadeup=="`},
		"gemini":    {`"thoughtSignature":"bWFkZSB1cA=="`},
	}
	for _, from := range apis() {
		said := from.ask(t, hello, 0, from.answers(t)["calls"])
		if said.err != nil {
			t.Fatal(said.err)
		}
		for _, to := range apis() {
			// The server is another one by its port, so the host of the items is
			// made that of the one that is asked.
			s := serve(t, to.answers(t)["text"])
			opaque := bytes.ReplaceAll(said.answer.Opaque, []byte(strings.TrimPrefix(said.server.url, "http://")), []byte(strings.TrimPrefix(s.url, "http://")))
			turn := executor.Message{Role: "assistant", Text: said.answer.Text, Opaque: opaque}
			req := executor.Request{Session: "s1", Effect: "r1t2", Model: "m-1", Messages: []executor.Message{{Role: "user", Text: "hello"}}}
			var results []executor.Message
			for i, c := range said.answer.Calls {
				id := fmt.Sprintf("r1t1c%d", i)
				turn.Calls = append(turn.Calls, executor.MessageCall{ID: id, Name: c.Name, Arguments: c.Arguments})
				results = append(results, executor.Message{Role: "tool", CallID: id, Text: "nothing"})
			}
			req.Messages = append(append(req.Messages, turn), results...)
			m, err := to.open(endpoint.Config{BaseURL: s.url}, slog.New(slog.DiscardHandler))
			must(t, err)
			if _, err := m.Generate(t.Context(), req, func(string) {}); err != nil {
				t.Fatalf("%s to %s: %v", from.name, to.name, err)
			}
			body := s.got()[0].body
			if err := to.check(body); err != nil {
				t.Errorf("%s to %s: %v\n%s", from.name, to.name, err, body)
			}
			plain := unescaped(t, body)
			for _, item := range own[from.name] {
				if sent := strings.Contains(plain, item); sent != (from.name == to.name) {
					t.Errorf("%s to %s: sent %v of %s: %s", from.name, to.name, sent, item, plain)
				}
			}
			for _, words := range []string{"Let me look.", "r1t1c0", "r1t1c1", "nothing"} {
				if !strings.Contains(plain, words) {
					t.Errorf("%s to %s: %q is not sent: %s", from.name, to.name, words, plain)
				}
			}
		}
	}
}

// unescaped is JSON without the escapes that some libraries write.
func unescaped(t *testing.T, body []byte) string {
	t.Helper()
	var value any
	must(t, json.Unmarshal(body, &value))
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	must(t, enc.Encode(value))
	return b.String()
}

// TestOnlyTemporaryStatusesAreRetried: which statuses are retried, by us and
// not by an SDK too, and which are final.
func TestOnlyTemporaryStatusesAreRetried(t *testing.T) {
	t.Parallel()
	for _, a := range apis() {
		text := a.answers(t)["text"]
		for status, code := range map[int]string{
			400: "bad_request", 401: "auth", 403: "auth", 404: "bad_request", 422: "bad_request",
			408: "overloaded", 409: "overloaded", 429: "rate_limited", 500: "overloaded", 501: "overloaded", 502: "overloaded", 503: "overloaded", 504: "overloaded", 529: "overloaded",
		} {
			passes := status == 408 || status == 409 || status == 429 || status >= 500
			refusal := fmt.Sprintf("HTTP/1.1 %d No\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}", status)
			got := a.ask(t, hello, 0, refusal, text)
			requests := len(got.server.got())
			switch {
			case passes && (got.err != nil || got.answer.Text != "Grüße, 🙂" || requests != 2 || !strings.Contains(got.log, "code="+code+" ")):
				t.Errorf("%s, %d: got %+v, %v after %d requests, logged %s", a.name, status, got.answer, got.err, requests, got.log)
			case !passes && (got.fault == nil || got.fault.Code != code || got.fault.Retryable || requests != 1):
				t.Errorf("%s, %d: got %v after %d requests, want %s at once", a.name, status, got.err, requests, code)
			}
		}
	}
}
