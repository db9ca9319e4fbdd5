package mcp

// Servers get secrets by name, and new values without a restart of the bridge.

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/secrets"
)

// vault has one secret, of the pack crm and of tools that are no pack's.
type vault struct {
	value atomic.Pointer[string]
	asked atomic.Pointer[string] // for which pack
}

func (v *vault) Secret(_ context.Context, pack, name string) (string, error) {
	v.asked.Store(&pack)
	if name != "CRM_KEY" {
		return "", nil
	}
	return *v.value.Load(), nil
}

func (v *vault) set(value string) { v.value.Store(&value) }

func TestServersAreGivenSecrets(t *testing.T) {
	t.Parallel()
	over(t, stateful, func(t *testing.T, w *world) {
		v := &vault{}
		v.set("first-secret")
		w.secrets = secrets.Chain{v}
		s := w.config.Servers["peer"]
		if s.URL != "" {
			s.Headers["X-Token"] = "${secret:CRM_KEY}"
		} else {
			s.Env = append(s.Env, "GIVEN=${secret:CRM_KEY}", "LITERAL=${HOME}")
		}
		w.config.Servers["peer"] = s
		if got := w.unused().SecretNames(); !slices.Equal(got, []string{"CRM_KEY"}) {
			t.Errorf("names: got %v", got)
		}
		w.imports()
		shown := func(value string) string { return fmt.Sprintf("***** is %x", sha256.Sum256([]byte(value))) }
		w.want(w.call(t.Context(), "token", `{}`, true), "succeeded", "", shown("first-secret"))
		v.set("second-secret")
		w.want(w.call(t.Context(), "token", `{}`, true), "succeeded", "", shown("second-secret"))

		// A call in progress goes on with what it began with.
		ctx, withdraw := context.WithCancel(t.Context())
		hanging := make(chan bridge.Rehearsed, 1)
		go func() { hanging <- w.call(ctx, "hang", `{}`, false) }()
		w.until("the call hangs", func() bool { return countNotes(w.ledger, "hangs") == 1 })
		if s.URL != "" {
			v.set("third-secret")
			w.want(w.call(t.Context(), "token", `{}`, true), "succeeded", "", shown("third-secret"))
		}
		v.set("")
		r := w.call(t.Context(), "token", `{}`, true)
		w.want(r, "failed", "secret_missing", "")
		if !strings.Contains(r.Detail, "server peer") || !strings.Contains(r.Detail, "CRM_KEY") {
			t.Errorf("detail: got %q", r.Detail)
		}
		withdraw()
		<-hanging
		for _, secret := range []string{"first-secret", "second-secret", "third-secret"} {
			if strings.Contains(w.log.String(), secret) {
				t.Errorf("%s is in the log", secret)
			}
		}
	})
}

// TestNoServerStartsWithoutItsSecret: nothing is started, and the secret is
// requested for the pack.
func TestNoServerStartsWithoutItsSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "peer")
	w.imports()
	v := &vault{}
	v.set("")
	w.secrets = secrets.Chain{v}
	s := w.config.Servers["peer"]
	s.Env = append(s.Env, "GIVEN=${secret:CRM_KEY}")
	w.config.Servers["peer"] = s
	w.open()
	before := w.log.String()
	r, err := w.servers.Execute(t.Context(), executor.Call{
		ToolID: "crm.peer.token", Arguments: json.RawMessage(`{}`), Spaces: []executor.CallSpace{{Space: "crm", Kind: "pack"}},
	})
	if err != nil || r.Error == nil || r.Error.Code != "secret_missing" {
		t.Errorf("got %+v, %v", r.Error, err)
	}
	if pack := v.asked.Load(); pack == nil || *pack != "crm" {
		t.Errorf("asked for %v", pack)
	}
	if log := strings.TrimPrefix(w.log.String(), before); strings.Contains(log, "mcp_server_ready") {
		t.Errorf("a server was started: %s", log)
	}
	if _, err := w.servers.Import(t.Context()); err == nil || !strings.Contains(err.Error(), "CRM_KEY is missing") {
		t.Errorf("import: got %v", err)
	}
}

