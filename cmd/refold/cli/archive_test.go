package cli

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refold/refold/internal/bus/bustest"
)

// offline runs a command without a server: the address refuses connections.
func offline(t *testing.T, want int, args ...string) (out, errOut string) {
	t.Helper()
	var o, e text
	if status := Main(t.Context(), append([]string{"--nats", "nats://127.0.0.1:1"}, args...), strings.NewReader(""), &o, &e); status != want {
		t.Fatalf("%q: status %d, want %d: %q %q", args, status, want, o.String(), e.String())
	}
	return o.String(), e.String()
}

// TestArchiveIsReadWithoutAServer: the commands print the same for a session and for its
// archive, and the same hash.
func TestArchiveIsReadWithoutAServer(t *testing.T) {
	t.Parallel()
	w, dir := newWorld(t), t.TempDir()
	long := strings.Repeat("a text that is stored as a blob. ", 1<<13)
	w.ended("s1", long, "hello")
	w.ended("s2", "hi", "you")
	name := filepath.Join(dir, "s1.refold")
	told, errOut := w.does(statusFailed, "archive", "s1", "nobody", "s2", "--to", dir)
	like(t, "archive", told, `^[0-9a-f]{64}  s1  2 events, 1 blob  .*/s1\.refold, \d+ bytes\n[0-9a-f]{64}  s2  2 events, 0 blobs  .*/s2\.refold, \d+ bytes\n$`)
	like(t, "archive", errOut, `^refold: archive session nobody: the log holds no event of this session\n$`)
	told, _ = w.does(0, "archive", "s1", "--to", dir)
	like(t, "again", told, `, there already\n$`)

	live, _ := w.does(0, "replay", "s1")
	if got, _ := offline(t, 0, "replay", name); got != live {
		t.Errorf("replay: got %q, want %q", got, live)
	}
	for _, args := range [][]string{{"transcript"}, {"transcript", "--json"}, {"log", "--json"}, {"log"}, {"replay", "--export"}, {"replay", "--events"}, {"prompt"}} {
		want, _ := w.does(0, append(args, "s1")...)
		if got, _ := offline(t, 0, append(args, name)...); got != want || want == "" {
			t.Errorf("%v: got %.300q, want %.300q", args, got, want)
		}
	}
	out, _ := offline(t, 0, "verify", name)
	like(t, "verify", out, `^verify: identical  1 sessions, 0 differ  2 events`)
	page := filepath.Join(dir, "s1.html")
	_, told = offline(t, 0, "export", name, "--html", "--output", page)
	like(t, "export", told, `^wrote .*: 2 events of session s1, the states after 2 of them\n`)
	for want, args := range map[string][]string{
		"can't go on":                 {"verify", name, "--quarantine"},
		"is for sessions of a server": {"prompt", name, "--window"},
	} {
		if _, errOut := offline(t, statusUsage, args...); !strings.Contains(errOut, want) {
			t.Errorf("%v: got %q, want %q", args, errOut, want)
		}
	}
	if _, errOut := offline(t, statusFailed, "replay", filepath.Join(dir, "none.refold")); !strings.Contains(errOut, "no such file") {
		t.Errorf("a missing file: %q", errOut)
	}
	whole, err := os.ReadFile(name)
	bustest.OK(t, err)
	bustest.OK(t, os.WriteFile(name, whole[:len(whole)-3], 0o600))
	if _, errOut := offline(t, statusFailed, "replay", name); !strings.Contains(errOut, "s1.refold: it is truncated") {
		t.Errorf("a truncated file: %q", errOut)
	}
	if _, errOut := w.does(statusFailed, "archive", "s1", "--to", dir); !strings.Contains(errOut, "move it away") {
		t.Errorf("a truncated file in the way: %q", errOut)
	}
}

// TestInspectShowsAnArchive without a server.
func TestInspectShowsAnArchive(t *testing.T) {
	t.Parallel()
	w, dir := newWorld(t), t.TempDir()
	w.ended("s1", "hi", "hello")
	w.does(0, "archive", "s1", "--to", dir)
	live, err := w.ViewNow(w.ctx, "s1")
	bustest.OK(t, err)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var out, errOut text
	ended := make(chan int, 1)
	go func() {
		ended <- Main(ctx, []string{"inspect", "--file", filepath.Join(dir, "s1.refold")}, strings.NewReader(""), &out, &errOut)
	}()
	at := out.shows(t, `(http://127\.0\.0\.1:\d+)/s/s1:`)[1]
	for path, want := range map[string]string{
		"/s/s1":                         "<!doctype html>",
		"/v1/sessions/s1":               live.Hash,
		"/v1/sessions/s1/transcript":    "hello",
		"/v1/sessions/s1/events":        `"events":[`,
		"/v1/sessions/s1/proof":         live.Hash,
		"/v1/sessions?all=true&name=s1": `"s1"`,
		"/v1/sessions/s1/timeline":      "r1t1",
		"/v1/sessions/s2":               "there is no such session",
	} {
		r, err := http.Get(at + path) //nolint:noctx // the server ends with the test
		bustest.OK(t, err)
		body, err := io.ReadAll(r.Body)
		bustest.OK(t, err)
		r.Body.Close()
		if !strings.Contains(string(body), want) {
			t.Errorf("%s: status %d, %.400s; want %s", path, r.StatusCode, body, want)
		}
	}
	r, err := http.Post(at+"/v1/sessions/s1/runs", "application/json", strings.NewReader(`{"input":"more"}`)) //nolint:noctx // as above
	bustest.OK(t, err)
	body, _ := io.ReadAll(r.Body)
	r.Body.Close()
	if r.StatusCode < 400 {
		t.Errorf("a run of an archive: status %d, %s", r.StatusCode, body)
	}
	stop()
	if status := <-ended; status != 0 && status != statusInterrupted {
		t.Errorf("inspect: status %d, %q", status, errOut.String())
	}
	http.DefaultClient.CloseIdleConnections()
}
