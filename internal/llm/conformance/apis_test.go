package conformance

// The four APIs: how each is called, where its requests have the conversation,
// and a test server that answers from testdata, byte by byte.

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm/anthropic"
	"github.com/refold/refold/internal/llm/endpoint"
	"github.com/refold/refold/internal/llm/gemini"
	"github.com/refold/refold/internal/llm/openai"
	"github.com/refold/refold/proof/strict"
)

// key is in no error, no log, and nothing that is stored.
const key = "sk-test-0123456789-very-secret"

// api is one provider's.
type api struct {
	name   string
	path   string // of the request, after the base URL
	header string // that has the key
	open   func(endpoint.Config, *slog.Logger) (executor.Model, error)
	check  func(body []byte) error // of a request
}

func apis() []api {
	return []api{
		{
			name: "openai-chat", path: "/v1/chat/completions", header: "Authorization: Bearer " + key,
			open: func(c endpoint.Config, log *slog.Logger) (executor.Model, error) {
				c.BaseURL += "/v1"
				return openai.New(openai.Config{Config: c, Chat: true}, log)
			},
			check: func(body []byte) error {
				return errors.Join(conversation(body, "messages", strict.Chat), strict.ChatRequest(body), strict.ChatTools(body))
			},
		},
		{
			name: "openai", path: "/v1/responses", header: "Authorization: Bearer " + key,
			open: func(c endpoint.Config, log *slog.Logger) (executor.Model, error) {
				c.BaseURL += "/v1"
				return openai.New(openai.Config{Config: c}, log)
			},
			check: func(body []byte) error {
				return errors.Join(conversation(body, "input", strict.Responses), strict.OpenAIRequest(body), strict.OpenAITools(body))
			},
		},
		{
			name: "anthropic", path: "/v1/messages", header: "X-Api-Key: " + key,
			open: func(c endpoint.Config, log *slog.Logger) (executor.Model, error) { return anthropic.New(c, log) },
			check: func(body []byte) error {
				return errors.Join(conversation(body, "messages", strict.Anthropic), strict.AnthropicRequest(body), strict.AnthropicTools(body))
			},
		},
		{
			name: "gemini", path: "/v1beta/models/m-1:streamGenerateContent?alt=sse", header: "X-Goog-Api-Key: " + key,
			open: func(c endpoint.Config, log *slog.Logger) (executor.Model, error) { return gemini.New(c, log) },
			check: func(body []byte) error {
				return errors.Join(conversation(body, "contents", strict.Gemini), strict.GeminiRequest(body), strict.GeminiTools(body))
			},
		},
	}
}

// conversation reads the conversation of a request, no field of which may be
// unknown, and holds it against its API's rules.
func conversation[T any](body []byte, member string, rules func([]T) error) error {
	var request map[string]json.RawMessage
	if err := json.Unmarshal(body, &request); err != nil {
		return err
	}
	var all []T
	dec := json.NewDecoder(bytes.NewReader(request[member]))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&all); err != nil {
		return fmt.Errorf("%s: %w", member, err)
	}
	return rules(all)
}

// answers returns an API's responses by name.
func (a api) answers(t *testing.T) map[string]string {
	t.Helper()
	return answersIn(t, "testdata/"+a.name)
}

func answersIn(t *testing.T, file string) map[string]string {
	t.Helper()
	archive, err := txtar.ParseFile(file + ".txtar")
	must(t, err)
	answers := make(map[string]string, len(archive.Files))
	for _, f := range archive.Files {
		head, body, ok := strings.Cut(string(f.Data), "\n\n")
		if !ok {
			t.Fatalf("%s of %s has no body", f.Name, file)
		}
		head = strings.ReplaceAll(head, "\n", "\r\n") + "\r\nConnection: close\r\n\r\n"
		answers[f.Name] = strings.ReplaceAll(head+body, "THE-KEY", key)
	}
	return answers
}

// request is one that a server got.
type request struct {
	path   string
	header http.Header
	body   []byte
}

// server answers each connection with the next response. A response that ends
// with hang is not closed until the client goes away.
type server struct {
	url string

	mu       sync.Mutex
	requests []request
}

// hang is where a response stops for good.
const hang = "\x00hang"

func serve(t *testing.T, responses ...string) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s := &server{url: "http://" + l.Addr().String()}
	var open sync.WaitGroup
	open.Go(func() {
		for _, response := range responses {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() { s.answer(t, conn, response) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		open.Wait()
	})
	return s
}

// answer answers one request. It ignores errors of clients that do not wait.
func (s *server) answer(t *testing.T, conn net.Conn, response string) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	r, err := http.ReadRequest(in)
	if err != nil {
		t.Errorf("read a request: %v", err)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Errorf("read a request: %v", err)
	}
	s.mu.Lock()
	s.requests = append(s.requests, request{r.URL.String(), r.Header, body})
	s.mu.Unlock()
	text, hangs := strings.CutSuffix(response, hang)
	_, _ = io.WriteString(conn, text)
	if hangs {
		_, _ = io.Copy(io.Discard, in)
	}
}

func (s *server) got() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

func must(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
