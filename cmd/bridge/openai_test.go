package main

// The daemon calls a server of chat completions, with the key of the
// environment, and runs the tool that the model calls.

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/planner"
)

func TestRunsOpenAI(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var requests []string
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Model    string
			Messages []json.RawMessage
			Tools    []json.RawMessage
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		mu.Lock()
		requests = append(requests, fmt.Sprintf("%s %s %s tools=%v %s", r.URL.Path, r.Header.Get("Authorization"), body.Model, len(body.Tools) > 0, body.Messages[len(body.Messages)-1]))
		turn := len(requests)
		mu.Unlock()
		message := `{"role":"assistant","content":"It is open."}`
		finish := "stop"
		if turn == 1 {
			message = `{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"open_session","arguments":"{}"}}]}`
			finish = "tool_calls"
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"c","object":"chat.completion","created":1,"model":"m-1","choices":[{"index":0,"message":%s,"finish_reason":%q}],"usage":{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12}}`, message, finish)
	}))
	t.Cleanup(provider.Close)

	d := planner.Builtin()
	install, err := codec.Marshal(session.InstallRecord{
		Config:         &session.RunConfig{Provider: "openai", Model: "m"},
		DefaultProfile: d.DefaultProfile, ProfileByProvider: d.ProfileByProvider, Profiles: d.Profiles, Rules: session.RulesVersion, Tools: d.Tools, V: session.Version,
	})
	bustest.OK(t, err)
	s := startSystem(t, install)
	stop := s.daemon(t, []string{"OPENAI_BASE_URL=" + provider.URL + "/v1", "OPENAI_API_KEY=sk-test"},
		"--model", "openai=openai-chat", "--openai-whole", "--tools", "host", "--workdir", filepath.Join(t.TempDir(), "hosts"))
	end := s.ask(t, "s1", "Open a session.")
	if end.Lifecycle != session.Completed || end.Output == nil || end.Output.Text != "It is open." || end.Usage.InputTokens != 10 || end.Usage.OutputTokens != 14 {
		t.Errorf("run: got %+v, output %+v", end, end.Output)
	}
	if status, log := stop(); status != settings.StatusDone || strings.Contains(log, "sk-test") {
		t.Errorf("status %d, log %s", status, log)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(requests) != 2 {
		t.Fatalf("requests: got %q", requests)
	}
	for i, want := range []string{`"Open a session."`, `"tool_call_id":"r1t1c0xxx"`} {
		if !strings.HasPrefix(requests[i], "/v1/chat/completions Bearer sk-test m tools=true ") || !strings.Contains(requests[i], want) {
			t.Errorf("request %d: got %s, want %s in it", i+1, requests[i], want)
		}
	}
}
