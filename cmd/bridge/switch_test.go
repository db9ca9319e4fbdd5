package main

// A session changes its provider between two runs, and back. Each provider gets
// the whole conversation in its own form, and only its own models' reasoning.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/proof/strict"
)

// replier answers requests with recorded answers, in order, and keeps them.
type replier struct {
	url string

	mu     sync.Mutex
	bodies []string
}

// newReplier answers as an API does, with these of its recorded answers.
func newReplier(t *testing.T, api string, names ...string) *replier {
	t.Helper()
	archive, err := txtar.ParseFile("../../internal/llm/conformance/testdata/" + api + ".txtar")
	bustest.OK(t, err)
	recorded := map[string]string{}
	for _, f := range archive.Files {
		_, recorded[f.Name], _ = strings.Cut(string(f.Data), "\n\n")
	}
	r := &replier{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.bodies = append(r.bodies, string(body)); len(r.bodies) > len(names) {
			http.Error(w, "nothing is recorded", http.StatusNotImplemented)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, recorded[names[len(r.bodies)-1]])
	}))
	t.Cleanup(srv.Close)
	r.url = srv.URL
	return r
}

// sent returns the nth request, from 1, after its conversation has passed the
// rules of the API, and without the escapes that some libraries write.
func sent[T any](t *testing.T, r *replier, n int, member string, rules func([]T) error) string {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.bodies) < n {
		t.Fatalf("%d requests, want %d", len(r.bodies), n)
	}
	var request map[string]json.RawMessage
	bustest.OK(t, json.Unmarshal([]byte(r.bodies[n-1]), &request))
	var all []T
	dec := json.NewDecoder(bytes.NewReader(request[member]))
	dec.DisallowUnknownFields()
	err := dec.Decode(&all)
	if err == nil {
		err = rules(all)
	}
	if err != nil {
		t.Errorf("request %d: %v\n%s", n, err, r.bodies[n-1])
	}
	var value any
	var plain strings.Builder
	enc := json.NewEncoder(&plain)
	enc.SetEscapeHTML(false)
	if err = json.Unmarshal(request[member], &value); err == nil {
		err = enc.Encode(value)
	}
	bustest.OK(t, err)
	return plain.String()
}

// wantSent checks what a conversation has, and what it has not.
func wantSent(t *testing.T, what, conversation string, has, hasNot []string) {
	t.Helper()
	for _, text := range has {
		if !strings.Contains(conversation, text) {
			t.Errorf("%s: %q is not sent: %s", what, text, conversation)
		}
	}
	for _, text := range hasNot {
		if strings.Contains(conversation, text) {
			t.Errorf("%s: %q is sent: %s", what, text, conversation)
		}
	}
}

func TestSessionChangesItsProvider(t *testing.T) {
	t.Parallel()
	claude, gpt := newReplier(t, "anthropic", "calls", "text", "text"), newReplier(t, "openai", "calls", "text")
	install, err := codec.Marshal(session.InstallRecord{Rules: session.RulesVersion, V: session.Version})
	bustest.OK(t, err)
	s := startSystem(t, install)
	stop := s.daemon(t, nil, "--model", "claude=anthropic:"+claude.url, "--model", "gpt=openai:"+gpt.url+"/v1")
	for i, provider := range []string{"claude", "gpt", "claude"} {
		end := s.askWith(t, "s1", fmt.Sprint("question ", i+1), map[string]any{"provider": provider, "model": "m-1"})
		if end.Lifecycle != session.Completed || end.Output == nil || end.Output.Text != "Grüße, 🙂" {
			t.Fatalf("run %d: %+v, %+v", i+1, end, end.Output)
		}
	}
	if status, log := stop(); status != settings.StatusDone {
		t.Errorf("status %d: %s", status, log)
	}
	own := map[string][]string{
		"claude": {`"signature":"EqQBmadeup=="`, `"thinking":"Two places, so two looks."`, `"data":"EmwKmadeup=="`},
		"gpt":    {`"encrypted_content":"gAAA<made up>"`},
	}
	first := []string{"question 1", "Let me look.", "r1t1c0", "r1t1c1", "tool_unknown", "Grüße, 🙂", "question 2"}
	second := slices.Concat(first, []string{"r2t1c0", "r2t1c1", "question 3"})
	wantSent(t, "the other provider", sent(t, gpt, 1, "input", strict.Responses), first, own["claude"])
	wantSent(t, "its second turn", sent(t, gpt, 2, "input", strict.Responses), slices.Concat(first, own["gpt"], []string{"r2t1c0", "r2t1c1"}), own["claude"])
	wantSent(t, "the first one again", sent(t, claude, 3, "messages", strict.Anthropic), slices.Concat(second, own["claude"]), own["gpt"])
}
