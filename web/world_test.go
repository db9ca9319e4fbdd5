package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold"
	"github.com/refold/refold/refoldtest"
	"github.com/refold/refold/web"
)

// world is a server with sessions, and who may use it.
type world struct {
	t   testing.TB
	ctx context.Context
	rt  *refold.Runtime
	url string
}

// callers are the tokens of a world.
var callers = map[string]web.Caller{
	"all":      {Subject: "ada", Rights: web.Rights},
	"acme":     {Subject: "ann", Rights: web.Rights, Scope: "acme-"},
	"other":    {Subject: "bob", Rights: web.Rights, Scope: "other-"},
	"reader":   {Subject: "rob", Rights: []web.Right{web.RightRead}, Scope: "acme-"},
	"asker":    {Subject: "eve", Rights: []web.Right{web.RightRead, web.RightAsk}, Scope: "acme-", Agents: []string{"helper"}},
	"approver": {Subject: "pam", Rights: []web.Right{web.RightApprove}, Scope: "acme-"},
	"nothing":  {Subject: "ned", Scope: "acme-"},
	"expired":  {Subject: "old", Rights: web.Rights, Expires: time.Unix(1, 0)},
	"crooked":  {Subject: "joe", Rights: web.Rights, Scope: "acme"},
}

// errNoToken refuses a token.
type errNoToken struct{}

func (errNoToken) Error() string { return "the token is not one of this server" }

func auth(r *http.Request) (*web.Caller, error) {
	if c, ok := callers[web.Bearer(r)]; ok {
		return &c, nil
	}
	return nil, errNoToken{}
}

// serve returns a world in which a handler serves a runtime with the agent helper.
func serve(t testing.TB, o web.Options, agent ...refold.AgentOption) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	w := &world{t: t, ctx: ctx, rt: refoldtest.Open(t)}
	if _, err := w.rt.Agent("helper", agent...); err != nil {
		t.Fatal(err)
	}
	w.url = w.handler(o)
	return w
}

// handler starts another server of the same log.
func (w *world) handler(o web.Options) (url string) {
	if o.Auth == nil {
		o.Auth = auth
	}
	if o.Limits.PerSecond == 0 {
		o.Limits.PerSecond = 1_000_000
	}
	return newServer(w.t, web.Handler(w.rt, o))
}

// answer is an answer of the server.
type answer struct {
	status int
	header http.Header
	text   string
}

// into decodes an answer.
func (a answer) into(t testing.TB, to any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.text), to); err != nil {
		t.Fatalf("%q: %v", a.text, err)
	}
}

// request sends a request with a token. headers are pairs.
func (w *world) request(token, method, path, body string, headers ...string) *http.Request {
	w.t.Helper()
	url := path
	if !strings.HasPrefix(path, "http") {
		url = w.url + path
	}
	r, err := http.NewRequestWithContext(w.ctx, method, url, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// do sends a request, and reads the answer.
func (w *world) do(token, method, path, body string, headers ...string) answer {
	w.t.Helper()
	got, err := http.DefaultClient.Do(w.request(token, method, path, body, headers...))
	if err != nil {
		w.t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer{got.StatusCode, got.Header, string(text)}
}

// want sends a request whose answer has a status, and decodes it.
func (w *world) want(status int, to any, token, method, path, body string, headers ...string) answer {
	w.t.Helper()
	got := w.do(token, method, path, body, headers...)
	if got.status != status {
		w.t.Fatalf("%s %s %s: got %d %s, want %d", method, path, body, got.status, got.text, status)
	}
	if to != nil {
		got.into(w.t, to)
	}
	return got
}

// refuse sends a request that is refused with a code.
func (w *world) refuse(status int, code, token, method, path, body string, headers ...string) {
	w.t.Helper()
	var p web.Problem
	got := w.do(token, method, path, body, headers...)
	if kind := got.header.Get("Content-Type"); kind != "application/problem+json" || json.Unmarshal([]byte(got.text), &p) != nil {
		w.t.Errorf("%s %s %s: got %d %q %s, want a problem", method, path, body, got.status, kind, got.text)
		return
	}
	if got.status != status || p.Status != status || p.Code != code || p.Detail == "" || p.Title == "" {
		w.t.Errorf("%s %s %s: got %d %+v, want %d %s", method, path, body, got.status, p, status, code)
	}
}

// event is a server-sent event.
type event struct{ id, kind, data string }

// events reads a stream.
type events struct {
	body io.ReadCloser
	in   *bufio.Reader
	id   string
}

// follow opens a stream.
func (w *world) follow(token, path string, headers ...string) *events {
	w.t.Helper()
	got, err := http.DefaultClient.Do(w.request(token, http.MethodGet, path, "", headers...))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { got.Body.Close() })
	if got.StatusCode != http.StatusOK || got.Header.Get("Content-Type") != "text/event-stream" {
		text, _ := io.ReadAll(got.Body)
		w.t.Fatalf("GET %s: got %d %q %s, want a stream", path, got.StatusCode, got.Header.Get("Content-Type"), text)
	}
	return &events{body: got.Body, in: bufio.NewReader(got.Body)}
}

// next returns the next event; an error when the stream ends.
func (s *events) next() (e event, err error) {
	for {
		line, err := s.in.ReadString('\n')
		if err != nil {
			return e, err
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch {
		case line == "\n" && e.data != "":
			e.id = s.id
			return e, nil
		case field == "id":
			s.id = value
		case field == "event":
			e.kind = value
		case field == "data":
			e.data = value
		}
	}
}

// update returns the next update.
func (w *world) update(s *events) (u web.Update, id string) {
	w.t.Helper()
	e, err := s.next()
	if err != nil || e.kind != "" {
		w.t.Fatalf("got %+v (%v), want an update", e, err)
	}
	if err := json.Unmarshal([]byte(e.data), &u); err != nil {
		w.t.Fatal(err)
	}
	return u, e.id
}
