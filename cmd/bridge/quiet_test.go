package main

import (
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm/endpoint"
	"github.com/refold/refold/internal/llm/gemini"
)

// TestLinesOfGooglesLibraryAreDropped: the library logs a stream that breaks off,
// through the standard logger; other lines stay.
func TestLinesOfGooglesLibraryAreDropped(t *testing.T) { //nolint:paralleltest // it sets the standard logger
	var out, unquiet strings.Builder
	before, flags := log.Writer(), log.Flags()
	t.Cleanup(func() { log.SetOutput(before); log.SetFlags(flags) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, "data: {}\n\ndata: ")
	}))
	defer server.Close()
	m, err := gemini.New(endpoint.Config{BaseURL: server.URL, Key: "key"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	breaks := func() {
		t.Helper()
		if _, err := m.Generate(t.Context(), executor.Request{Model: "m", Messages: []executor.Message{{Role: "user", Text: "hi"}}}, func(string) {}); err == nil {
			t.Error("a stream that breaks off is an answer")
		}
	}
	log.SetOutput(&unquiet)
	breaks()
	quieten(log.Default(), &out)
	breaks()
	log.Print("kept") //nolint:forbidigo // what is tested
	if got := out.String(); !strings.HasSuffix(got, ": kept\n") || strings.Count(got, "\n") != 1 || !strings.Contains(unquiet.String(), "unexpected EOF") {
		t.Errorf("got %q, and unquieted %q", got, unquiet.String())
	}
}
