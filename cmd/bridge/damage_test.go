package main

// A session whose transcript has every kind of damage that public reports name
// goes on with each of the four providers in turn, and each request passes the
// rules of the strictest servers.

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/llm"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/proof/strict"
)

// damaged returns the reported texts of a kind.
func damaged(t *testing.T, kind string) (texts []string) {
	t.Helper()
	content, err := os.ReadFile("../../internal/llm/conformance/testdata/damage.json")
	bustest.OK(t, err)
	var all []struct{ Kind, Text string }
	bustest.OK(t, json.Unmarshal(content, &all))
	for _, d := range all {
		if d.Kind == kind {
			texts = append(texts, d.Text)
		}
	}
	return texts
}

// damaging is a server of chat completions that answers each request with the
// next of its messages. A message that is nil never comes, and one with a status
// is a refusal.
type damaging struct {
	replier
	messages []map[string]any
	asked    chan struct{} // a request came that gets no answer
}

func newDamaging(t *testing.T, messages ...map[string]any) *damaging {
	t.Helper()
	d := &damaging{messages: messages, asked: make(chan struct{}, 1)}
	over := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		d.mu.Lock()
		d.bodies = append(d.bodies, string(body))
		n := len(d.bodies)
		d.mu.Unlock()
		var message map[string]any
		if n <= len(messages) {
			message = messages[n-1]
		}
		switch status, refused := message["status"].(int); {
		case refused:
			http.Error(w, `{"error":{"message":"no"}}`, status)
		case message == nil:
			d.asked <- struct{}{}
			select {
			case <-r.Context().Done():
			case <-over:
			}
		default:
			finish := "stop"
			if message["tool_calls"] != nil {
				finish = "tool_calls"
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"id":"c","object":"chat.completion","created":1,"model":"m-1","choices":[{"index":0,"message":%s,"finish_reason":%q}]}`, llm.JSON(message), finish)
		}
	}))
	t.Cleanup(func() {
		close(over)
		srv.Close()
	})
	d.url = srv.URL
	return d
}

// messageOf returns an answer of chat completions.
func messageOf(text string, calls ...map[string]any) map[string]any {
	m := map[string]any{"role": "assistant", "content": text}
	if len(calls) > 0 {
		m["tool_calls"] = calls
	}
	return m
}

func callOf(name, arguments string) map[string]any {
	return map[string]any{"id": "call_0", "type": "function", "function": map[string]any{"name": name, "arguments": arguments}}
}

func TestDamagedSessionGoesOnWithEachProvider(t *testing.T) {
	t.Parallel()
	var calls []map[string]any
	for _, arguments := range damaged(t, "arguments") {
		calls = append(calls, callOf("open_session", arguments))
	}
	for _, name := range damaged(t, "name") {
		calls = append(calls, callOf(name, "{}"))
	}
	texts := damaged(t, "text")
	opens := callOf("open_session", "{}")
	first := newDamaging(t,
		messageOf(strings.Join(texts, ""), calls...), messageOf(""), // run 1: damage, and an empty answer
		map[string]any{"status": http.StatusBadRequest}, // run 2 fails
		nil,                                          // run 3 is cancelled
		messageOf(texts[0], opens), messageOf(" \n"), // run 4: a damaged result, and a blank answer
		messageOf("", opens), messageOf("fine"), // run 8, after the other providers
	)
	claude, gpt, gemini := newReplier(t, "anthropic", "calls", "text", "text"), newReplier(t, "openai", "calls", "text"), newReplier(t, "gemini", "calls", "text")
	d := planner.Builtin()
	install, err := codec.Marshal(session.InstallRecord{
		Config:         &session.RunConfig{Provider: "first", Model: "m-1"},
		DefaultProfile: d.DefaultProfile, Profiles: d.Profiles, Rules: session.RulesVersion, Tools: d.Tools, V: session.Version,
	})
	bustest.OK(t, err)
	s := startSystem(t, install)
	stop := s.daemon(t, nil, "--model", "first=openai-chat:"+first.url, "--model", "claude=anthropic:"+claude.url,
		"--model", "gpt=openai:"+gpt.url+"/v1", "--model", "google=gemini:"+gemini.url)
	s.settleDamaged(t, "s1")
	go func() {
		select {
		case <-first.asked:
		case <-t.Context().Done():
		}
		if err := s.nc.Publish("refold.in.s1", []byte(`{"type":"RunCancelRequested","data":{}}`)); err != nil {
			t.Error(err)
		}
	}()
	for i, run := range []struct {
		provider string
		ends     session.Lifecycle
	}{
		{"first", session.Completed}, {"first", session.Failed}, {"first", session.Cancelled}, {"first", session.Completed},
		{"claude", session.Completed}, {"gpt", session.Completed}, {"google", session.Completed}, {"first", session.Completed}, {"claude", session.Completed},
	} {
		end := s.askWith(t, "s1", texts[i%len(texts)]+fmt.Sprint(" run ", i+1), map[string]any{
			"provider": run.provider, "model": "m-1", "system": texts[0],
		})
		if end.Lifecycle != run.ends {
			t.Errorf("run %d, %s: got %+v, want it %s", i+1, run.provider, end, run.ends)
		}
	}
	if status, log := stop(); status != settings.StatusDone {
		t.Errorf("status %d: %s", status, log)
	}
	for n := range first.messages {
		sent(t, &first.replier, n+1, "messages", strict.Chat)
	}
	wantUnicode(t, &first.replier)
	sent(t, claude, 3, "messages", strict.Anthropic)
	sent(t, gpt, 2, "input", strict.Responses)
	sent(t, gemini, 2, "contents", strict.Gemini)
	wantUnicode(t, claude)
	wantUnicode(t, gpt)
	wantUnicode(t, gemini)
}

func wantUnicode(t *testing.T, r *replier) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, body := range r.bodies {
		if err := strict.Unicode([]byte(body)); err != nil {
			t.Errorf("%v: %s", err, body)
		}
	}
}

// settleDamaged settles the tool calls of a session, as a bridge does whose tools
// return such texts.
func (s *system) settleDamaged(t *testing.T, sid string) {
	t.Helper()
	calls, err := s.nc.Subscribe("refold.fx.tool.*."+sid+".*", func(msg *nats.Msg) {
		effect := msg.Subject[strings.LastIndexByte(msg.Subject, '.')+1:]
		body := `{"type":"ToolCallSettled","data":{"effect":"` + effect + `","status":"succeeded","output":{"text":"nul \u0000 end"}}}`
		if err := s.nc.Publish("refold.tool."+sid, []byte(body)); err != nil {
			t.Error(err)
		}
	})
	bustest.OK(t, err)
	t.Cleanup(func() { _ = calls.Unsubscribe() })
}
