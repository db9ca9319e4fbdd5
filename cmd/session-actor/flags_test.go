package main

// Flags, environment and config file: which wins, and what is refused. The
// tests use no network.

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/refold/refold/cmd/settings"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// write writes a file for one test.
func write(t *testing.T, name, content string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFlagsPrecedeEnvironmentAndFile(t *testing.T) {
	t.Parallel()
	file := write(t, "actor.yaml", "durability: interval\nmonitor: file:8222\nsystem-creds: filed\nnats: nats://file:1\ncreds: filed\ncontext: filed\nprefix: filed\nmemory: 2GiB\nsnapshot-verify: false\nreplicas: 3\nlog-level: warn\ninbox-prefix: _I\nverify-loads: true\n")
	environ := []string{"NATS_URL=nats://env:1", "NATS_CREDS=env", "NATS_CONTEXT=env", "REFOLD_PREFIX=", "REFOLD_DURABILITY=always", "HOME=/"}
	f, done, err := parse([]string{"--config", file, "--creds", "flag", "--replicas", "5"}, settings.ReadEnvironment(environ), io.Discard, io.Discard)
	if err != nil || done {
		t.Fatalf("got %v, done %v", err, done)
	}
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"a flag wins over the environment", f.Creds, "flag"},
		{"a flag wins over the file", f.Replicas, 5},
		{"the environment wins over the file", f.NATS, "nats://env:1"},
		{"another variable", f.Context, "env"},
		{"an empty variable is none", f.Prefix, "filed"},
		{"the file wins over a default", f.LogLevel, "warn"},
		{"a key of several words", f.Inbox, "_I"},
		{"durability from the environment", f.Durability, "always"},
		{"where to ask, from the file", f.Monitor, "file:8222"},
		{"another place", f.SystemCreds, "filed"},
		{"a switch in the file", f.VerifyLoads, true},
		{"a size from the file", f.Memory, settings.Size(2 << 30)},
		{"a switch that the file turns off", f.SnapshotVerify, false},
		{"what nobody says has a default", f.Install, ""},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %v, want %v", c.what, c.got, c.want)
		}
	}
	f, _, err = parse(nil, settings.ReadEnvironment([]string{"REFOLD_PREFIX=env"}), io.Discard, io.Discard)
	if err != nil || f.Prefix != "env" || f.NATS != "" || f.LogLevel != "info" || f.Replicas != 0 ||
		f.Memory != 256<<20 || !f.SnapshotVerify {
		t.Errorf("without a file: got %+v, %v", f, err)
	}
	f, _, err = parse([]string{"--config", write(t, "empty.yaml", "# nothing\n")}, nil, io.Discard, io.Discard)
	if err != nil || f.Prefix != "refold" {
		t.Errorf("an empty file: got %+v, %v", f, err)
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
		{name: "unknown flag", args: []string{"--natz", "x"}, want: []string{"--natz"}},
		{name: "no size", args: []string{"--memory", "much"}, want: []string{"--memory", "256MiB"}},
		{name: "too little", args: []string{"--memory", "1K"}, want: []string{"--memory", "1MiB"}},
		{name: "argument", args: []string{"here"}, want: []string{"here"}},
		{name: "typo in the file", config: "prefix: a\nnatz: here\n", want: []string{"natz", "[2:1]", "c.yaml"}},
		{name: "wrong type in the file", config: "replicas: many\n", want: []string{"replicas", "[1:"}},
		{name: "bad value in the file", config: "log-level: loud\n", want: []string{"log-level", "debug", "c.yaml"}},
		{name: "a key twice", config: "nats: a\nnats: b\n", want: []string{"nats", "[2:1]"}},
		{name: "no YAML", config: "{", want: []string{"c.yaml"}},
		{name: "no config file", args: []string{"--config", "/none.yaml"}, want: []string{"/none.yaml"}},
		{name: "replicas", args: []string{"--replicas", "9"}, want: []string{"--replicas", "0 to 5"}},
		{name: "durability", args: []string{"--durability", "never"}, want: []string{"--durability", "interval", "always", "replicated"}},
		{name: "durability in the file", config: "durability: unknown\n", want: []string{"durability", "always"}},
		{name: "monitoring address", args: []string{"--monitor", "nats://a:4222"}, want: []string{"--monitor", "nats://a:4222", "8222"}},
		{name: "log level", args: []string{"--log-level", "loud"}, want: []string{"log-level", "debug"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			args := c.args
			if c.config != "" {
				args = append(args, "--config", write(t, "c.yaml", c.config))
			}
			var stdout, stderr bytes.Buffer
			if status := Main(t.Context(), args, nil, &stdout, &stderr); status != settings.StatusUsage {
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

func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"--help"}, []string{"Runs Refold sessions", "SIGTERM", "NATS_URL", "REFOLD_PREFIX", "--install", "--config", "built-in"}},
		{[]string{"--version"}, []string{"refold-session-actor " + settings.Version()}},
	} {
		var stdout, stderr bytes.Buffer
		if status := Main(t.Context(), c.args, nil, &stdout, &stderr); status != settings.StatusDone || stderr.Len() > 0 {
			t.Errorf("%v: status %d, stderr %q", c.args, status, stderr.String())
		}
		for _, want := range c.want {
			if !strings.Contains(stdout.String(), want) {
				t.Errorf("%v: got %q, which does not tell of %s", c.args, stdout.String(), want)
			}
		}
	}
}
