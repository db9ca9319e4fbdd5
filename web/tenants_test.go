package web_test

// Who may do what: every token at every operation, with sessions of its own scope and of
// another one.

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/inside"
	"github.com/refold/refold/refoldtest"
	"github.com/refold/refold/web"
)

// bodies are requests that operations with a body accept, by name.
var bodies = map[string]string{
	"startRun": `{"agent": "helper", "input": "hi"}`, "steer": `{"input": "more"}`,
	"setFacts": `{"facts": {"plan": "gold"}}`, "setAgent": `{"agent": "helper"}`, "setOverrides": `{"scope": "session", "disable": []}`,
	"decide": `{"decision": "approve", "args_hash": "` + zeros + `"}`, "storeFile": "a file",
	"aiSDKSend": `{"id": "hidden", "messages": [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "hi"}]}], "trigger": "submit-message"}`,
	"runAGUI":   `{"threadId": "hidden", "runId": "run-1", "messages": []}`,
	"editRun":   `{"input": "other"}`, "setProfile": `{"profile": "p"}`, "setConfig": `{"config": {}}`, "setRegistry": `{"registry": {"tools": []}}`,
	"releaseSession": `{"seq": 1, "reason": "x"}`,
	"previewEvent":   `{"type": "RunPauseRequested", "door": "in"}`,
}

var zeros = strings.Repeat("0", 64)

// in returns the path of an operation in a session.
func in(o web.Operation, sid string) string {
	return strings.NewReplacer("{agent}", "helper", "{sid}", sid, "{run}", "1", "{call}", "r1t1c0", "{seq}", "2", "{name}", "report").Replace(o.Path)
}

// status sends the request of an operation, and returns its status and the beginning of
// its answer: a stream does not end.
func (w *world) status(token string, o web.Operation, sid string, headers ...string) (int, string) {
	w.t.Helper()
	got, err := http.DefaultClient.Do(w.request(token, o.Method, in(o, sid), bodies[o.Name], headers...))
	if err != nil {
		w.t.Fatal(err)
	}
	defer got.Body.Close()
	if o.Stream && got.StatusCode == http.StatusOK {
		return got.StatusCode, ""
	}
	text, err := io.ReadAll(got.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return got.StatusCode, string(text)
}

// FD-07: an operation needs a valid token with its right, and finds nothing of another
// scope.
func TestAttackTokensDoWhatTheirRightsSay(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, refold.Model(refoldtest.Model(refoldtest.Say("An answer."), refoldtest.Say("Another."))))
	w.want(http.StatusOK, nil, "other", "POST", "/v1/sessions/hidden/runs", `{"agent": "helper", "input": "A secret question."}`, "Prefer", "wait=60")
	for _, o := range web.Operations() {
		for token := range callers {
			caller := callers[token]
			if token == "other" { // whose session it is
				continue
			}
			got, text := w.status(token, o, "hidden")
			switch {
			case o.Open:
				want := http.StatusOK
				if o.Name == "replyByLink" { // its path has no link
					want = http.StatusNotFound
				}
				if got != want {
					t.Errorf("%s of %s: got %d %s, want %d", o.Name, token, got, text, want)
				}
			case token == "expired" || token == "crooked":
				if got != http.StatusUnauthorized {
					t.Errorf("%s of %s: got %d %s, want 401", o.Name, token, got, text)
				}
			case o.Right != "" && !slices.Contains(caller.Rights, o.Right) || o.Global && caller.Scope != "":
				if got != http.StatusForbidden {
					t.Errorf("%s of %s: got %d %s, want 403", o.Name, token, got, text)
				}
			case got == http.StatusUnauthorized || got == http.StatusForbidden || got >= 500:
				t.Errorf("%s of %s: got %d %s", o.Name, token, got, text)
			}
			if caller.Scope == "acme-" && !o.Open && (strings.Contains(text, "secret") || strings.Contains(text, "other-")) {
				t.Errorf("%s of %s tells of another scope: %s", o.Name, token, text)
			}
		}
		if got, text := w.status("", o, "hidden"); !o.Open && got != http.StatusUnauthorized {
			t.Errorf("%s without a token: got %d %s, want 401", o.Name, got, text)
		}
	}
	// Nothing of the other scope has changed.
	var state web.RunState
	w.want(http.StatusOK, &state, "other", "GET", "/v1/sessions/hidden/runs/1", "")
	if state.Text != "An answer." {
		t.Errorf("got %+v", state)
	}
	w.refuse(http.StatusNotFound, "no_run", "other", "GET", "/v1/sessions/hidden/runs/2", "")
}

