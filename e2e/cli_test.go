package e2e_test

// The command line as people use it: against `refold dev`, with plain errors.

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// startDev starts `refold dev` and returns its URL, and the context of its administrator.
func startDev(t *testing.T, args ...string) (url, admin string) {
	t.Helper()
	_, url, admin = startDevWith(t, nil, args...)
	return url, admin
}

// startDevWith is startDev with more in the environment.
func startDevWith(t *testing.T, env []string, args ...string) (d *daemon, url, admin string) {
	t.Helper()
	d = startDaemonWith(t, env, "refold", append([]string{"dev", "--dir", t.TempDir(), "--port", "0"}, args...)...)
	find := regexp.MustCompile(`(?s)run at (\S+).*NATS_CONTEXT='(.+?)'`)
	until(t, 30*time.Second, "the banner of refold dev", func() bool {
		if m := find.FindStringSubmatch(d.out.String()); m != nil {
			url, admin = m[1], m[2]
		}
		return url != ""
	})
	return d, url, admin
}

// runOnce runs refold and wants a status.
func runOnce(t *testing.T, want int, stdin []byte, args ...string) (stdout, stderr string) {
	t.Helper()
	stdout, stderr, status := run(t, time.Minute, stdin, "refold", args...)
	if status != want {
		t.Fatalf("refold %s: status %d, want %d\n%s%s", strings.Join(args, " "), status, want, tail(stdout, 2000), tail(stderr, 2000))
	}
	return stdout, stderr
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	url, admin := startDev(t)
	out, _ := runOnce(t, 0, nil, "--context", admin, "run", "s1", "hello there")
	if !strings.Contains(out, "hello there") || strings.Count(out, "hello there") != 1 {
		t.Errorf("run prints %q", out)
	}
	out, _ = runOnce(t, 0, []byte("from a pipe"), "--context", admin, "run", "s1")
	if !strings.Contains(out, "from a pipe") {
		t.Errorf("run from a pipe prints %q", out)
	}
	// A program without a key is a client.
	if out, _ = runOnce(t, 0, nil, "--nats", url, "run", "s0", "no key"); !strings.Contains(out, "no key") {
		t.Errorf("run without a key prints %q", out)
	}
	if _, errOut := runOnce(t, 1, nil, "--nats", url, "replay", "s1"); !strings.Contains(errOut, "connect as one that may (--context, NATS_CONTEXT)") {
		t.Errorf("replay without a key prints %q", errOut)
	}
	// What was asked by a plain publish is in the same session.
	nc := connect(t, url)
	heard := listen(t, nc, "refold.out.s1")
	publish(t, nc, "refold.in.s1", []byte(`{"type":"RunRequested","data":{"input":{"text":"hi"}}}`))
	waitFinished(t, heard, 1)

	out, _ = runOnce(t, 0, nil, "--context", admin, "view", "s1")
	var view struct {
		Session string `json:"session"`
		Hash    string `json:"hash"`
		Last    struct {
			Number int `json:"number"`
		} `json:"last"`
	}
	if err := json.Unmarshal([]byte(out), &view); err != nil || view.Session != "s1" || view.Last.Number != 3 {
		t.Errorf("view: %v %+v", err, view)
	}
	out, _ = runOnce(t, 0, nil, "--context", admin, "replay", "s1", "--verify")
	if !strings.Contains(out, "replay: identical") || !strings.Contains(out, view.Hash) {
		t.Errorf("replay prints %q, the view's hash is %s", out, view.Hash)
	}
	if again, _ := runOnce(t, 0, nil, "--context", admin, "replay", "s1", "--verify"); again != out {
		t.Errorf("replayed twice: %q and %q", out, again)
	}
	out, _ = runOnce(t, 0, nil, "--context", admin, "replay", "--all", "--verify")
	if strings.Count(out, "replay: identical") != 2 {
		t.Errorf("replay --all prints %q", out)
	}
	if out, _ = runOnce(t, 0, nil, "--context", admin, "replay", "s1", "--to", "2"); !strings.Contains(out, "1 events") {
		t.Errorf("replay --to 2 prints %q", out)
	}
	if out, _ = runOnce(t, 0, nil, "--context", admin, "replay", "s1", "--export"); !strings.Contains(out, "> RunFinished run 3 completed") {
		t.Errorf("replay --export prints %q", out)
	}
}

