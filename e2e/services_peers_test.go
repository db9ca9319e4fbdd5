//go:build peers

package e2e_test

// Tests that need npm: see make check-peers.

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestPeersServiceInJavaScript runs the example in JavaScript, with installed
// packages.
func TestPeersServiceInJavaScript(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "examples", "service-js")
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	s := startServiceSystem(t, dir)
	rates := exec.Command(node, "rates.js", s.url)
	out := &output{}
	rates.Dir, rates.Stdout, rates.Stderr = dir, out, out
	if err := rates.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = rates.Process.Kill()
		_ = rates.Wait()
		if t.Failed() {
			t.Logf("rates.js:\n%s", tail(out.String(), 4000))
		}
	})
	s.playService(dir, "rates.book", "rates.convert")
	s.wantCalls("s1", "rates_convert", "rates_convert", "rates_book")
}
