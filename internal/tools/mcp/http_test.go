package mcp

// Specifics of HTTP: statuses, secrets, answers that break off.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// gate stands before a server. While closed is set, it answers calls of tools by
// itself.
type gate struct {
	closed atomic.Bool
	calls  atomic.Int64
	answer http.HandlerFunc
	auth   sync.Map // values of Authorization that were seen
}

func (g *gate) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.auth.Store(r.Header.Get("Authorization"), true)
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, []byte(`"tools/call"`)) {
			g.calls.Add(1)
			if g.closed.Load() {
				g.answer(w, r)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	for _, c := range []struct {
		name         string
		answer       http.HandlerFunc
		unsafe, safe string // status, code, retryable, requests
	}{
		{"400", status(400), "failed bad_request false 2", "failed bad_request false 2"},
		{"401", status(401), "failed unauthorized false 1", "failed unauthorized false 1"},
		{"403", status(403), "failed forbidden false 1", "failed forbidden false 1"},
		{"404", status(404), "failed not_found false 2", "failed not_found false 2"},
		{"429", status(429), "failed rate_limited true 3", "failed rate_limited true 3"},
		{"503", status(503), "failed unavailable true 3", "failed unavailable true 3"},
		{"500", status(500), "outcome_unknown outcome_unknown false 1", "failed try_again true 3"},
		{"502", status(502), "outcome_unknown outcome_unknown false 1", "failed try_again true 3"},
		{"401, and says the secret", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, "no such key: %s", r.Header.Get("Authorization"))
		}, "failed unauthorized false 1", "failed unauthorized false 1"},
		{"an error that says the secret", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			var asked struct {
				ID json.RawMessage `json:"id"`
			}
			if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
				panic(err)
			}
			fmt.Fprintf(w, `{"jsonrpc": "2.0", "id": %s, "error": {"code": -32602, "message": "not with %s"}}`, asked.ID, r.Header.Get("Authorization"))
		}, "failed bad_request false 1", "failed bad_request false 1"},
		{"an error in the body", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "no valid session"}}`)
		}, "failed bad_request false 2", "failed bad_request false 2"},
		{"no answer at all", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			"outcome_unknown outcome_unknown false 1", "failed try_again true 3"},
		{"another type", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
			"outcome_unknown outcome_unknown false 1", "failed try_again true 3"},
	} {
		for _, safe := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/retry_safe=%v", c.name, safe), func(t *testing.T) {
				t.Parallel()
				g := &gate{answer: c.answer}
				w := remoteWorld(t, nil, g.before)
				w.imports()
				g.closed.Store(true)
				tool, want := "add", c.unsafe
				if safe {
					tool, want = "echo", c.safe
				}
				r := w.call(t.Context(), tool, `{"text": "a"}`, safe)
				if got := fmt.Sprint(r.Status, " ", r.Code, " ", r.Retryable, " ", g.calls.Load()); got != want {
					t.Errorf("got %q (%s), want %q", got, r.Detail, want)
				}
				// Whatever it was, it passes.
				g.closed.Store(false)
				w.want(w.call(t.Context(), tool, `{"text": "b"}`, safe), "succeeded", "", "b")
				if strings.Contains(w.log.String()+r.Detail+r.Shown, "s3cret") {
					t.Error("the secret is in the log or in the result")
				}
				if _, seen := g.auth.Load("Bearer s3cret"); !seen {
					t.Error("the server was sent no secret")
				}
			})
		}
	}
}

// It can't be resumed, and the call does not wait for the end of its run time.
func TestTruncatedAnswerIsLost(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(){"ends": func() {}, "is cut": func() { panic(http.ErrAbortHandler) }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := &gate{answer: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				w.WriteHeader(http.StatusOK)
				_ = http.NewResponseController(w).Flush()
				end()
			}}
			w := remoteWorld(t, nil, g.before)
			w.imports()
			g.closed.Store(true)
			w.want(w.call(t.Context(), "add", `{"text": "a"}`, false), "outcome_unknown", "outcome_unknown", "the answer was lost")
			g.closed.Store(false)
			w.want(w.call(t.Context(), "add", `{"text": "a"}`, false), "succeeded", "", "a")
		})
	}
}