// FD-07: lists have the sessions of a scope alone, under the ids that its clients know.
func TestAttackListsTellOfOneScope(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, refold.Model(refoldtest.Model(refoldtest.Say("hello"))))
	for _, of := range []string{"acme", "other"} {
		for i := range 3 {
			w.want(http.StatusOK, nil, of, "POST", fmt.Sprintf("/v1/sessions/%s%d/runs", of, i), `{"agent": "helper", "input": "hi"}`, "Prefer", "wait=60")
		}
	}
	listed := func(token string) (ids []string) {
		path := "/v1/sessions?limit=2"
		for {
			var page web.SessionList
			w.want(http.StatusOK, &page, token, "GET", path, "")
			for _, row := range page.Sessions {
				ids = append(ids, row.Session)
			}
			if page.Next == "" {
				slices.Sort(ids)
				return ids
			}
			path = "/v1/sessions?limit=2&after=" + page.Next
		}
	}
	for token, want := range map[string]string{
		"acme": "acme0 acme1 acme2", "other": "other0 other1 other2",
		"all": "acme-acme0 acme-acme1 acme-acme2 other-other0 other-other1 other-other2",
	} {
		for got := ""; got != want; { // notices follow the log; w.ctx bounds it
			got = strings.Join(listed(token), " ")
			if token != "all" && strings.Contains(got, "-") {
				t.Fatalf("%s: got %s", token, got)
			}
		}
	}
	var view map[string]any
	w.want(http.StatusOK, &view, "acme", "GET", "/v1/sessions/acme0", "")
	if view["session"] != "acme0" {
		t.Errorf("the view of acme0 is of %v", view["session"])
	}
}

// FD-07: a page of another host, or of another origin, gets nothing.
func TestAttackHostAndOrigin(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{Origins: []string{"https://app.example.com"}}, refold.Model(refoldtest.Model(refoldtest.Say("hello"))))
	for _, o := range web.Operations() {
		if o.Path == "/healthz" {
			continue
		}
		if got, text := w.status("all", o, "s", "Host", "evil.example.com"); got != http.StatusForbidden || !strings.Contains(text, "host_refused") {
			t.Errorf("%s: got %d %s, want host_refused", o.Name, got, text)
		}
		for _, origin := range []string{"https://evil.example.com", "null", "https://app.example.com.evil.com"} {
			if got, text := w.status("all", o, "s", "Origin", origin); got != http.StatusForbidden || !strings.Contains(text, "origin_refused") {
				t.Errorf("%s of %s: got %d %s, want origin_refused", o.Name, origin, got, text)
			}
		}
	}
	got := w.do("", "OPTIONS", "/v1/sessions/s/runs", "", "Origin", "https://app.example.com", "Access-Control-Request-Method", "POST")
	if got.status != http.StatusNoContent || got.header.Get("Access-Control-Allow-Origin") != "https://app.example.com" || got.header.Get("Access-Control-Allow-Credentials") != "" || !strings.Contains(got.header.Get("Access-Control-Allow-Methods"), "POST") {
		t.Errorf("preflight: got %d %v", got.status, got.header)
	}
	if got := w.do("all", "GET", "/v1/sessions", "", "Origin", w.url); got.status != http.StatusOK {
		t.Errorf("its own origin: got %d %s", got.status, got.text)
	}
}

