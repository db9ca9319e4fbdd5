package main

// Flags, environment and config file: which wins, and what is refused. The
// tests use no network.

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/tools/sandbox"
)

// A package that genai imports starts a goroutine when it is loaded, and never
// ends it.
func TestMain(m *testing.M) {
	sandbox.Child()
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

func write(t *testing.T, name, content string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	bustest.OK(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestFlagsPrecedeEnvironmentAndFile(t *testing.T) {
	t.Parallel()
	file := write(t, "bridge.yaml", `
nats: nats://file:1
creds: /file
prefix: filed
replicas: 3
provision: false
model: [openai, "local=scripted:echo"]
openai-whole: true
grace: 3s
concurrency: 4
`)
	env := settings.Environment{"NATS_URL": "nats://env:1", "NATS_CREDS": "/env", "REFOLD_PREFIX": ""}
	args := []string{"--config", file, "--creds", "/flag", "--concurrency", "7"}
	f, done, err := parse(args, env, io.Discard, io.Discard)
	if err != nil || done {
		t.Fatalf("got %v, done %v", err, done)
	}
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"a flag wins over all", f.Creds, "/flag"},
		{"a flag wins over the file", f.Concurrency, 7},
		{"the environment wins over the file", f.NATS, "nats://env:1"},
		{"an empty variable is none", f.Prefix, "filed"},
		{"the file wins over a default", f.Replicas, 3},
		{"the file can say no", f.Provision, false},
		{"and yes", f.OpenAIWhole, true},
		{"durations are text", f.Grace, 3 * time.Second},
		{"lists are lists", slices.Equal(f.Models, []string{"openai", "local=scripted:echo"}), true},
		{"what nobody says has a default", f.Name, "bridge"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %v, want %v", c.what, c.got, c.want)
		}
	}
	f, _, err = parse([]string{"--model", "openai", "--model", "scripted:a,b"}, nil, io.Discard, io.Discard)
	if err != nil || !slices.Equal(f.Models, []string{"openai", "scripted:a,b"}) || f.Prefix != "refold" || !f.Provision || f.Grace != 20*time.Second {
		t.Errorf("defaults: got %+v, %v", f, err)
	}
}

func TestArgumentsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		args   []string
		config string
		want   []string
	}{
		{name: "nothing to serve", want: []string{"--model", "--tools", "--spaces"}},
		{name: "unknown flag", args: []string{"--moodel", "x"}, want: []string{"--moodel"}},
		{name: "typo in the file", config: "moodel: [openai]", want: []string{"moodel", "unknown field"}},
		{name: "wrong type in the file", config: "replicas: many", want: []string{"replicas"}},
		{name: "no YAML", config: "{", want: []string{"--config"}},
		{name: "no config file", args: []string{"--config", "/none.yaml"}, want: []string{"/none.yaml"}},
		{name: "host without workdir", args: []string{"--tools", "host"}, want: []string{"--workdir"}},
		{name: "workdir without host", args: []string{"--model", "openai", "--workdir", "x"}, want: []string{"--workdir"}},
		{name: "recorded tools without ledger", args: []string{"--tools", "recorded:x"}, want: []string{"--ledger"}},
		{name: "several at once", args: []string{"--tools", "host", "--concurrency", "0", "--replicas", "9"}, want: []string{"--workdir", "--concurrency", "--replicas"}},
		{name: "durability", args: []string{"--model", "openai", "--durability", "never"}, want: []string{"--durability", "always"}},
		{name: "monitoring address", args: []string{"--model", "openai", "--monitor", "nats://a"}, want: []string{"--monitor", "nats://a"}},
		{name: "a key of nobody's", args: []string{"--model", "openai", "--key-file", "own=x"}, want: []string{"--key-file own", "no --model"}},
		{name: "no time to be silent", args: []string{"--model", "openai", "--model-idle", "0s"}, want: []string{"--model-idle"}},
		{name: "log level", args: []string{"--log-level", "loud"}, want: []string{"log-level", "debug"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			args := c.args
			if c.config != "" {
				args = append(args, "--config", write(t, "c.yaml", c.config))
			}
			var stdout, stderr bytes.Buffer
			status := Main(t.Context(), args, nil, &stdout, &stderr)
			if status != settings.StatusUsage {
				t.Errorf("status: got %d, want %d", status, settings.StatusUsage)
			}
			for _, want := range c.want {
				if !strings.Contains(stderr.String(), want) {
					t.Errorf("got %q, which does not tell of %s", stderr.String(), want)
				}
			}
			if stdout.Len() > 0 {
				t.Errorf("stdout: got %q", stdout.String())
			}
		})
	}
}

