package e2e_test

// The main job: two daemons, a server on disk, and a plain NATS client that
// publishes JSON and receives RunFinished; and the programs that newcomers try
// first.

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
)

// finished is the data of RunFinished, as a plain client reads it.
type finished struct {
	OverBudget *session.OverBudget `json:"over_budget"`
	Run        int                 `json:"run"`
	Lifecycle  string              `json:"lifecycle"`
	Code       string              `json:"code"`
	Output     struct {
		Text string `json:"text"`
		Blob string `json:"blob"`
		Size int    `json:"size"`
	} `json:"output"`
}

// isIn reads the end of a run from a message of notices, and reports whether it has
// one.
func (f *finished) isIn(message []byte) bool {
	for line := range bytes.Lines(message) {
		var n notice
		if json.Unmarshal(line, &n) == nil && n.Type == session.NoticeRunFinished {
			return json.Unmarshal(n.Data, f) == nil
		}
	}
	return false
}

// runRequested is what `nats pub refold.in.<sid>` would send.
func runRequested(t *testing.T, text string) []byte {
	t.Helper()
	payload, err := json.Marshal(map[string]any{"type": "RunRequested", "data": map[string]any{
		"input": map[string]any{"text": text}, "config": map[string]any{"provider": "scripted", "model": "echo"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

// waitFinished waits for the nth RunFinished.
func waitFinished(t *testing.T, e *ear, n int) finished {
	t.Helper()
	until(t, time.Minute, "RunFinished", func() bool { return e.count("RunFinished") >= n })
	var f finished
	for _, h := range e.all() {
		if h.Type == "RunFinished" {
			if n--; n == 0 {
				if err := json.Unmarshal(h.Data, &f); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return f
}

func TestDaemonsDoTheJob(t *testing.T) {
	t.Parallel()
	url, work := startNATS(t), t.TempDir()
	actor := startDaemon(t, "session-actor", "--nats", url)
	bridge := startDaemon(t, "bridge", "--nats", url, "--model", "scripted:echo", "--tools", "host", "--workdir", work)
	nc := connect(t, url)
	heard := listen(t, nc, "refold.out.s1")
	publish(t, nc, "refold.in.s1", runRequested(t, "hello there"))
	if got := waitFinished(t, heard, 1); got.Lifecycle != "completed" || !strings.Contains(got.Output.Text, "hello there") {
		t.Errorf("first run: %+v", got)
	}
	// Real tools: a shell in the session's own directory.
	publish(t, nc, "refold.in.s1", runRequested(t, "run echo written > note.txt && cat note.txt"))
	if got := waitFinished(t, heard, 2); got.Lifecycle != "completed" || !strings.Contains(got.Output.Text, "written") {
		t.Errorf("second run: %+v", got)
	}
	var found []string
	err := filepath.WalkDir(work, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Name() == "note.txt" {
			found = append(found, path)
		}
		return err
	})
	if err != nil || len(found) != 1 {
		t.Errorf("note.txt: found %v (%v)", found, err)
	}
	verifyAll(t, url)
	for _, d := range []*daemon{bridge, actor} {
		if err := d.drain(30 * time.Second); err != nil {
			t.Errorf("%s after SIGTERM: %v\n%s", d.name, err, d.out)
		}
	}
}

// TestRollingRestart: a second of each daemon is started and the first ones are
// drained; runs continue without a gap.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	url, work := startNATS(t), t.TempDir()
	bridgeArgs := []string{"--nats", url, "--model", "scripted:echo", "--tools", "host", "--workdir", work}
	actor, bridge := startDaemon(t, "session-actor", "--nats", url), startDaemon(t, "bridge", bridgeArgs...)
	nc := connect(t, url)
	heard := listen(t, nc, "refold.out.s1")
	publish(t, nc, "refold.in.s1", runRequested(t, "one"))
	waitFinished(t, heard, 1)
	startDaemon(t, "session-actor", "--nats", url)
	startDaemon(t, "bridge", bridgeArgs...)
	for i := range 10 {
		publish(t, nc, "refold.in.s1", runRequested(t, "again"))
		if i == 3 {
			for _, d := range []*daemon{actor, bridge} {
				if err := d.drain(30 * time.Second); err != nil {
					t.Errorf("%s after SIGTERM: %v\n%s", d.name, err, d.out)
				}
			}
		}
	}
	if got := waitFinished(t, heard, 11); got.Lifecycle != "completed" {
		t.Errorf("last run: %+v", got)
	}
	verifyAll(t, url)
}

// TestDemo: the demo works on a server with roles that refuses it nothing.
func TestDemo(t *testing.T) {
	t.Parallel()
	out, errOut, status := run(t, time.Minute, nil, "refold", "demo", "--verbose")
	if status != 0 {
		t.Fatalf("status %d\n%s%s", status, out, errOut)
	}
	if !strings.Contains(errOut, "lane_owned") || strings.Contains(errOut, "nats_permission_denied") {
		t.Errorf("want logs, and none of a refusal:\n%s", errOut)
	}
	for _, want := range []string{
		`group 1 of 1  read_file`, `group 1 of 1  grep`, `succeeded apply_patch r1t3c0`, `succeeded shell r1t4c0 \(\d+ ms\): exit status 0`,
		`replay: identical  session demo  12 events  11 effects compared  state [0-9a-f]{64}`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("the demo doesn't print %q:\n%s", want, out)
		}
	}
}

// TestOwnRecordings plays all of the project's own recordings.
func TestOwnRecordings(t *testing.T) {
	t.Parallel()
	playRecording(t, "../testdata/recordings/warehouse.jsonl", "6 of 6", "")
	playRecording(t, "../testdata/recordings/warehouse.jsonl", "6 of 6", "get_*,list_*,search_*,count_*")
}

// TestNamedRecordings plays the recordings of an outside folder, if one is
// named.
func TestNamedRecordings(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("REFOLD_RECORDINGS")
	if dir == "" {
		t.Log("REFOLD_RECORDINGS is not set: no recordings but the project's own")
		return
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings in %s: %v", dir, err)
	}
	for _, file := range files {
		playRecording(t, file, "", "get_*,search_*,list_*,calculate,think")
	}
}

// playRecording plays every conversation of a file and checks the summary.
func playRecording(t *testing.T, file, ended, retrySafe string) {
	t.Helper()
	args := []string{"demo", "--model", "recorded:" + file, "--all"}
	if retrySafe != "" {
		args = append(args, "--retry-safe", retrySafe)
	}
	out, errOut, status := run(t, 5*time.Minute, nil, "refold", args...)
	summary := regexp.MustCompile(`ended (\d+) of (\d+) conversations as recorded; ledger (\d+) of (\d+) calls, each once; replay: identical`)
	m := summary.FindStringSubmatch(out)
	if status != 0 || m == nil || m[1] != m[2] || m[3] != m[4] {
		t.Fatalf("%s: status %d\n%s%s", filepath.Base(file), status, tail(out, 3000), tail(errOut, 2000))
	}
	if ended != "" && m[1]+" of "+m[2] != ended {
		t.Errorf("%s: ended %s of %s, want %s", filepath.Base(file), m[1], m[2], ended)
	}
	t.Logf("%s: %s", filepath.Base(file), m[0])
}
