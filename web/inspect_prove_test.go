package web_test

// What: what the server sends for a proof is what a session's events fold to, in pages of
// a bounded size, and is for the session's own tenant alone.
//
// How: package prove folds what the routes answer, without a browser.

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/inside"
	"github.com/refold/refold/internal/prove"
	"github.com/refold/refold/refoldtest"
	"github.com/refold/refold/web"
)

// prove folds a session from what the server sends, and returns the report and the number
// of pages.
func (w *world) prove(token, sid string) (*prove.Report, int) {
	w.t.Helper()
	at := "/v1/sessions/" + sid
	claims := w.want(http.StatusOK, nil, token, "GET", at+"/proof", "").text
	p, err := prove.Begin([]byte(claims), []byte(w.want(http.StatusOK, nil, token, "GET", at+"/install", "").text))
	if err != nil {
		w.t.Fatal(err)
	}
	var said web.Proof
	if err := json.Unmarshal([]byte(claims), &said); err != nil {
		w.t.Fatal(err)
	}
	pages := 0
	for from := uint64(1); from > 0; pages++ {
		page := w.want(http.StatusOK, nil, token, "GET", fmt.Sprintf("%s/log?from=%d&to=%d", at, from, said.Seq), "").text
		if _, from = p.Page([]byte(page)); len(page) > 12<<20 {
			w.t.Errorf("a page has %d bytes", len(page))
		}
	}
	return p.End(), pages
}

func TestProofIsOfTheSession(t *testing.T) {
	t.Parallel()
	w := bought(t)
	events, hashes := w.states()
	r, pages := w.prove("acme", "s")
	if len(r.Differences) > 0 || r.Events != len(events) || r.Hash != hashes[len(hashes)-1] || r.EffectsSame < 3 || r.States != 2 || pages != 1 {
		t.Errorf("got %+v in %d pages, want all %d events to be equal", r, pages, len(events))
	}
	for _, rest := range []string{"proof", "install", "log"} {
		w.refuse(http.StatusNotFound, "no_session", "other", "GET", "/v1/sessions/s/"+rest, "")
		w.refuse(http.StatusForbidden, "forbidden", "approver", "GET", "/v1/sessions/s/"+rest, "")
	}
	w.refuse(http.StatusNotFound, "no_event", "acme", "GET", "/v1/sessions/s/log?from=99999", "")
	w.refuse(http.StatusNotFound, "no_event", "acme", "GET", "/v1/sessions/s/log?to=1", "")
	w.refuse(http.StatusBadRequest, "bad_request", "acme", "GET", "/v1/sessions/s/log?from=x", "")
}

// A page ends after 2,000 events, or after about 8 MiB.
func TestProofComesInPages(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, refold.Model(refoldtest.Model(refoldtest.Say("hello"))))
	w.want(http.StatusOK, nil, "all", "POST", "/v1/sessions/s/runs", `{"agent": "helper", "input": "hi"}`, "Prefer", "wait=60")
	c := inside.Of(w.rt).Client()
	for range 9 << 20 / session.TextBytesMax {
		if _, err := c.Run(w.ctx, "s", strings.Repeat("x", session.TextBytesMax), client.RunOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 2100 {
		value := fmt.Sprint(i)
		if _, err := c.SetFacts(w.ctx, "s", map[string]*string{"n": &value}, ""); err != nil {
			t.Fatal(err)
		}
	}
	r, pages := w.prove("all", "s")
	if len(r.Differences) > 0 || r.Events < 2100 || pages < 3 || r.SnapshotAt == 0 {
		t.Errorf("got %+v in %d pages, want all events to be equal, in 3 pages at least, and a snapshot", r, pages)
	}
}

// The pages have the address of the program, and the server sends it to those who can and
// can't decompress it.
func TestProgramIsServed(t *testing.T) {
	t.Parallel()
	w := bought(t)
	program := "\x00asm\x01\x00\x00\x00"
	w.url = w.handler(web.Options{Program: []byte(program), Base: "/agents"})
	_, rest, _ := strings.Cut(w.want(http.StatusOK, nil, "", "GET", "/agents/s/s", "").text, `data-program="`)
	hash, _, _ := strings.Cut(rest, `"`)
	for _, encoding := range []string{"gzip", "identity"} { // the client decompresses what it did not ask for by itself
		got, err := http.DefaultTransport.RoundTrip(w.request("", "GET", "/agents/program/"+hash, "", "Accept-Encoding", encoding))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(got.Body)
		got.Body.Close()
		if err != nil || got.Header.Get("Content-Type") != "application/wasm" || (got.Header.Get("Content-Encoding") == "gzip") != (encoding == "gzip") || encoding != "gzip" && string(text) != program {
			t.Errorf("%s: got %v %q (%v)", encoding, got.Header, text, err)
		}
	}
	w.refuse(http.StatusNotFound, "not_found", "all", "GET", "/agents/program/abc", "")
	defer func() {
		if recover() == nil {
			t.Error("a program that is none is taken")
		}
	}()
	web.Handler(w.rt, web.Options{Program: []byte("#!/bin/sh")})
}
