package conformance

// The law of prompt caches: a turn's request, in the order of the provider
// (tools, system text, conversation) and without cache marks, begins with the
// whole previous request, byte for byte, unless the model, the tools, the
// system text or the form of the answer changed. Parameters and the tool choice
// are outside of the law.

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm/endpoint"
	"github.com/refold/refold/internal/llm/recorded"
)

// capture answers every request with the same response, and keeps what was
// asked.
type capture struct {
	answer string
	got    []request
}

func (c *capture) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	c.got = append(c.got, request{r.URL.String(), r.Header, body})
	return http.ReadResponse(bufio.NewReader(strings.NewReader(c.answer)), r)
}

// sender returns a model of the API at a host, and what it asks.
func (a api) sender(t *testing.T, host string) (executor.Model, *capture) {
	t.Helper()
	c := &capture{answer: a.answers(t)["text"]}
	m, err := a.open(endpoint.Config{BaseURL: "https://" + host, Client: &http.Client{Transport: c}}, slog.New(slog.DiscardHandler))
	must(t, err)
	return m, c
}

// sent returns the body of a request.
func (c *capture) sent(t rapid.TB, m executor.Model, req executor.Request) []byte {
	t.Helper()
	c.got = nil
	if _, err := m.Generate(context.Background(), req, func(string) {}); err != nil {
		t.Fatal(err)
	}
	return c.got[0].body
}

var cacheMark = regexp.MustCompile(`"cache_control":\{[^}]*\},|,"cache_control":\{[^}]*\}`)

// elements returns a request's body in the provider's order, without cache marks.
func (a api) elements(t rapid.TB, body []byte) [][]byte {
	t.Helper()
	var members map[string]json.RawMessage
	must(t, json.Unmarshal(body, &members))
	list := func(value json.RawMessage) (all []json.RawMessage) {
		if len(value) > 0 {
			if err := json.Unmarshal(value, &all); err != nil {
				t.Fatalf("%s: %v: %s", a.name, err, value)
			}
		}
		return all
	}
	tools, system, conversation := list(members["tools"]), members["instructions"], list(members["input"])
	switch a.name {
	case "openai-chat":
		conversation = list(members["messages"])
	case "anthropic":
		system, conversation = members["system"], list(members["messages"])
	case "gemini":
		system, conversation = members["systemInstruction"], list(members["contents"])
		for i, tool := range tools {
			var functions map[string]json.RawMessage
			if err := json.Unmarshal(tool, &functions); err != nil || i > 0 {
				t.Fatalf("%s: %v: %s", a.name, err, tool)
			}
			tools = list(functions["functionDeclarations"])
		}
	}
	var all [][]byte
	for _, tool := range tools {
		all = append(all, tool)
	}
	if len(system) > 0 {
		all = append(all, system)
	}
	for _, m := range conversation {
		all = append(all, blocksOf(t, m)...)
	}
	for i := range all {
		all[i] = cacheMark.ReplaceAll(all[i], nil)
	}
	return all
}

// blocksOf returns the blocks or parts of a message, each with its role: two APIs
// put several messages of ours into one. Other messages are one element.
func blocksOf(t rapid.TB, m json.RawMessage) [][]byte {
	t.Helper()
	var message map[string]json.RawMessage
	must(t, json.Unmarshal(m, &message))
	for _, member := range []string{"content", "parts"} {
		var blocks []json.RawMessage
		if len(message["role"]) == 0 || len(message) != 2 || json.Unmarshal(message[member], &blocks) != nil {
			continue
		}
		var all [][]byte
		for _, b := range blocks {
			all = append(all, slices.Concat(message["role"], b))
		}
		return all
	}
	return [][]byte{m}
}

// turns is the requests of a session, one after the other.
type turns struct {
	name     string
	requests []executor.Request
}

// cut returns the requests that led to a conversation: one before each turn of
// the model, and the last one.
func cut(name string, req executor.Request) turns {
	req.Session, req.Effect, req.Model = "s1", "r1t1", "m-1"
	all := turns{name: name}
	for i := range req.Messages {
		if i > 0 && req.Messages[i].Role == "assistant" && req.Messages[i-1].Role != "assistant" {
			before := req
			before.Messages = req.Messages[:i]
			all.requests = append(all.requests, before)
		}
	}
	if req.Messages[len(req.Messages)-1].Role != "assistant" {
		all.requests = append(all.requests, req)
	}
	return all
}