// Without Auth a handler answers 401 to all but /healthz.
func TestHandlerWithoutAuth(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, refold.Model(refoldtest.Model(refoldtest.Say("hello"))))
	s := newServer(t, web.Handler(w.rt, web.Options{}))
	for _, path := range []string{"/v1/sessions", "/openapi.json", "/docs", "/readyz", "/nowhere"} {
		w.refuse(http.StatusUnauthorized, "unauthorized", "all", "GET", s+path, "")
	}
	w.want(http.StatusOK, nil, "", "GET", s+"/healthz", "")
}

// A handle that is used after a sweep has marked its file keeps the file; one that is used
// after another one has deleted it is refused.
func TestHandlesOutliveSweeps(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, refold.Model(refoldtest.Model(refoldtest.Say("I see."))))
	c := inside.Of(w.rt).Client()
	sweep := func() client.Swept {
		swept, err := c.SweepBlobs(w.ctx, client.SweepOptions{Now: func() time.Time { return time.Now().Add(48 * time.Hour) }})
		bustest.OK(t, err)
		return swept
	}
	ask := func(of web.Blob) string {
		return `{"agent": "helper", "input": [{"text": "What is this?"}, {"blob": "` + of.Blob + `"}]}`
	}
	var used, late web.Blob
	w.want(http.StatusOK, &used, "acme", "PUT", "/v1/sessions/a/blobs?name=a.txt", "Used.", "Content-Type", "text/plain")
	w.want(http.StatusOK, &late, "acme", "PUT", "/v1/sessions/a/blobs?name=b.txt", "Late.", "Content-Type", "text/plain")
	if swept := sweep(); swept.Marked.Blobs != 2 {
		t.Errorf("the first sweep: %+v", swept)
	}
	w.want(http.StatusOK, nil, "acme", "POST", "/v1/sessions/a/runs", ask(used), "Prefer", "wait=60")
	if swept := sweep(); swept.Deleted.Blobs != 1 {
		t.Errorf("the second sweep: %+v", swept)
	}
	w.refuse(http.StatusUnprocessableEntity, "bad_blob", "acme", "POST", "/v1/sessions/a/runs", ask(late))
}

// A handle of a file is good for its session alone, and a hash is no handle.
func TestAttackHandlesOfFiles(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{Limits: web.Limits{DayBytes: 100}}, refold.Model(refoldtest.Model(refoldtest.Say("I see."))))
	var blob web.Blob
	w.want(http.StatusOK, &blob, "acme", "PUT", "/v1/sessions/a/blobs?name=notes.txt", "My notes.", "Content-Type", "text/plain")
	if blob.MediaType != "text/plain" || blob.Size != 9 {
		t.Errorf("got %+v", blob)
	}
	ask := func(handle string) string {
		return `{"agent": "helper", "input": [{"text": "What is this?"}, {"blob": "` + handle + `"}]}`
	}
	var state web.RunState
	w.want(http.StatusOK, &state, "acme", "POST", "/v1/sessions/a/runs", ask(blob.Blob), "Prefer", "wait=60")
	if state.Text != "I see." {
		t.Errorf("got %+v", state)
	}
	w.refuse(http.StatusUnprocessableEntity, "bad_blob", "acme", "POST", "/v1/sessions/b/runs", ask(blob.Blob))
	w.refuse(http.StatusUnprocessableEntity, "bad_blob", "other", "POST", "/v1/sessions/a/runs", ask(blob.Blob))
	for _, bad := range []string{zeros, "sha256:" + zeros, blob.Blob + "x", "x" + blob.Blob, "."} {
		w.refuse(http.StatusUnprocessableEntity, "bad_blob", "acme", "POST", "/v1/sessions/a/runs", ask(bad))
	}
	w.refuse(http.StatusUnprocessableEntity, "unsupported_media_type", "acme", "PUT", "/v1/sessions/a/blobs", "\x7fELF\x00\x01", "Content-Type", "image/png")
	w.refuse(http.StatusTooManyRequests, "quota_exceeded", "acme", "PUT", "/v1/sessions/a/blobs", strings.Repeat("x", 100), "Content-Type", "text/plain")
}