func TestOffersRefused(t *testing.T) {
	t.Parallel()
	empty := write(t, "key", "\n")
	dir := t.TempDir()
	for _, c := range []struct {
		args []string
		env  settings.Environment
		want []string
	}{
		{args: []string{"--model", "gpt"}, want: []string{"--model gpt", "openai, openai-chat, "}},
		{args: []string{"--model", "scripted"}, want: []string{"scripted:FILE"}},
		{args: []string{"--model", "scripted:/none.yaml"}, want: []string{"/none.yaml"}},
		{args: []string{"--model", "recorded:/none.jsonl"}, want: []string{"/none.jsonl"}},
		{args: []string{"--model", "openai:gpt"}, want: []string{"openai:https://HOST"}},
		{args: []string{"--model", "openai", "--key-file", "openai=/none.key"}, want: []string{"/none.key"}},
		{args: []string{"--model", "openai", "--key-file", "openai=" + empty}, want: []string{"is empty"}},
		{args: []string{"--model", "own=openai-chat:http://127.0.0.1:1/v1", "--key-file", "own=" + empty}, want: []string{"--key-file own=", "is empty"}},
		{args: []string{"--model", "openai"}, env: settings.Environment{"OPENAI_BASE_URL": "example", "OPENAI_API_KEY": "k"}, want: []string{"https://host/v1"}},
		{args: []string{"--model", "openai"}, env: settings.Environment{"OPENAI_API_KEY": "a b"}, want: []string{"key"}},
		{args: []string{"--model", "scripted:echo", "--model", "scripted:demo"}, want: []string{"served twice"}},
		{args: []string{"--tools", "shell"}, want: []string{"--tools shell", "host, services, mcp:FILE or recorded:FILE"}},
		{args: []string{"--tools", "services:orders,,mail"}, want: []string{"--tools services:orders,,mail", "name of a service is empty"}},
		{args: []string{"--tools", "host:x", "--workdir", dir}, want: []string{"--workdir"}},
		{args: []string{"--tools", "recorded", "--ledger", filepath.Join(dir, "l")}, want: []string{"recorded:FILE"}},
		{args: []string{"--model", "gpt", "--tools", "shell"}, want: []string{"--model gpt", "--tools shell"}},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			t.Parallel()
			environ := []string{}
			for name, value := range c.env {
				environ = append(environ, name+"="+value)
			}
			var stderr bytes.Buffer
			if status := Main(t.Context(), c.args, environ, io.Discard, &stderr); status != settings.StatusFailed {
				t.Errorf("status: got %d, want %d", status, settings.StatusFailed)
			}
			for _, want := range c.want {
				if !strings.Contains(stderr.String(), want) {
					t.Errorf("got %q, which does not tell of %q", stderr.String(), want)
				}
			}
		})
	}
}

func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ flag, want string }{{"--help", "Model to serve: openai, openai-chat, anthropic, gemini,"}, {"--help", "refold bridge serve --model openai --tools host --workdir"}, {"--version", "refold-bridge "}} {
		var stdout, stderr bytes.Buffer
		if status := Main(t.Context(), []string{c.flag}, nil, &stdout, &stderr); status != settings.StatusDone {
			t.Errorf("%s: status %d: %s", c.flag, status, stderr.String())
		}
		if !strings.Contains(stdout.String(), c.want) {
			t.Errorf("%s: got %q, want %q in it", c.flag, stdout.String(), c.want)
		}
	}
}

func TestParseOffer(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]offer{
		"openai":                {"openai", "openai", ""},
		"scripted:a=b.yaml":     {"scripted", "scripted", "a=b.yaml"},
		"local=openai":          {"local", "openai", ""},
		"gpt=recorded:/a/b:c.x": {"gpt", "recorded", "/a/b:c.x"},

		"own=openai-chat:http://h:1/v1": {"own", "openai-chat", "http://h:1/v1"},
	} {
		if got := parseOffer(text); got != want {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
	}
}
