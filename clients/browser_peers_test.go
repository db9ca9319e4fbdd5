//go:build peers

package clients_test

// The client for TypeScript in a page.

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"testing"
)

// A page of another origin loads the built client as it is, asks, and streams the answer.
func TestPeersTypeScriptInChromium(t *testing.T) {
	t.Parallel()
	w := serve(t)
	reported := make(chan string, 1)
	reports := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		reported <- string(text)
	}))
	t.Cleanup(reports.Close)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	page := w.pages + "/testdata/page.html?" + url.Values{"url": {w.url}, "token": {w.token}, "report": {reports.URL}}.Encode()
	// The page is this test's own, and the sandbox needs rights that containers lack.
	chromium := exec.CommandContext(ctx, "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--user-data-dir="+filepath.Join(dir, "chromium"), page)
	if err := chromium.Start(); err != nil {
		t.Fatalf("%v: make check-web installs it", err)
	}
	t.Cleanup(func() {
		cancel()
		_ = chromium.Wait()
	})
	select {
	case got := <-reported:
		if want := "The tool: rain in Bergen completed"; got != want {
			t.Errorf("the page was told %q, want %q", got, want)
		}
	case <-ctx.Done():
		t.Fatal("the page reported nothing")
	}
}
