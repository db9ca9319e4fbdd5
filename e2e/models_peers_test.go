//go:build peers

package e2e_test

// Models of a foreign server, aimock, called through each of the four APIs by a
// bridge as a user runs it: see make check-peers. Each case is its own model,
// so that the server's journal distinguishes the requests; it counts them as a
// provider would charge them.

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
)

// servedAPI is one API of aimock.
type servedAPI struct{ provider, path string }

var servedAPIs = []servedAPI{
	{"openai", "/v1/responses"}, {"openai-chat", "/v1/chat/completions"}, {"anthropic", "/v1/messages"}, {"gemini", "/v1beta/models/"},
}

// modelCase is what a model answers, request by request, and what the run comes
// to.
type modelCase struct {
	name      string
	answers   []object // fixtures, without what they match
	lifecycle session.Lifecycle
	code      string
	text      string // of the answer; empty: none
	requests  string // statuses of the requests in the server's journal, in order
}

// answer is a fixture; more has what is beside the response.
func answer(response, more object) object {
	fixture := object{"response": response}
	for key, value := range more {
		fixture[key] = value
	}
	return fixture
}

// refusal is an error of the server's.
func refusal(status int, more object) object {
	response := object{"status": status, "error": object{"message": "as the test wants it", "type": "invalid_request_error"}}
	for key, value := range more {
		response[key] = value
	}
	return answer(response, nil)
}

const longText = "The quick brown fox jumps over the lazy dog, and then it looks back, because nobody follows."

func modelCases() []modelCase {
	text := answer(object{"content": longText}, nil)
	// The server calls it malformed, and answers with what is no JSON.
	garbage := answer(object{"content": longText}, object{"chaos": object{"malformedRate": 1}})
	// With a while between the pieces, so that some of them are sent before the end.
	cut := answer(object{"content": longText}, object{"truncateAfterChunks": 6, "chunkSize": 10, "latency": 20})
	gone := answer(object{"content": longText}, object{"chaos": object{"disconnectRate": 1}})
	done, failed := session.Completed, session.Failed
	return []modelCase{
		{"text", []object{text}, done, "", longText, "200"},
		{"slow", []object{answer(object{"content": longText}, object{"latency": 20, "chunkSize": 4})}, done, "", longText, "200"},
		{"bad", []object{refusal(400, nil), text}, failed, "bad_request", "", "400"},
		{"key", []object{refusal(401, nil), text}, failed, "auth", "", "401"},
		{"limited", []object{refusal(429, object{"retryAfter": 1}), text}, done, "", longText, "429 200"},
		{"shut", []object{refusal(429, object{"retryAfter": 7200}), text}, failed, "rate_limited", "", "429"},
		{"down", []object{refusal(500, nil), refusal(503, nil), text}, done, "", longText, "500 503 200"},
		{"full", []object{refusal(529, nil), text}, done, "", longText, "529 200"},
		{"cut", []object{cut, text}, done, "", longText, "200 200"},
		{"cutoff", []object{cut, cut, text}, failed, "network", "", "200 200"},
		{"garbage", []object{garbage, text}, done, "", longText, "200 200"},
		{"garbled", []object{garbage, garbage, text}, failed, "network", "", "200 200"},
		{"gone", []object{gone, text}, done, "", longText, "0 200"},
	}
}

// TestPeersModels plays every case through every API.
func TestPeersModels(t *testing.T) {
	t.Parallel()
	var fixtures list
	for _, api := range servedAPIs {
		for _, c := range modelCases() {
			for i, a := range c.answers {
				fixtures = append(fixtures, matched(a, object{"model": api.provider + "." + c.name, "sequenceIndex": i}))
			}
		}
	}
	aim := startAimock(t, fixtures)
	s := startSystem(t, object{"v": 1, "rules": 1, "tools": list{}})
	for _, api := range servedAPIs {
		// One bridge each: what one provider asks to wait holds the whole target, so
		// the case that is shut comes last.
		s.asks(aim, api.provider)
	}
	for _, api := range servedAPIs {
		t.Run(api.provider, func(t *testing.T) {
			t.Parallel()
			for _, c := range modelCases() {
				if c.name != "shut" {
					s.playModel(t, aim, api, c)
				}
			}
			for _, c := range modelCases() {
				if c.name == "shut" {
					s.playModel(t, aim, api, c)
				}
			}
		})
	}
}

// playModel plays one case, and compares the run's end and the server's journal.
func (s *system) playModel(t *testing.T, aim *aimock, api servedAPI, c modelCase) {
	t.Helper()
	sid, model := api.provider+"-"+c.name, api.provider+"."+c.name
	heard := listen(t, s.nc, "refold.out."+sid)
	s.run(session.DoorCtl, sid, "go", object{"provider": api.provider, "model": model})
	end := waitFinished(t, heard, 1)
	if end.Lifecycle != string(c.lifecycle) || end.Code != c.code || end.Output.Text != c.text {
		t.Errorf("%s: the run ended %+v, want %s, code %q, %q", model, end, c.lifecycle, c.code, c.text)
	}
	var statuses []string
	for _, r := range aim.journal(t, model) {
		statuses = append(statuses, fmt.Sprint(r.Response.Status))
		if !strings.HasPrefix(r.Path, api.path) {
			t.Errorf("%s: asked %s, want %s", model, r.Path, api.path)
		}
	}
	if got := strings.Join(statuses, " "); got != c.requests {
		t.Errorf("%s: the server answered %q, want %q", model, got, c.requests)
	}
}

