package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold"
	"github.com/refold/refold/refoldtest"
	"github.com/refold/refold/web"
)

// newServer serves a handler until the test ends.
func newServer(t testing.TB, h http.Handler) (url string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

func TestLimitsOfACaller(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{Limits: web.Limits{Streams: 2, BodyBytes: 1000}}, refold.Model(refoldtest.Model(refoldtest.Say("hello"))))
	w.refuse(http.StatusRequestEntityTooLarge, "too_large", "all", "POST", "/v1/sessions/s/runs", `{"input": "`+strings.Repeat("x", 2000)+`"}`)
	first := w.follow("acme", "/v1/sessions/s/updates")
	w.follow("acme", "/v1/sessions/s/updates")
	w.refuse(http.StatusTooManyRequests, "too_many_streams", "acme", "GET", "/v1/sessions/s/updates", "")
	w.follow("other", "/v1/sessions/s/updates")
	first.body.Close()
	for open := false; !open; { // the server hears of it at once; w.ctx bounds it
		got, err := http.DefaultClient.Do(w.request("acme", "GET", "/v1/sessions/s/updates", ""))
		if err != nil {
			t.Fatal(err)
		}
		open = got.StatusCode == http.StatusOK
		got.Body.Close()
	}
	slow := newServer(t, web.Handler(w.rt, web.Options{Auth: auth, Limits: web.Limits{PerSecond: 1}}))
	w.want(http.StatusOK, nil, "all", "GET", slow+"/v1/sessions", "")
	w.want(http.StatusOK, nil, "all", "GET", slow+"/v1/sessions", "")
	w.refuse(http.StatusTooManyRequests, "too_many_requests", "all", "GET", slow+"/v1/sessions", "")
}

// A stream whose token is not valid any more ends, and says so.
func TestStreamOfARevokedTokenEnds(t *testing.T) {
	t.Parallel()
	revoked := make(chan struct{})
	w := serve(t, web.Options{
		Limits: web.Limits{KeepAlive: 10 * time.Millisecond},
		Auth: func(r *http.Request) (*web.Caller, error) {
			select {
			case <-revoked:
				return nil, errNoToken{}
			default:
				return auth(r)
			}
		},
	}, refold.Model(refoldtest.Model(refoldtest.Say("hello"))))
	s := w.follow("all", "/v1/sessions/s/updates")
	close(revoked)
	e, err := s.next()
	if err != nil || e.kind != "problem" || !strings.Contains(e.data, `"unauthorized"`) {
		t.Errorf("got %+v (%v), want a problem", e, err)
	}
	if e, err := s.next(); err == nil {
		t.Errorf("after the end: got %+v", e)
	}
}
