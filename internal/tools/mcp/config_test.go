package mcp

// Config files: every problem is reported with its key.

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/codec"
)

func TestLoad(t *testing.T) {
	t.Parallel()
	env := map[string]string{"TOKEN": "s3cret", "LINES": "a\nb", "KEY": "k", "PATH": "/bin"}
	for _, c := range []struct {
		name, text string
		want       []string // of the error; none: it is taken
	}{
		{"both kinds", "servers:\n  a:\n    command: a\n    args: [x]\n    env: [KEY, B=c]\n    idle: 1m\n    tools: {t: {approval: always, deadline: 30s}}\n  b:\n    url: https://x/mcp\n    headers: {A: \"Bearer ${TOKEN}\"}\n", nil},
		{"empty", "", []string{"servers: there is none"}},
		{"a typo", "servers:\n  a:\n    comand: x\n", []string{"comand", "3"}},
		{"a typo of a tool's", "servers:\n  a:\n    command: x\n    tools: {t: {retrysafe: true}}\n", []string{"retrysafe"}},
		{"twice the same", "servers:\n  a: {command: x}\n  a: {command: y}\n", []string{"a"}},
		{"neither", "servers:\n  a: {target: t}\n", []string{"servers.a: give either a command"}},
		{"both", "servers:\n  a: {command: x, url: 'http://y'}\n", []string{"servers.a: give either a command"}},
		{"all at once", "servers:\n  A b: {command: x, env: [MISSING, 1x], target: a.b, idle: -1s, include: ['[']}\n  c:\n    url: ftp://x\n    headers: {X Y: '${TOKEN}', Z: literal, L: '${LINES}', M: '${MISSING}'}\n", []string{
			"servers.A b: a server's name", "servers.A b.env[0]: MISSING is not set", "servers.A b.env[1]: is NAME", "servers.A b.target",
			"servers.A b.idle", "servers.A b.include[0]", "servers.c.url", `servers.c.headers: "X Y"`,
			"servers.c.headers.Z: take the value from a secret", "servers.c.headers.L: the value of LINES has more than one line", "servers.c.headers.M: MISSING is not set",
		}},
		{"a password in a url", "servers:\n  a: {url: 'https://me:secret@x/'}\n", []string{"without a password"}},
		{"aliases of aliases", laughs("servers:\n  x:\n    command: x\n    args: [x]\n"), []string{"aliases"}},
		{"a deadline", "servers:\n  a:\n    command: x\n    tools: {t: {deadline: 1us}}\n", []string{"servers.a.tools.t.deadline"}},
	} {
		file := filepath.Join(t.TempDir(), "servers.yaml")
		must(t, os.WriteFile(file, []byte(c.text), 0o600))
		got, err := Load(file, env)
		if len(c.want) == 0 {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			a, b := got.Servers["a"], got.Servers["b"]
			if environ := a.environ(env, nil); !slices.Equal(environ, []string{"PATH=/bin", "KEY=k", "B=c"}) || a.Idle != time.Minute || b.header(env, nil)["A"] != "Bearer s3cret" {
				t.Errorf("%s: got %v, %v, %v", c.name, environ, a.Idle, b.header(env, nil))
			}
			continue
		}
		if err == nil {
			t.Errorf("%s: it is taken", c.name)
			continue
		}
		for _, want := range append(c.want, file) {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q in it", c.name, err, want)
			}
		}
		if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the error has a secret: %v", c.name, err)
		}
	}
}

func TestIncludeAndExclude(t *testing.T) {
	t.Parallel()
	s := Server{Include: []string{"read_*", "list", "gone"}, Exclude: []string{"read_secret"}, Tools: map[string]Override{"*": {}, "lst": {}}}
	for tool, want := range map[string]bool{"read_file": true, "list": true, "read_secret": false, "write": false} {
		if got := s.takes(tool); got != want {
			t.Errorf("%s: got %v, want %v", tool, got, want)
		}
	}
	if got := s.unlisted([]string{"list", "read_file", "read_secret"}); !slices.Equal(got, []string{"gone", "lst"}) {
		t.Errorf("unlisted: %v", got)
	}
}

func TestLock(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "servers.yaml")
	if _, err := ReadLock(file); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "refold tools import mcp "+file) {
		t.Errorf("no lock: got %v", err)
	}
	want := Lock{"mcp.a.b": {Tool: "b", Schema: codec.RefOf([]byte("x")), Hints: []string{hintReadOnly}}}
	for range 2 {
		must(t, WriteLock(file, want))
	}
	if got, err := ReadLock(file); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	is := Lock{"mcp.a.b": {Tool: "b", Schema: codec.RefOf([]byte("y")), Hints: []string{hintDestructive}}}
	if got, want := is.Since(want), []string{"mcp.a.b has changed since it was imported: schema, read_only, destructive"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, text := range []string{"", `{"v": 2}`, `{"v": 1, "tols": {}}`} {
		must(t, os.WriteFile(LockFile(file), []byte(text), 0o600))
		if _, err := ReadLock(file); err == nil || !strings.Contains(err.Error(), "import the tools again") {
			t.Errorf("%s: got %v", text, err)
		}
	}
}