// TestDevAsksAProvider: the daemon that calls a provider's model connects as
// its own user, whichever the environment names. The provider refuses the key.
func TestDevAsksAProvider(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 16)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked <- string(body)
		http.Error(w, `{"error":{"message":"no such key","code":"invalid_api_key"}}`, http.StatusUnauthorized)
	}))
	t.Cleanup(provider.Close)
	env := []string{"OPENAI_API_KEY=sk-none", "OPENAI_BASE_URL=" + provider.URL, "NATS_CONTEXT=/nowhere/context.json", "NATS_CREDS=/nowhere/creds"}
	d, _, admin := startDevWith(t, env, "--model", "openai-chat:some-model")
	defer func() { // killed, it would leave the program that asks
		if err := d.drain(time.Minute); err != nil {
			t.Error(err)
		}
	}()
	_, errOut := runOnce(t, 1, nil, "--context", admin, "run", "s1", "hi")
	if !strings.Contains(errOut, "answered 401") {
		t.Errorf("the run prints %q", errOut)
	}
	select {
	case body := <-asked:
		if !strings.Contains(body, "some-model") {
			t.Errorf("asked %s", body)
		}
	default:
		t.Error("nobody asked the provider")
	}
}

// TestLargeInputBecomesABlob: two MiB of text don't fit an event, and the run
// gets all of it.
func TestLargeInputBecomesABlob(t *testing.T) {
	t.Parallel()
	_, admin := startDev(t)
	text := bytes.Repeat([]byte("sixteen letters\n"), 2<<20/16)
	out, _ := runOnce(t, 0, text, "--context", admin, "run", "big")
	if len(out) < len(text) {
		t.Errorf("the echo of %d bytes has %d", len(text), len(out))
	}
	runOnce(t, 0, nil, "--context", admin, "replay", "big", "--verify")
}

func TestPlainErrors(t *testing.T) {
	t.Parallel()
	url := startNATS(t)
	for _, c := range []struct {
		name   string
		status int
		args   []string
		want   string
	}{
		{"no server", 1, []string{"--nats", "nats://127.0.0.1:1", "view", "s1"}, "no NATS server answers at nats://127.0.0.1:1"},
		{"nobody answers", 1, []string{"--nats", url, "view", "s1"}, "is a session-actor running?"},
		{"bad session name", 2, []string{"--nats", url, "run", "no such name", "hi"}, "use A-Z a-z 0-9 _ -"},
		{"typo", 2, []string{"rnu", "s1", "hi"}, "run"},
		{"nothing to decode", 2, []string{"decode"}, "nothing to decode"},
		{"replay of nothing", 2, []string{"replay"}, "name one session, or give --all"},
		{"model without provider", 2, []string{"run", "s1", "hi", "--model", "m"}, "go together"},
		{"no such stream", 2, []string{"streams", "--json", "REFOLD_NOTHING"}, "REFOLD_NOTHING"},
		{"no such model", 1, []string{"demo", "--model", "gpt"}, "dev --model KIND:NAME"},
		{"no such recording", 1, []string{"demo", "--model", "recorded:nowhere.jsonl"}, "nowhere.jsonl"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, errOut := runOnce(t, c.status, nil, c.args...)
			if !strings.Contains(errOut, c.want) {
				t.Errorf("got %q, want %q in it", errOut, c.want)
			}
		})
	}
}

func TestDaemonsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	old := oldServer(t)
	typo := writeFile(t, "config.yaml", "natz: here\n")
	record := writeFile(t, "install.json", `{"v":1,"rules":1,"tools":[],"policy":{"ingress":["wings"]}}`)
	for _, c := range []struct {
		name    string
		program string
		status  int
		args    []string
		want    string
	}{
		{"no server", "session-actor", 1, []string{"--nats", "nats://127.0.0.1:1"}, "no NATS server answers"},
		{"no server", "bridge", 1, []string{"--nats", "nats://127.0.0.1:1", "--model", "scripted:echo"}, "no NATS server answers"},
		{"old server", "session-actor", 1, []string{"--nats", old}, "2.14"},
		{"old server", "bridge", 1, []string{"--nats", old, "--model", "scripted:echo"}, "2.14"},
		{"typo in config", "session-actor", 2, []string{"--config", typo}, "natz"},
		{"typo in config", "bridge", 2, []string{"--config", typo}, "natz"},
		{"bad record", "session-actor", 1, []string{"--install", record}, "policy.ingress[0]"},
	} {
		t.Run(c.program+" "+c.name, func(t *testing.T) {
			t.Parallel()
			_, errOut, status := run(t, time.Minute, nil, c.program, c.args...)
			if status != c.status || !strings.Contains(errOut, c.want) {
				t.Errorf("status %d, want %d; got %q, want %q in it", status, c.status, errOut, c.want)
			}
		})
	}
}

// TestDecode: decode converts messages of the streams to JSON.
func TestDecode(t *testing.T) {
	t.Parallel()
	packed, err := hex.DecodeString("82a166a172a36e756d07")
	if err != nil {
		t.Fatal(err)
	}
	out, _ := runOnce(t, 0, packed, "decode")
	var got map[string]any
	if err := json.Unmarshal([]byte(out), &got); err != nil || got["num"] != float64(7) {
		t.Errorf("decode: %v %q", err, out)
	}
	path := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(path, []byte{0xc1}, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errOut := runOnce(t, 1, nil, "decode", path); !strings.Contains(errOut, "decode") {
		t.Errorf("decode of bad bytes says %q", errOut)
	}
}
