package cli

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/refold/refold/internal/bus/bustest"
)

var served = regexp.MustCompile(`at (http://[0-9.:]+);`)

// TestServeNeedsTokensAndTLS: a server that anybody could use, or read along, does not
// start.
func TestServeNeedsTokensAndTLS(t *testing.T) {
	t.Parallel()
	tokens := file(t, "tokens: []")
	for want, args := range map[string][]string{
		"give --tokens":         {"serve"},
		"is not loopback":       {"serve", "--tokens", tokens, "--listen", "0.0.0.0:0"},
		"go together":           {"serve", "--tokens", tokens, "--tls-cert", tokens},
		"it is an address":      {"serve", "--tokens", tokens, "--listen", "here"},
		"is none of read":       {"serve", "token", "ann", "--rights", "write"},
		"is not 1 to 16 of":     {"serve", "token", "ann", "--scope", "Acme"},
		"is a loopback address": {"dev", "--dir", t.TempDir(), "--port", "0", "--serve", "0.0.0.0:0"},
	} {
		var out, errOut text
		if status := Main(t.Context(), args, strings.NewReader(""), &out, &errOut); status != statusUsage || !strings.Contains(errOut.String(), want) {
			t.Errorf("%q: status %d, %q, want %q", args, status, errOut.String(), want)
		}
	}
}

// TestServe: a token that refold serve token makes opens the server that refold serve
// starts, with the agents of a directory.
func TestServe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	row, told := w.does(0, "serve", "token", "ann", "--rights", "read,operate")
	token := told[strings.LastIndexByte(strings.TrimSpace(told), ' ')+1:]
	tokens := file(t, "tokens:\n"+row)
	agents := t.TempDir()
	bustest.OK(t, os.WriteFile(filepath.Join(agents, "helper.yaml"), []byte("model: p/m\nsystem: You help.\nconfig:\n  turns_max: 3\n"), 0o600))
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	c := &command{ended: make(chan int, 1)}
	go func() {
		c.ended <- Main(ctx, []string{"--nats", w.node.URL(), "serve", "--tokens", tokens, "--agents", agents, "--listen", "127.0.0.1:0"}, strings.NewReader(""), &c.out, &c.err)
	}()
	var url string
	bustest.Until(t, "the server serves", func() bool {
		found := served.FindStringSubmatch(c.out.String())
		if found != nil {
			url = found[1]
		}
		return found != nil
	})
	for token, want := range map[string]int{strings.TrimSpace(token): http.StatusOK, "x": http.StatusUnauthorized} {
		r, err := http.NewRequestWithContext(ctx, http.MethodPut, url+"/v1/sessions/s9/agent", strings.NewReader(`{"agent": "helper"}`))
		bustest.OK(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		got, err := http.DefaultClient.Do(r)
		bustest.OK(t, err)
		if got.Body.Close(); got.StatusCode != want {
			t.Errorf("token %s: got %d, want %d: %s", token, got.StatusCode, want, c.err.String())
		}
	}
	http.DefaultClient.CloseIdleConnections()
	cancel()
	if status := <-c.ended; status != 0 {
		t.Errorf("stopped: status %d, %s", status, c.err.String())
	}
}

// TestFaultyAgentsAreRefusedWithTheirPlace: file, line and column.
func TestFaultyAgentsAreRefusedWithTheirPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tokens := file(t, "tokens: []")
	for text, want := range map[string]string{
		"model: p/m\nsytem: x\n":                 `[2:1] unknown field "sytem"; did you mean "system"?`,
		"system: x\nmodel: gpt\n":                "helper.yaml:2:8: model: ",
		"model: p/m\nprofile: none-such\n":       "helper.yaml:2:10: ",
		"model: p/m\nconfig:\n  turns_max: -1\n": "helper.yaml:3:",
		"model: p/m\nconfig:\n  model: x\n":      "helper.yaml:3:10: config.model: the file says it outside",
	} {
		agents := t.TempDir()
		bustest.OK(t, os.WriteFile(filepath.Join(agents, "helper.yaml"), []byte(text), 0o600))
		if _, told := w.does(statusFailed, "serve", "--tokens", tokens, "--agents", agents, "--listen", "127.0.0.1:0"); !strings.Contains(told, want) {
			t.Errorf("%q: got %s, want %s", text, told, want)
		}
	}
}
