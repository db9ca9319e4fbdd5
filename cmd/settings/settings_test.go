package settings_test

// Which of flags, environment, file and default wins, for each kind of flag;
// refused values are named with their place.

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/refold/refold/cmd/settings"
)

// flags are those of a daemon that nobody has.
type flags struct {
	settings.Connection `yaml:",inline"`

	Colours []string      `name:"colour" yaml:"colour" group:"Paint" sep:"none" help:"A colour (PAINT_COLOUR)."`
	Dry     bool          `yaml:"dry" default:"true" negatable:"" help:"Let it dry."`
	Coats   int           `yaml:"coats" default:"2" help:"How many coats."`
	Wait    time.Duration `yaml:"wait" default:"1m" help:"Between two coats."`

	settings.Daemon `yaml:",inline"`
}

var painter = settings.Program{
	Name: "painter", Description: "Paints.",
	Variables: map[string]string{"colour": "PAINT_COLOUR"},
	Groups:    []kong.Group{{Key: "Paint", Title: "What it paints with:"}, {Key: "NATS", Title: "How it connects:"}},
}

// config writes a config file.
func config(t *testing.T, content string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "painter.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// parse parses what a test says is fine.
func parse(t *testing.T, env settings.Environment, args ...string) flags {
	t.Helper()
	f, done, err := settings.Parse[flags](painter, args, env, io.Discard, io.Discard)
	if err != nil || done {
		t.Fatalf("%v: got %v, done %v", args, err, done)
	}
	return f
}

func TestFirstOfFlagEnvironmentFileDefaultWins(t *testing.T) {
	t.Parallel()
	file := config(t, "nats: file\ncreds: file\ncontext: file\nprefix: filed\ninbox-prefix: file\ncolour: [red, \"dark,blue\"]\ndry: false\ncoats: 3\nlog-level: warn\n")
	env := settings.ReadEnvironment([]string{"NATS_URL=env", "NATS_CREDS=env", "REFOLD_PREFIX=", "COATS=9", "PATH=a=b", "odd"})
	f := parse(t, env, "--config", file, "--nats", "flag", "--coats", "7")
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"a flag wins over environment and file", f.NATS, "flag"},
		{"a flag wins over the file", f.Coats, 7},
		{"the environment wins over the file", f.Creds, "env"},
		{"the file wins over a default", f.LogLevel, "warn"},
		{"an empty variable is none", f.Prefix, "filed"},
		{"a key of several words", f.Inbox, "file"},
		{"the file can say no", f.Dry, false},
		{"a list is not taken apart", strings.Join(f.Colours, ";"), "red;dark,blue"},
		{"what nobody says has a default", f.Wait, time.Minute},
		{"where the file was", f.Config, file},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %v, want %v", c.what, c.got, c.want)
		}
	}
	if f := parse(t, settings.Environment{"PAINT_COLOUR": "green"}, "--config", file); !slices.Equal(f.Colours, []string{"green"}) {
		t.Errorf("a variable of the program: got %q", f.Colours)
	}
	if f := parse(t, nil, "--config", file, "--colour", "a", "--colour", "b,c"); !slices.Equal(f.Colours, []string{"a", "b,c"}) {
		t.Errorf("a repeated flag with a file: got %q", f.Colours)
	}
	for name, f := range map[string]flags{"no file": parse(t, nil), "an empty file": parse(t, nil, "--config", config(t, "# nothing\n"))} {
		if f.Prefix != "refold" || f.LogLevel != "info" || f.Coats != 2 || !f.Dry || f.NATS != "" || f.Colours != nil {
			t.Errorf("%s: got %+v", name, f)
		}
	}
	if env["PATH"] != "a=b" || len(env) != 5 {
		t.Errorf("environment: got %v", env)
	}
}

func TestErrorsNameTheFaultySetting(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		args   []string
		config string
		want   []string
	}{
		{name: "unknown flag", args: []string{"--color", "x"}, want: []string{"--color"}},
		{name: "argument", args: []string{"here"}, want: []string{"here"}},
		{name: "a value that is none", args: []string{"--log-level", "loud"}, want: []string{"log-level", "debug"}},
		{name: "typo in the file", config: "coats: 1\ncolor: red\n", want: []string{"--config", "painter.yaml", "color", "[2:1]"}},
		{name: "wrong type in the file", config: "coats: many\n", want: []string{"painter.yaml", "coats", "[1:"}},
		{name: "bad value in the file", config: "log-level: loud\n", want: []string{"painter.yaml", "log-level", "debug"}},
		{name: "a key twice", config: "nats: a\nnats: b\n", want: []string{"nats", "[2:1]"}},
		{name: "a file in the file", config: "config: other.yaml\n", want: []string{"config", "[1:1]"}},
		{name: "no YAML", config: "{", want: []string{"painter.yaml"}},
		{name: "no file", args: []string{"--config", "/none.yaml"}, want: []string{"--config /none.yaml"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			args := c.args
			if c.config != "" {
				args = append(args, "--config", config(t, c.config))
			}
			var out bytes.Buffer
			_, done, err := settings.Parse[flags](painter, args, nil, &out, &out)
			if err == nil || done || out.Len() > 0 {
				t.Fatalf("got %v, done %v, printed %q", err, done, out.String())
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, which does not tell of %s", err, want)
				}
			}
		})
	}
}

// TestAttackYAML: a config file that expands to a billion values is refused.
func TestAttackYAML(t *testing.T) {
	t.Parallel()
	text := "dry: true\nx0: &x0 [" + strings.Repeat("lol, ", 10) + "]\n"
	for _, name := range strings.Split("12345678", "") {
		before := string(name[0] - 1)
		text += "x" + name + ": &x" + name + " [" + strings.Repeat("*x"+before+", ", 10) + "]\n"
	}
	file := config(t, text)
	_, _, err := settings.Parse[flags](painter, []string{"--config", file}, nil, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "aliases") || !strings.Contains(err.Error(), file) {
		t.Errorf("got %v, want an error that speaks of aliases in %s", err, file)
	}
}

func TestHelpAndVersionEndTheParsing(t *testing.T) {
	t.Parallel()
	for flag, wants := range map[string][]string{
		"--help":    {"Usage: painter", "Paints.", "What it paints with:", "How it connects:", "NATS_URL", "--[no-]dry"},
		"--version": {"painter " + settings.Version() + "\n"},
	} {
		var out, errOut bytes.Buffer
		_, done, err := settings.Parse[flags](painter, []string{flag}, nil, &out, &errOut)
		if err != nil || !done || errOut.Len() > 0 {
			t.Errorf("%s: got %v, done %v, %q", flag, err, done, errOut.String())
		}
		for _, want := range wants {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: got %q, which does not tell of %q", flag, out.String(), want)
			}
		}
	}
}

func TestComplainNamesTheProgramInEveryLine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	painter.Complain(&out, errors.Join(errors.New("one"), errors.New("two")))
	if want := "painter: one\npainter: two\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
