package main

// The places of secrets, and their order.

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/spacefiles"
)

func TestSecretsAreLookedForInOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put := func(name, text string) string {
		name = filepath.Join(dir, name)
		bustest.OK(t, os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	config, err := spacefiles.LoadConfig(put("spaces.yaml", `
targets:
  a: {spaces: {crm: {dir: x, secrets: {ONE: {file: one}, TWO: {env: TWO_OF_CRM}, THREE: {file: none}}}}}
  b: {spaces: {"*": {packs: true, secrets: {ONE: {env: ONE_OF_ALL}, FOUR: {env: FOUR}}}}}
`))
	bustest.OK(t, err)
	put("one", "one of crm\n")
	o := &offers{spaces: config}
	env := settings.Environment{"TWO_OF_CRM": "two of crm", "ONE_OF_ALL": "one of all", "FOUR": "four of all", "FIVE": "never"}
	find := func(f *flags, space, name string) string {
		for _, source := range o.given(f, env) {
			value, err := source.Secret(t.Context(), space, name)
			bustest.OK(t, err)
			if value != "" {
				return value
			}
		}
		return ""
	}
	for _, c := range []struct{ space, name, want string }{
		{"crm", "ONE", "one of crm"}, {"crm", "TWO", "two of crm"}, {"crm", "THREE", ""}, {"crm", "FOUR", "four of all"},
		{"shop", "ONE", "one of all"}, {"shop", "TWO", ""}, {"crm", "FIVE", ""},
	} {
		if got := find(&flags{}, c.space, c.name); got != c.want {
			t.Errorf("%s of %s: got %q, want %q", c.name, c.space, got, c.want)
		}
	}
	tree := t.TempDir()
	bustest.OK(t, os.WriteFile(filepath.Join(tree, "ONE"), []byte("one of the tree"), 0o600))
	f := &flags{SecretsDir: tree}
	if got := find(f, "crm", "ONE"); got != "one of the tree" {
		t.Errorf("the tree before the space's: got %q", got)
	}
	f.Secret = map[string]string{"ONE": put("given", "one that is given")}
	if got := find(f, "crm", "ONE"); got != "one that is given" {
		t.Errorf("what is given before the tree: got %q", got)
	}
}

func TestSecretFlagsThatAreWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--secret", "a-b=x"}, "--secret a-b: a secret's name is"},
		{[]string{"--secrets-catalog", filepath.Join(t.TempDir(), "none.json")}, "no such file"},
	} {
		var stderr bytes.Buffer
		status := Main(t.Context(), append(c.args, "--model", "echo=scripted:echo", "--nats", "nats://127.0.0.1:1"), nil, io.Discard, &stderr)
		if status == 0 || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("%v: status %d, %q, want %q", c.args, status, stderr.String(), c.want)
		}
	}
}

func TestShortSecretsAreReportedAtStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"SHORT": "12345\n", "LONG": "long-enough\n", "..data": "x"} {
		bustest.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	config := filepath.Join(dir, "spaces.yaml")
	bustest.OK(t, os.WriteFile(config, []byte("targets: {packs: {spaces: {crm: {packs: true, secrets: {OF_CRM: {file: SHORT}}}, '*': {packs: true, secrets: {OF_ALL: {env: ANY}}}}}}"), 0o600))
	server := bustest.Server(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	lines, stderr := io.Pipe()
	go func() {
		Main(ctx, []string{
			"--secrets", dir, "--secret", "GIVEN=" + filepath.Join(dir, "SHORT"), "--spaces", config, "--nats", server.URL(),
		}, []string{"ANY=abc"}, io.Discard, stderr)
		stderr.Close()
	}()
	var log strings.Builder
	for scan := bufio.NewScanner(lines); scan.Scan(); {
		if log.WriteString(scan.Text() + "\n"); strings.Count(log.String(), "secret_not_redacted") == 4 {
			stop()
		}
	}
	got := log.String()
	for _, name := range []string{"SHORT", "GIVEN", "OF_CRM", "OF_ALL"} {
		if !strings.Contains(got, "secret="+name) {
			t.Errorf("%s is not told of", name)
		}
	}
	if strings.Contains(got, "12345") || strings.Contains(got, "secret=LONG") {
		t.Errorf("got %s", got)
	}
}