// TestPeersModelsCall: two calls in one answer, which run, and an answer with
// their results, through every API; then the same session continues at the next
// provider.
func TestPeersModelsCall(t *testing.T) {
	t.Parallel()
	var fixtures list
	for _, api := range servedAPIs {
		model := api.provider + ".calls"
		fixtures = append(fixtures,
			matched(answer(object{"content": "Let me look.", "toolCalls": list{
				object{"id": "same", "name": "look", "arguments": object{"at": "a"}}, object{"id": "other", "name": "look", "arguments": object{"at": "b"}},
			}}, nil), object{"model": model, "hasToolResult": false}),
			matched(answer(object{"content": "Both are blue."}, nil), object{"model": model, "hasToolResult": true}))
	}
	aim := startAimock(t, fixtures)
	s := startSystem(t, object{"v": 1, "rules": 1, "tools": list{tool("look", nil)}})
	l := &lab{outputs: map[string]string{"look": "blue"}}
	s.tools(l)
	heard := listen(t, s.nc, "refold.out.s1")
	for i, api := range servedAPIs {
		s.asks(aim, api.provider)
		model := api.provider + ".calls"
		s.run(session.DoorCtl, "s1", "look", object{"provider": api.provider, "model": model})
		if end := waitFinished(t, heard, i+1); end.Lifecycle != string(session.Completed) || end.Output.Text != "Both are blue." {
			t.Errorf("%s: the run ended %+v", model, end)
		}
		requests := aim.journal(t, model)
		if len(requests) != 2 || len(requests[0].Body.Tools) != 1 {
			t.Fatalf("%s: %d requests, want 2, the first with one tool: %+v", model, len(requests), requests)
		}
		// Of each run one input, two turns and two results; the last turn is to come.
		results, last := 0, requests[1].Body.Messages
		for _, m := range last {
			if m.Role == "tool" {
				results++
			}
		}
		if results != 2*(i+1) || last[len(last)-1].Role != "tool" {
			t.Errorf("%s: %d results are shown, want %d, the last one at the end", model, results, 2*(i+1))
		}
	}
	arguments := map[string]int{}
	for _, c := range l.did() {
		arguments[string(c.Arguments)]++
	}
	if a, b := arguments[`{"at":"a"}`], arguments[`{"at":"b"}`]; a != len(servedAPIs) || b != len(servedAPIs) || len(arguments) != 2 {
		t.Errorf("the tools ran with %v, want each of two %d times", arguments, len(servedAPIs))
	}
}

// matched gives a fixture what it matches.
func matched(fixture, match object) object {
	all := object{"match": match}
	for key, value := range fixture {
		all[key] = value
	}
	return all
}

// asks starts a bridge that serves a provider with aimock.
func (s *system) asks(aim *aimock, provider string) {
	s.t.Helper()
	url := aim.url
	if strings.HasPrefix(provider, "openai") {
		url += "/v1"
	}
	startDaemon(s.t, "bridge", "--nats", s.url, "--name", provider, "--model", provider+":"+url, "--key-file", provider+"="+writeFile(s.t, "key", "sk-none"))
}

// aimock is the server's process.
type aimock struct{ url string }

// aimockDir has what npm installed.
var aimockDir = filepath.Join("peers", "models")

func startAimock(t *testing.T, fixtures list) *aimock {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatalf("%v: install Node.js 20.15 or later", err)
	}
	file := writeFile(t, "fixtures.json", jsonText(t, object{"fixtures": fixtures}))
	cli := filepath.Join(aimockDir, "node_modules", "@copilotkit", "aimock", "dist", "cli.js")
	cmd := exec.Command(node, cli, "--port", "0", "--host", "127.0.0.1", "--fixtures", file, "--strict", "--validate-on-load")
	out := &output{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("aimock:\n%s", tail(out.String(), 4000))
		}
	})
	listening := regexp.MustCompile(`listening on (http://\S+)`)
	var found []string
	until(t, time.Minute, "aimock listens; is it installed? npm ci --prefix e2e/"+filepath.ToSlash(aimockDir), func() bool {
		found = listening.FindStringSubmatch(out.String())
		return found != nil
	})
	return &aimock{url: found[1]}
}

// aimockRequest is an entry of the journal. Bodies are as the server reads
// them, the same for all APIs.
type aimockRequest struct {
	Path string `json:"path"`
	Body struct {
		Model    string            `json:"model"`
		Tools    []json.RawMessage `json:"tools"`
		Messages []struct {
			Role string `json:"role"`
		} `json:"messages"`
	} `json:"body"`
	Response struct {
		Status int `json:"status"`
	} `json:"response"`
}

// journal returns the requests for a model, in order.
func (a *aimock) journal(t *testing.T, model string) []aimockRequest {
	t.Helper()
	answer, err := http.Get(a.url + "/__aimock/journal")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var all, of []aimockRequest
	if err := json.NewDecoder(answer.Body).Decode(&all); err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if cmp.Or(r.Body.Model, r.Path) == model {
			of = append(of, r)
		}
	}
	return of
}
