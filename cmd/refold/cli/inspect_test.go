package cli

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/internal/bus/bustest"
)

// asks sends a request with a token, and returns the status.
func asks(t *testing.T, token, method, url, body string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	bustest.OK(t, err)
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	r.Close = true
	got, err := http.DefaultClient.Do(r)
	bustest.OK(t, err)
	got.Body.Close()
	return got.StatusCode
}

// TestDemoLeavesTheInspectorOpen: with a token that may look at the demo's session, and do
// nothing.
func TestDemoLeavesTheInspectorOpen(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	var out, errOut text
	ended := make(chan int, 1)
	go func() { ended <- Main(ctx, []string{"demo", "--inspect"}, nil, &out, &errOut) }()
	found := out.shows(t, `  (http://127\.0\.0\.1:[0-9]+)(/s/demo)#token=(\S+)\n`)
	base, page, token := found[1], found[2], found[3]
	for _, c := range []struct {
		token, method, path string
		status              int
	}{
		{"", http.MethodGet, page, http.StatusOK}, // the page asks with the token
		{"", http.MethodGet, "/v1/sessions/demo", http.StatusUnauthorized},
		{token + "x", http.MethodGet, "/v1/sessions/demo", http.StatusUnauthorized},
		{token, http.MethodGet, "/v1/sessions/demo/events", http.StatusOK},
		{token, http.MethodGet, "/v1/sessions/demo/proof", http.StatusOK},
		{token, http.MethodGet, "/v1/system", http.StatusOK},
		{token, http.MethodPost, "/v1/sessions/demo/runs", http.StatusForbidden},
		{token, http.MethodPost, "/v1/sessions/demo/end", http.StatusForbidden},
	} {
		if got := asks(t, c.token, c.method, base+c.path, `{"input": "hi"}`); got != c.status {
			t.Errorf("%s %s with %q: got %d, want %d", c.method, c.path, c.token, got, c.status)
		}
	}
	stop()
	if status := <-ended; status != 0 {
		t.Errorf("stopped: status %d: %s", status, errOut.String())
	}
}

// TestDevServesTheInspector: without being asked, unless another program has the address.
func TestDevServesTheInspector(t *testing.T) {
	t.Parallel()
	var told text
	l, err := devCommand{}.listen(&told)
	bustest.OK(t, err)
	if l == nil { // another program of this machine has it
		like(t, "taken", told.String(), `not served: .*4280.* in use\.\n.*--serve 127\.0\.0\.1:PORT; --serve off`)
	} else {
		defer l.Close()
		if l.Addr().String() != inspectAddress {
			t.Errorf("listens on %s, want %s", l.Addr(), inspectAddress)
		}
		if second, err := (devCommand{}).listen(&told); second != nil || err != nil {
			t.Errorf("got %v (%v), want none: the address is taken", second, err)
		}
		like(t, "taken", told.String(), `not served: .*4280.* in use\.\n.*--serve 127\.0\.0\.1:PORT; --serve off`)
	}
	if l, err := (devCommand{Serve: "off"}).listen(io.Discard); l != nil || err != nil {
		t.Errorf("off: got %v (%v), want none", l, err)
	}
	other, err := net.Listen("tcp", "127.0.0.1:0")
	bustest.OK(t, err)
	defer other.Close()
	if _, err := (devCommand{Serve: other.Addr().String()}).listen(io.Discard); err == nil || !strings.Contains(err.Error(), "choose another address") {
		t.Errorf("an address that is asked for and taken: got %v, want an error", err)
	}
}

func TestDevServesWithAnAddress(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var out, errOut text
	ended := make(chan int, 1)
	go func() {
		ended <- Main(ctx, []string{"dev", "--dir", t.TempDir(), "--port", "0", "--serve", "127.0.0.1:0"}, nil, &out, &errOut)
	}()
	base := out.shows(t, `The inspector is at (http://[0-9.:]+)/`)[1]
	for _, path := range []string{"/", "/v1/caller"} {
		if got := asks(t, "", http.MethodGet, base+path, ""); got != http.StatusOK {
			t.Errorf("%s: got %d, want 200", path, got)
		}
	}
	stop()
	if status := <-ended; status != 0 {
		t.Errorf("stopped: status %d: %s", status, errOut.String())
	}
}

func TestProgramFileIsChecked(t *testing.T) {
	t.Parallel()
	no := file(t, "#!/bin/sh")
	for _, args := range [][]string{{"serve", "--tokens", file(t, "tokens: []"), "--wasm", no}, {"dev", "--dir", t.TempDir(), "--port", "0", "--serve", "127.0.0.1:0", "--wasm", no}} {
		var errOut text
		if status := Main(t.Context(), args, nil, io.Discard, &errOut); status != statusFailed || !strings.Contains(errOut.String(), "is no WebAssembly") {
			t.Errorf("%q: status %d, %q, want the file to be refused", args, status, errOut.String())
		}
	}
}
