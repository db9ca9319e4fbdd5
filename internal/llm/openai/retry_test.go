package openai

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm/endpoint"
)

func with(r reply, name, value string) reply {
	header := map[string]string{name: value}
	for n, v := range r.header {
		header[n] = v
	}
	r.header = header
	return r
}

// One request, one code.
func TestFinalFailuresAreNotRetried(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what  string
		reply reply
		want  string // code and a part of the detail
	}{
		{"a wrong key", whole(401, `{"error":{"message":"Incorrect API key provided: `+key+`.","type":"invalid_request_error","code":"invalid_api_key"}}`),
			"auth: HOST answered 401: Incorrect API key provided: [key]; check the key"},
		{"no right", whole(403, `{"error":{"message":"`+key+` may not"}}`), "auth: HOST answered 403: [key] may not"},
		{"too long", whole(400, `{"error":{"message":"Your messages resulted in 200000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`),
			"context_length_exceeded: HOST answered 400: Your messages resulted in 200000 tokens."},
		{"too long, told in words", whole(400, `{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","code":400}`),
			"context_length_exceeded: HOST answered 400: This model's maximum context length is 4096 tokens."},
		{"too long for a server's door", reply{status: 413, body: "<html>"}, "context_length_exceeded: HOST answered 413"},
		{"filtered", whole(400, `{"error":{"message":"The response was filtered","code":"content_filter"}}`), "content_filter: HOST answered 400: The response was filtered"},
		{"a wrong parameter", whole(400, `{"error":{"message":"Unknown\n  parameter `+key+`","type":"invalid_request_error"}}`), "bad_request: HOST answered 400: Unknown parameter [key]"},
		{"no such model", whole(404, `{"error":"model \"m-1\" not found"}`), `bad_request: HOST answered 404: model "m-1" not found; check the base URL and the model's name`},
		{"no such path", reply{status: 404, body: "404 page not found"}, "bad_request: HOST answered 404: 404 page not found; check the base URL and the model's name"},
		{"a list", whole(400, `[{"error":{"code":400,"message":"Invalid value"}}]`), "bad_request: HOST answered 400: Invalid value"},
		{"no credit", whole(429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`),
			"rate_limited: HOST answered 429: You exceeded your current quota"},
		{"no money", whole(402, `{"error":{"message":"Insufficient credits","code":402}}`), "rate_limited: HOST answered 402: Insufficient credits"},
		{"not to be tried again", with(whole(500, `{}`), "X-Should-Retry", "false"), "overloaded: HOST answered 500"},
		{"a web page", reply{header: map[string]string{"Content-Type": "text/html"}, body: "<html>"}, `bad_request: HOST answered "text/html", no answer of a model: check the base URL`},
		{"a failure in an answer", whole(200, `{"error":{"message":"bad tool schema","code":400}}`), "bad_request: HOST answered 400: bad tool schema"},
		{"a failure in a stream", stream(`{"error":{"message":"too many tokens","code":"context_length_exceeded"}}`), "context_length_exceeded: HOST answered 500: too many tokens"},
	} {
		s := newServer(t, c.reply)
		m := s.model(t, Config{Config: endpoint.Config{Key: key}})
		_, pieces, failure := m.generate(t, hello)
		want := strings.Replace(c.want, "HOST", s.Listener.Addr().String(), 1)
		if failure == nil || failure.Error() != want || failure.Retryable || len(pieces) > 0 || len(m.waits) > 0 {
			t.Errorf("%s: streamed %q, waited %v\n got %v\nwant %s", c.what, pieces, m.waits, failure, want)
		}
	}
}

// The next answer counts.
func TestTemporaryFailuresAreRetried(t *testing.T) {
	t.Parallel()
	begun := `{"model":"m-1","choices":[{"index":0,"delta":{"content":"half an ans"}}]}`
	for _, c := range []struct {
		what string
		bad  reply
		code string // as it is logged
		text string // that was streamed, before it counts
	}{
		{"429", whole(429, `{"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}`), "rate_limited", ""},
		{"500", whole(500, `{"error":{"message":"The server had an error"}}`), "overloaded", ""},
		{"502 with a web page", reply{status: 502, header: map[string]string{"Content-Type": "text/html"}, body: "<html>Bad Gateway"}, "overloaded", ""},
		{"503", reply{status: 503}, "overloaded", ""},
		{"529", reply{status: 529}, "overloaded", ""},
		{"408", reply{status: 408}, "overloaded", ""},
		{"409", whole(409, `{}`), "overloaded", ""},
		{"a 400 that asks for another try", with(whole(400, `{}`), "X-Should-Retry", "true"), "bad_request", ""},
		{"a connection closed without an answer", reply{cut: true}, "network", ""},
		{"a stream cut off", reply{header: stream().header, body: stream(begun).body, cut: true}, "network", "half an ans"},
		{"a stream that ends early", stream(begun), "network", "half an ans"},
		{"a stream that says nothing", stream("[DONE]"), "network", ""},
		{"a stream that is no JSON", stream(begun, "{garbage"), "network", "half an ans"},
		{"an answer that is no JSON", whole(200, "garbage"), "network", ""},
		{"an answer that is cut off", whole(200, `{"choices":[`), "network", ""},
		{"an answer without a choice", whole(200, `{"choices":[]}`), "network", ""},
		{"overloaded in a stream", stream(begun, `{"error":{"message":"Overloaded","type":"server_error"}}`), "overloaded", "half an ans"},
		{"a limit in a stream", stream(`{"error":{"message":"slow down","code":429}}`), "rate_limited", ""},
	} {
		s := newServer(t, c.bad, text("whole"))
		m := s.model(t, Config{Config: endpoint.Config{Key: key}})
		answer, pieces, failure := m.generate(t, hello)
		if failure != nil || answer.Text != "whole" || len(m.waits) != 1 {
			t.Errorf("%s: got %+v, %v, waited %v", c.what, answer, failure, m.waits)
		}
		// Nobody reads two beginnings.
		want := cmp.Or(c.text, "whole")
		if got := strings.Join(pieces, ""); got != want {
			t.Errorf("%s: streamed %q, want %q", c.what, got, want)
		}
		if log := m.logs.String(); !strings.Contains(log, "session=s1 effect=r1t1 code="+c.code) || strings.Count(log, "\n") != 1 {
			t.Errorf("%s: logged %q", c.what, log)
		}
	}
}

func TestRefusedConnection(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := listener.Addr().String()
	must(t, listener.Close())
	tries := 0
	m, err := New(Config{Chat: true, Config: endpoint.Config{BaseURL: "http://" + address + "/v1", Key: key, Wait: func(context.Context, time.Duration) error { tries++; return nil }}}, slog.New(slog.DiscardHandler))
	must(t, err)
	_, err = m.Generate(t.Context(), hello, func(string) {})
	var failure *executor.Error
	want := "network: no answer from " + address + ": dial tcp " + address + ": connect: connection refused"
	if !errors.As(err, &failure) || failure.Error() != want || !failure.Retryable || tries != 8 {
		t.Errorf("got %v after %d tries, want %s after %d", err, tries, want, 8)
	}
}

func TestUntrustedCertificateIsFinal(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	defer s.Close()
	m, err := New(Config{Chat: true, Config: endpoint.Config{BaseURL: s.URL}}, slog.New(slog.DiscardHandler))
	must(t, err)
	_, err = m.Generate(t.Context(), hello, func(string) {})
	var failure *executor.Error
	if !errors.As(err, &failure) || failure.Code != "network" || failure.Retryable || !strings.Contains(failure.Detail, "no certificate that this machine trusts") {
		t.Errorf("got %v", err)
	}
}

// The wait that the server requests applies if it is before the deadline.
func TestRetryAfterIsObeyed(t *testing.T) {
	t.Parallel()
	busy := whole(429, `{}`)
	for _, c := range []struct {
		name, value string
		least, most time.Duration
	}{
		{"Retry-After", "7", 7 * time.Second, 7 * time.Second},
		{"Retry-After", "0", 500 * time.Millisecond * 3 / 4, 500 * time.Millisecond},
		{"Retry-After", "0.1", 500 * time.Millisecond, 500 * time.Millisecond},
		{"Retry-After", "-3", 500 * time.Millisecond * 3 / 4, 500 * time.Millisecond},
		{"Retry-After", "soon", 500 * time.Millisecond * 3 / 4, 500 * time.Millisecond},
		{"Retry-After-Ms", "2500", 2500 * time.Millisecond, 2500 * time.Millisecond},
		{"Retry-After", time.Now().Add(20 * time.Second).UTC().Format(http.TimeFormat), 10 * time.Second, 20 * time.Second},
		{"Retry-After", "1e300", 24 * time.Hour, 24 * time.Hour},
		{"Retry-After", "NaN", 500 * time.Millisecond * 3 / 4, 500 * time.Millisecond},
	} {
		m := newServer(t, with(busy, c.name, c.value), text("yes")).model(t, Config{})
		if _, _, failure := m.generate(t, hello); failure != nil {
			t.Errorf("%s %s: %v", c.name, c.value, failure)
		}
		if len(m.waits) != 1 || m.waits[0] < c.least || m.waits[0] > c.most {
			t.Errorf("%s %s: waited %v, want %v to %v", c.name, c.value, m.waits, c.least, c.most)
		}
	}
	s := newServer(t, with(busy, "Retry-After", "3600"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := s.model(t, Config{}).Generate(ctx, hello, func(string) {})
	var failure *executor.Error
	if !errors.As(err, &failure) || failure.Code != "rate_limited" || !failure.Retryable {
		t.Errorf("beyond the deadline: got %v, want it at once", err)
	}
}

// A server that always fails is called until the retries are used up.
func TestRetriesAreBounded(t *testing.T) {
	t.Parallel()
	const tries = 8
	replies := make([]reply, tries+1)
	for i := range replies {
		replies[i] = whole(500, `{"error":{"message":"down `+strconv.Itoa(i)+`"}}`)
	}
	m := newServer(t, replies...).model(t, Config{})
	_, _, failure := m.generate(t, hello)
	if failure == nil || failure.Code != "overloaded" || !failure.Retryable || !strings.HasSuffix(failure.Detail, "down "+strconv.Itoa(tries)) {
		t.Errorf("got %v", failure)
	}
	if len(m.waits) != tries {
		t.Errorf("waited %v", m.waits)
	}
}

// It ends a hanging answer and a wait at once.
func TestCancelEndsAnswersAndWaits(t *testing.T) {
	t.Parallel()
	asked, done := make(chan struct{}), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, text("begun").body[:120])
		_ = http.NewResponseController(w).Flush()
		close(asked)
		<-done
	}))
	defer s.Close()
	defer close(done)
	m, err := New(Config{Chat: true, Config: endpoint.Config{BaseURL: s.URL, Client: s.Client()}}, slog.New(slog.DiscardHandler))
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if _, err := m.Generate(ctx, hello, func(string) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("in an answer: got %v", err)
	}

	busy := newServer(t, with(whole(429, `{}`), "Retry-After", "3600")).model(t, Config{})
	ctx, cancel = context.WithCancel(t.Context())
	busy.waiting = cancel
	if _, err := busy.Generate(ctx, hello, func(string) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("in a pause: got %v", err)
	}
}

func TestDetailIsShort(t *testing.T) {
	t.Parallel()
	s := newServer(t, whole(400, `{"error":{"message":"`+strings.Repeat("é", 4000)+`"}}`))
	_, _, failure := s.model(t, Config{}).generate(t, hello)
	if failure == nil || len(failure.Detail) > session.DetailBytesMax || !strings.HasSuffix(failure.Detail, "é…") {
		t.Errorf("got %v", failure)
	}
}
