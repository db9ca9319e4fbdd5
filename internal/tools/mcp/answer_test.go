package mcp

// Answers over HTTP that are no message, or several, as public reports describe
// them: one of them costs one call.

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

const (
	seenAnswer = `{"jsonrpc": "2.0", "id": ID, "result": {"content": [{"type": "text", "text": "seen"}]}}`
	notice     = `{"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}`
)

// TestOddAnswerOverHTTPHurtsOneCall: another call in progress ends as if nothing
// had happened, in the same session.
func TestOddAnswerOverHTTPHurtsOneCall(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status     int
		kind, body string // ID is the request's
		want, code string // what is shown, or the detail of the failure; the code
	}{
		// https://github.com/Effect-TS/effect/issues/6274: every answer is a batch, as the protocol 2025-03-26 allowed
		"a batch":                 {200, "application/json", "[" + notice + ", " + seenAnswer + "]", "seen", ""},
		"a batch of other things": {200, "application/json", "[5, null, [], " + seenAnswer + "]", "seen", ""},
		"a batch after space":     {200, "application/json", "\ufeff\n [" + seenAnswer + "]", "seen", ""},
		"a batch as an event":     {200, "text/event-stream", "event: message\ndata: [" + notice + ", " + seenAnswer + "]\n\n", "seen", ""},
		"an empty batch":          {200, "application/json", "[]", "no message", codeTryAgain},
		// https://github.com/modelcontextprotocol/servers/issues/1572: errors have null for the request's id
		"an error for nobody": {200, "application/json", `{"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "seen"}}`, "seen", CodeServerError},
		"another id":          {200, "application/json", strings.ReplaceAll(seenAnswer, "ID", "4711"), "seen", ""},
		// https://github.com/modelcontextprotocol/java-sdk/issues/748
		"another type": {200, "text/plain; charset=utf-8", seenAnswer, "seen", ""},
		// https://github.com/modelcontextprotocol/python-sdk/issues/1382: pages of gateways
		"a page":         {200, "text/html", "<html>\n<body>Bad Gateway s3cret</body></html>", "200 text/html, <html> <body>Bad Gateway", codeTryAgain},
		"nothing":        {200, "application/json", "", "no message", codeTryAgain},
		"no object":      {200, "application/json", `"ok"`, "no message", codeTryAgain},
		"half a message": {200, "application/json", seenAnswer[:40], "no message", codeTryAgain},
		"it breaks off":  {200, "application/json", "CUT" + seenAnswer[:40], "broke off", codeTryAgain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sessions atomic.Int64
			waits, released := make(chan struct{}, 1), make(chan struct{})
			g := &gate{answer: func(w http.ResponseWriter, r *http.Request) {
				var asked struct {
					ID     json.RawMessage `json:"id"`
					Params struct {
						Name string `json:"name"`
					} `json:"params"`
				}
				if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
					panic(err)
				}
				kind, body, status := c.kind, c.body, c.status
				if asked.Params.Name == "add" {
					waits <- struct{}{}
					<-released
					kind, body, status = "application/json", seenAnswer, 200
				}
				w.Header().Set("Content-Type", kind)
				body, cut := strings.CutPrefix(strings.ReplaceAll(body, "ID", string(asked.ID)), "CUT")
				if cut {
					w.Header().Set("Content-Length", fmt.Sprint(len(body)+10))
				}
				w.WriteHeader(status)
				fmt.Fprint(w, body)
			}}
			w := remoteWorld(t, nil, func(next http.Handler) http.Handler {
				gated := g.before(next)
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") == "" {
						sessions.Add(1)
					}
					gated.ServeHTTP(w, r)
				})
			})
			w.imports()
			w.want(w.call(t.Context(), "echo", `{"text": "first"}`, true), "succeeded", "", "first")
			before := sessions.Load()
			g.closed.Store(true)
			other := make(chan string, 1)
			go func() { r := w.call(t.Context(), "add", `{"text": "a"}`, false); other <- r.Status + " " + r.Shown }()
			<-waits
			status := "succeeded"
			if c.code != "" {
				status = "failed"
			}
			r := w.call(t.Context(), "echo", `{"text": "b"}`, true)
			w.want(r, status, c.code, c.want)
			if strings.Contains(r.Shown+r.Detail, "s3cret") {
				t.Errorf("a secret is shown: %s", r.Detail)
			}
			close(released)
			if got := <-other; got != "succeeded seen" {
				t.Errorf("the other call: %s", got)
			}
			if n := sessions.Load() - before; n != 0 {
				t.Errorf("%d sessions were begun again", n)
			}
		})
	}
}
