package cli

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/bus/bustest"
)

// TestRetain: a dry run says what a pass would do and changes nothing; a pass archives and
// deletes; a held session is reported; a policy with a typo is refused.
func TestRetain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, sid := range []string{"acme-1", "acme-2", "other"} {
		_, err := w.Run(w.ctx, sid, "hello", client.RunOptions{})
		bustest.OK(t, err)
		_, err = w.CloseSession(w.ctx, sid, "")
		bustest.OK(t, err)
		_, err = w.View(w.ctx, sid)
		bustest.OK(t, err)
	}
	w.does(0, "hold", "acme-2")
	dir := t.TempDir()
	policy := file(t, fmt.Sprintf("rules: [{prefix: acme-, closed_after: 0s, delete_after: 0s, archive_to: %s}]", dir))
	out, _ := w.does(0, "retain", "--policy", policy, "--dry-run")
	if !strings.Contains(out, "would be deleted\n") || !strings.Contains(out, "kept: it is held") || !strings.Contains(out, "2 sessions looked at: 2 would be archived, 1 would be deleted, 1 held, 0 failed\n") || strings.Contains(out, "other") {
		t.Errorf("dry run: %s", out)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) > 0 {
		t.Errorf("the dry run has written %v (%v)", left, err)
	}
	out, _ = w.does(0, "retain", "--policy", policy)
	if !strings.Contains(out, "archived: "+filepath.Join(dir, "acme-1.refold")) || !strings.Contains(out, ", 1 deleted, 1 held, 0 failed; ") {
		t.Errorf("a pass: %s", out)
	}
	if out, _ := w.does(0, "retain", "--policy", policy, "--json"); !strings.Contains(out, `"held":1,"failed":0`) || strings.Contains(out, "acme-1") {
		t.Errorf("a second pass: %s", out)
	}
	if out, _ := w.does(0, "replay", filepath.Join(dir, "acme-1.refold")); !strings.Contains(out, "acme-1") {
		t.Errorf("replay of the archive: %s", out)
	}
	if _, told := w.does(statusFailed, "retain", "--policy", file(t, "rules: [{prefx: a}]")); !strings.Contains(told, `did you mean "prefix"?`) {
		t.Errorf("a typo: %s", told)
	}
	for _, args := range [][]string{{"retain"}, {"retain", "--policy", policy, "--every", "1h", "--dry-run"}, {"retain", "--policy", policy, "--http", "127.0.0.1:0"}} {
		w.does(statusUsage, args...)
	}
}

// TestRetainGoesOn: with --every it serves metrics, and makes passes until it is told to
// end.
func TestRetainGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.Run(w.ctx, "s1", "hello", client.RunOptions{})
	bustest.OK(t, err)
	_, err = w.CloseSession(w.ctx, "s1", "")
	bustest.OK(t, err)
	_, err = w.View(w.ctx, "s1")
	bustest.OK(t, err)
	policy := file(t, "rules: [{closed_after: 0s, delete_after: 0s}]")
	c := w.begin("", "retain", "--policy", policy, "--every", "100ms", "--http", "127.0.0.1:0")
	bustest.Until(t, "two passes", func() bool {
		return strings.Contains(c.err.String(), "deleted=1") && strings.Contains(c.err.String(), "deleted=0")
	})
	address, _ := strings.CutSuffix(strings.TrimPrefix(c.out.String(), "Metrics: "), "/metrics\n")
	for path, want := range map[string]string{"metrics": `refold_retain_sessions_total{outcome="deleted"} 1`, "readyz": `{"ready":true}`} {
		answer, err := http.Get(address + "/" + path) //nolint:noctx // of this process
		bustest.OK(t, err)
		body, err := io.ReadAll(answer.Body)
		bustest.OK(t, err)
		bustest.OK(t, answer.Body.Close())
		if !strings.Contains(string(body), want) {
			t.Errorf("/%s: %s, want %s", path, body, want)
		}
	}
	bustest.OK(t, os.WriteFile(policy, []byte("rules: []"), 0o600))
	bustest.Until(t, "a pass that fails", func() bool {
		return strings.Contains(c.err.String(), "level=ERROR msg=retention_failed") && strings.Contains(c.err.String(), "give 1 to 256")
	})
	c.stop()
	w.end(c, 0)
}