// unused returns servers of the config that are not used.
func (w *world) unused() *Servers {
	w.t.Helper()
	servers, err := New(w.config, nil, Options{Env: w.env, Secrets: w.secrets})
	must(w.t, err)
	return servers
}

// logLines is a log that keeps a bounded part of what it gets.
type logLines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text.Len() < 1<<20 {
		l.text.Write(p)
	}
	return len(p), nil
}

// says runs a program to its end with that secret, and returns its log and its
// last words. messages is read first.
func says(t *testing.T, secret, script string) (log, words string) {
	t.Helper()
	var lines logLines
	p, err := startProgram(&Server{Command: "/bin/sh", Args: []string{"-c", script}}, []string{"PATH=/usr/bin:/bin", "KEY=" + secret},
		secrets.NewRedactor(secret), slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, p.messages()); err != nil {
		t.Errorf("messages: %v", err)
	}
	<-p.drained
	p.stop()
	_, words = p.lastWords()
	lines.mu.Lock()
	defer lines.mu.Unlock()
	return lines.text.String(), words
}

// TestAttackSecretInLines: a secret of several lines is one secret, and a line
// that is cut inside a secret has none of it.
func TestAttackSecretInLines(t *testing.T) {
	t.Parallel()
	var body strings.Builder
	for i := range 6 {
		fmt.Fprintf(&body, "%x\n", sha256.Sum256([]byte{byte(i)}))
	}
	key := "-----BEGIN PRIVATE KEY-----\n" + body.String() + "-----END PRIVATE KEY-----"
	for name, script := range map[string]string{
		"stderr":             `echo before >&2; echo "$KEY" >&2; echo after >&2`,
		"indented, CRLF":     `echo "$KEY" | sed 's/^/    /; s/$/\r/' >&2`,
		"stdout":             `echo "$KEY"`,
		"base64":             `echo "$KEY" | base64 >&2`,
		"base64 in stdout":   `echo "$KEY" | base64 -w 100`,
		"at the cut of one":  `printf '%02000d' 0 >&2; echo "$KEY" | tr -d '\n' >&2`,
		"one line in stdout": `printf '%0200d' 0; echo "$KEY" | tr -d '\n'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log, words := says(t, key, script)
			encoded := base64.StdEncoding.EncodeToString([]byte(key + "\n"))
			for _, text := range []string{log, words} {
				for line := range strings.Lines(key + "\n" + encoded[:40] + "\n" + encoded[200:240] + "\n") {
					if piece := strings.TrimSpace(line); strings.Contains(text, piece[:20]) {
						t.Fatalf("%q is in the log: %.600q", piece, text)
					}
				}
			}
			if !strings.Contains(log, secrets.Mark) {
				t.Errorf("the log does not have what the program said: %q", log)
			}
		})
	}
}

// TestAttackEndlessLine: a server writes without a line break. It costs no memory.
// It measures the heap of this process, so it runs alone.
func TestAttackEndlessLine(t *testing.T) { //nolint:paralleltest // see above
	const written, heapMax = 300 << 20, 100 << 20
	var most atomic.Uint64
	done, ended := make(chan struct{}), make(chan struct{})
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	go func() {
		defer close(ended)
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most.Store(max(most.Load(), m.HeapInuse))
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	log, words := says(t, "s3cret-value-0123456789", fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x >&2; echo >&2; echo end >&2", written))
	close(done)
	<-ended
	if grown := int64(most.Load()) - int64(before.HeapInuse); grown > heapMax {
		t.Errorf("%d MiB of standard error in one line: the heap grew by %d MiB, want at most %d", written>>20, grown>>20, heapMax>>20)
	}
	if !strings.HasSuffix(words, "x\nend") || len(log) > 16<<10 {
		t.Errorf("got a log of %d bytes, last words %.40q; want the beginning of the line, and the end", len(log), words)
	}
}