// recordedTurns returns the turns of all recorded conversations: the project's, and
// those of REFOLD_RECORDINGS.
func recordedTurns(t *testing.T) (all []turns) {
	t.Helper()
	files := []string{"../../../testdata/recordings/warehouse.jsonl"}
	if dir := os.Getenv("REFOLD_RECORDINGS"); dir != "" {
		more, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
		if err != nil || len(more) == 0 {
			t.Fatalf("REFOLD_RECORDINGS=%s has no recordings (%v)", dir, err)
		}
		files = append(files, more...)
	}
	for _, file := range files {
		r, err := recorded.Load(file)
		must(t, err)
		for _, c := range r.Conversations() {
			req := executor.Request{System: c.System, Tools: tools}
			for i, run := range c.Runs {
				req.Messages = append(req.Messages, user(run.User))
				for j, turn := range run.Turns {
					said, results := says(turn.Text), []executor.Message(nil)
					for k, recordedCall := range turn.Calls {
						id := fmt.Sprintf("r%dt%dc%d", i+1, j+1, k)
						said.Calls = append(said.Calls, executor.MessageCall{ID: id, Name: recordedCall.Name, Arguments: recordedCall.Arguments})
						results = append(results, result(id, recordedCall.Result))
					}
					req.Messages = append(append(req.Messages, said), results...)
				}
			}
			all = append(all, cut(c.ID, req))
		}
	}
	return all
}

// thinking returns a conversation in which the model thought in each turn.
func (a api) thinking(t *testing.T, m executor.Model, c *capture) turns {
	t.Helper()
	text := c.answer
	c.answer = a.answers(t)["calls"]
	req := executor.Request{Session: "s1", Effect: "r1t1", Model: "m-1", Tools: tools, Messages: []executor.Message{user("hello")}}
	for turn := range 3 {
		said, err := m.Generate(t.Context(), req, func(string) {})
		if err != nil || said.Opaque == nil {
			t.Fatalf("%s: %v, without thoughts: %v", a.name, err, said.Opaque == nil)
		}
		message, results := executor.Message{Role: "assistant", Text: said.Text, Opaque: said.Opaque}, []executor.Message(nil)
		for i, called := range said.Calls {
			id := fmt.Sprintf("r1t%dc%d", turn+1, i)
			message.Calls = append(message.Calls, executor.MessageCall{ID: id, Name: called.Name, Arguments: called.Arguments})
			results = append(results, result(id, "there"))
		}
		req.Messages = append(append(req.Messages, message), results...)
	}
	c.answer = text
	return cut("thinking", req)
}

// unchanged reports whether the law holds for two requests: nothing changed that
// it leaves out.
func (a api) unchanged(before, after *executor.Request) bool {
	sent := func(r *executor.Request) []executor.Tool {
		if r.Defined != nil && a.name != "anthropic" && a.name != "openai-chat" {
			return r.Defined
		}
		return r.Tools
	}
	format := func(r *executor.Request) string { return fmt.Sprintf("%+v", r.Format) }
	same := func(x, y executor.Tool) bool {
		return x.Name == y.Name && x.Description == y.Description && bytes.Equal(x.Schema, y.Schema)
	}
	return before.Model == after.Model && before.System == after.System && format(before) == format(after) &&
		slices.EqualFunc(sent(before), sent(after), same)
}

// TestPrefixIsStable: the law, over recordings, scenarios, conversations with
// everything that APIs represent differently, and thoughts.
func TestPrefixIsStable(t *testing.T) {
	t.Parallel()
	sessions := append(recordedTurns(t), scenarios(t)...)
	for _, c := range conversations() {
		c.req.Tools = tools
		sessions = append(sessions, cut(c.name, c.req))
	}
	for _, a := range apis() {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			m, c := a.sender(t, "models.example")
			pairs, shared := 0, 0
			for _, s := range append(slices.Clone(sessions), a.thinking(t, m, c)) {
				var before [][]byte
				for i := range s.requests {
					after := a.elements(t, c.sent(t, m, s.requests[i]))
					if i > 0 && a.unchanged(&s.requests[i-1], &s.requests[i]) {
						pairs++
						shared += len(before)
						if at := differsAt(before, after); at >= 0 {
							t.Errorf("%s, request %d: element %d was %.300s\nand is %.300s", s.name, i, at, before[at], append(after, nil)[min(at, len(after))])
						}
					}
					before = after
				}
			}
			if pairs < 200 || shared < 1000 {
				t.Errorf("%d pairs of requests that share %d elements: this shows little", pairs, shared)
			}
		})
	}
}

// differsAt returns the first element of before that after has not in its place,
// -1 if it has all.
func differsAt(before, after [][]byte) int {
	for i := range before {
		if i >= len(after) || !bytes.Equal(before[i], after[i]) {
			return i
		}
	}
	return -1
}
