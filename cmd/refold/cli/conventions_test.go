package cli

// What holds for every command: exit statuses, --json, completion.
//
// How: the commands are those of the parser's own model, so a command that is
// added is tested too.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
)

// commands returns the commands that can be run, as words behind refold.
func commands(t *testing.T) map[string]*kong.Node {
	t.Helper()
	parser, err := newParser(&cli{}, Parts, io.Discard, io.Discard)
	bustest.OK(t, err)
	all := map[string]*kong.Node{}
	for _, leaf := range parser.Model.Leaves(true) {
		all[strings.TrimPrefix(leaf.FullPath(), "refold ")] = leaf
	}
	if len(all) < 50 {
		t.Fatalf("%d commands: some are lost", len(all))
	}
	return all
}

// TestWrongArgumentsEndWith2: every command refuses an unknown flag, a surplus
// or missing argument and an invalid session name, with exit status 2 and one
// line that names its help.
func TestWrongArgumentsEndWith2(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, node := range commands(t) {
		words := strings.Fields(name)
		var given []string
		required := 0
		for _, p := range node.Positional {
			value := "s1"
			switch {
			case p.Enum != "":
				value = p.EnumSlice()[0]
			case strings.HasPrefix(p.Tag.Type, "existing"):
				value = dir
			}
			given = append(given, value)
			if p.Required {
				required++
			}
		}
		if node.Passthrough {
			continue // all arguments are the daemon's
		}
		wrong := map[string][]string{
			"flag": append(slices.Concat(words, given), "--no-such-flag"),
			"many": append(slices.Concat(words, given), "extra", "extra"),
		}
		if len(node.Positional) > 0 && node.Positional[len(node.Positional)-1].IsCumulative() {
			delete(wrong, "many")
		}
		if required > 0 {
			wrong["few"] = slices.Concat(words, given[:required-1])
		}
		for i, p := range node.Positional {
			if p.Name == "session" {
				bad := slices.Clone(given)
				bad[i] = "no session"
				wrong["session"] = slices.Concat(words, bad)
			}
		}
		for what, args := range wrong {
			var out, errOut text
			status := Main(t.Context(), args, strings.NewReader(""), &out, &errOut)
			if status != statusUsage || out.String() != "" || strings.Count(errOut.String(), "\n") != 1 || !strings.Contains(errOut.String(), "; see refold "+words[0]) {
				t.Errorf("%s: %q: status %d, %q and %q", what, args, status, out.String(), errOut.String())
			}
		}
	}
}

// TestErrorsNameTheNearest flag, command, or key of JSON or YAML.
func TestErrorsNameTheNearest(t *testing.T) {
	t.Parallel()
	record := file(t, "{\"v\":1,\"rules\":1,\"tools\":[],\n \"policy\":{\n   \"aproval\":[]}}")
	broken := file(t, "{\"v\":1,\n \"tools\":[,]}")
	roles := filepath.Join(t.TempDir(), "roles.yaml")
	bustest.OK(t, os.WriteFile(roles, []byte("tenants:\n  refold:\n    aprovers: [ann]\n"), 0o600))
	for _, c := range []struct {
		status int
		args   []string
		want   string
	}{
		{statusUsage, []string{"sesions"}, `^refold: unexpected argument sesions, did you mean "sessions"\?; see refold --help\n$`},
		{statusUsage, []string{"tail", "--folow"}, `^refold: unknown flag --folow, did you mean "--follow"\?; see refold tail --help\n$`},
		{statusUsage, []string{"transcript", "s1", "--format", "xml"}, `^refold: --format must be one of "md","json","openai","anthropic" but got "xml"; see refold transcript --help\n$`},
		{statusUsage, []string{"run", "s1", "hi", "--config", `{"provder":"p"}`}, `the unknown field "provder" \(did you mean "provider"\?\)`},
		{statusFailed, []string{"install", "--dry-run", record}, `^refold: ` + record + `:3:4: install record: .*the unknown field "aproval" \(did you mean "approval"\?\)`},
		{statusFailed, []string{"install", "--dry-run", broken}, `^refold: ` + broken + `:2:11: install record: .*not JSON`},
		{statusUsage, []string{"roles", "--file", roles, "--dir", t.TempDir()}, `\[3:5\] unknown field "aprovers"; did you mean "approvers"\?\n(?s:.*)>  3 \|     aprovers`},
	} {
		var out, errOut text
		if status := Main(t.Context(), c.args, strings.NewReader(""), &out, &errOut); status != c.status {
			t.Errorf("%q: status %d, want %d", c.args, status, c.status)
		}
		like(t, strings.Join(c.args, " "), errOut.String(), c.want)
	}
}

// TestRefoldHasAllCommands: refold names the commands that only refold-full has, and
// their arguments are refold-full's.
func TestRefoldHasAllCommands(t *testing.T) {
	t.Parallel()
	describe := func(full *Full) (parser *kong.Kong, all []string) {
		parser, err := newParser(&cli{}, full, io.Discard, io.Discard)
		bustest.OK(t, err)
		for _, node := range parser.Model.Children {
			all = append(all, fmt.Sprintf("%s: %s (hidden: %t)", node.Name, node.Help, node.Hidden))
		}
		return parser, all
	}
	parser, got := describe(nil)
	if _, want := describe(Parts); !slices.Equal(got, want) {
		t.Errorf("refold has\n%q\nand refold-full\n%q", got, want)
	}
	for _, args := range [][]string{
		{"bench"}, {"bench", "runs", "--json"}, {"chaos", "--help"}, {"--raw", "chaos-part", "--part", "bridge"}, {"trace", "s1", "--json"},
		{"trace", "s1", "--otlp", "http://c"}, {"tools", "import", "mcp", file(t, "")}, {"demo", "--mcp"}, {"bridge", "doctor", "--mcp", file(t, "")},
		{"dev", "--http", "127.0.0.1:0"},
	} {
		if command, err := parser.Parse(args); err != nil || !needsFull(command.Selected()) {
			t.Errorf("%q: is not refold-full's (%v)", args, err)
		}
	}
	for _, args := range [][]string{{"demo"}, {"trace", "s1"}, {"bridge", "doctor"}, {"run", "s1", "hi"}} {
		if command, err := parser.Parse(args); err != nil || needsFull(command.Selected()) {
			t.Errorf("%q: is refold-full's (%v)", args, err)
		}
	}
}

// notJSON are the commands without --json, and why.
var notJSON = map[string]string{
	"demo":       "it shows a run to a person",
	"dev":        "it is a server",
	"serve http": "it is a server", "serve token": "what it prints is a row of a file",
	"actor serve": "it is a server", "bridge serve": "it is a server",
	"steer":  "it acts, and says in a line where the session stands: view --json",
	"cancel": "as steer", "interrupt": "as steer", "pause": "as steer", "resume": "as steer", "compact": "as steer", "close": "as steer", "hold": "as steer", "reply": "as steer",
	"approve": "it asks a person: approvals --json", "deny": "as approve", "release": "it asks a person",
	"decode":       "what it prints is JSON",
	"inspect":      "it is a server",
	"export":       "what it writes is a file",
	"space index":  "what it prints is a file",
	"space sync":   "it acts: view --json",
	"space apply":  "as space sync",
	"space detach": "as space sync",
	"schedule set": "it acts: schedule list --json", "schedule remove": "as schedule set", "schedule pause": "as schedule set", "schedule resume": "as schedule set",
	"pack sign": "it writes a file", "pack publish": "it acts: pack list --json", "pack enable": "as space sync", "pack disable": "as space sync",
	"tools import services": "what it prints is a file", "tools import mcp": "as tools import services",
	"chaos":       "it tells how far it is, and what is left",
	"roles write": "it writes files", "roles table": "what it prints is Markdown",
	"version": "it is a line", "completion": "what it prints is a script",
}

// TestEveryCommandHasJSON, or is listed with a reason why not.
func TestEveryCommandHasJSON(t *testing.T) {
	t.Parallel()
	all := commands(t)
	for name, node := range all {
		has := slices.ContainsFunc(node.Flags, func(f *kong.Flag) bool { return f.Name == "json" && f.IsBool() })
		if why := notJSON[name]; has == (why != "") {
			t.Errorf("%s: --json is %t, and the list says %q", name, has, why)
		}
	}
	for name := range notJSON {
		if all[name] == nil {
			t.Errorf("%s is on the list and no command", name)
		}
	}
}

// TestJSONIsAnObjectALine, with nothing else on standard output.
func TestJSONIsAnObjectALine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.converses()
	w.does(0, "run", "s1", "later", "--no-follow")
	w.indexed("s1", string(session.Running))
	for _, args := range []string{
		"sessions", "transcript s1", "log s1", "tail s1 --all", "view s1", "queue s1", "replay s1", "replay --all", "verify s1", "verify --all",
		"install --list", "install --show", "tools show s1", "why s1 send", "prompt s1", "streams", "streams REFOLD_LOG", "skills s1", "approvals", "waiting", "pack list",
		"tools check --within 1ms",
	} {
		out, _ := w.does(0, append(strings.Fields(args), "--json")...)
		for line := range strings.Lines(out) {
			var object map[string]any
			if err := json.Unmarshal([]byte(line), &object); err != nil {
				t.Errorf("%s: %.200q: %v", args, line, err)
			}
		}
		if empty := args == "skills s1" || args == "approvals" || args == "waiting" || args == "pack list" || args == "prompt s1"; (out == "") != empty {
			t.Errorf("%s: %q", args, out)
		}
	}
}

// TestInterruptedEndsWith130, like a process that the signal killed.
func TestInterruptedEndsWith130(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for cause, want := range map[error]int{stoppedBy(syscall.SIGINT): statusInterrupted, stoppedBy(syscall.SIGTERM): 143, context.Canceled: statusInterrupted} {
		for _, args := range [][]string{{"tail"}, {"run", "s1", "hi"}} {
			ctx, stop := context.WithCancelCause(w.ctx)
			c := &command{ended: make(chan int, 1)}
			args := append([]string{"--nats", w.node.URL()}, args...)
			go func() { c.ended <- Main(ctx, args, strings.NewReader(""), &c.out, &c.err) }()
			if args[2] == "run" {
				w.waits("s1", 1)
			}
			stop(cause)
			w.end(c, want)
		}
	}
}

// TestCompletion checks the completions at the cursor.
func TestCompletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ended("alpha", "hi", "hello")
	w.ended("beta", "hi", "hello")
	at := "--nats=" + w.node.URL()
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"trans"}, "transcript"},
		{[]string{"bridge", ""}, "serve doctor check"},
		{[]string{"nonsense", ""}, ""},
		{[]string{"transcript", "s1", "--f"}, "--format"},
		{[]string{"transcript", "s1", "--format", ""}, "md json openai anthropic"},
		{[]string{"transcript", "--format", "=", "o"}, "openai"},
		{[]string{"transcript", "--format=j"}, "--format=json"},
		{[]string{"run", "s1", "hi", "--when-busy", "in"}, "interrupt"},
		{[]string{"completion", ""}, "bash zsh fish"},
		{[]string{at, "view", ""}, "beta alpha"},
		{[]string{"--nats", w.node.URL(), "tail", "--json", "al"}, "alpha"},
		{[]string{at, "tools", "a"}, "alpha"},
		{[]string{at, "view", "--", "b"}, "beta"},
		{[]string{"--nats=nats://127.0.0.1:1", "view", ""}, ""},
	} {
		var out text
		if status := Main(w.ctx, append([]string{"complete", "--"}, c.words...), nil, &out, io.Discard); status != 0 {
			t.Errorf("%q: status %d", c.words, status)
		}
		var got []string
		for line := range strings.Lines(out.String()) {
			value, _, _ := strings.Cut(line, "\t")
			got = append(got, value)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q: got %q, want %q", c.words, got, c.want)
		}
	}
}

// TestBashCompletes: bash with the script completes as the program does.
func TestBashCompletes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "refold")
	self, err := os.Executable()
	bustest.OK(t, err)
	script := "#!/bin/sh\n" + mainEnv + "=1 exec '" + self + "' \"$@\"\n"
	bustest.OK(t, os.WriteFile(program, []byte(script), 0o700))
	for _, c := range []struct{ line, want string }{
		{"refold trans", "transcript"},
		{"refold transcript s1 --format ", "md json openai anthropic"},
		{"refold transcript s1 --format = o", "openai"},
		{"refold transcript s1 --format =", "md json openai anthropic"},
		{"refold verify --qu", "--quarantine"},
		{"refold nothing ", ""},
	} {
		words := strings.Split(c.line, " ")
		bash := exec.CommandContext(t.Context(), "bash", "--norc", "-c",
			`source <(refold completion bash); complete -p refold >/dev/null || exit 1; COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _refold; printf '%s\n' "${COMPREPLY[@]}"`,
			"bash")
		bash.Args = append(bash.Args, words...)
		bash.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		var errOut bytes.Buffer
		bash.Stderr = &errOut
		out, err := bash.Output()
		if got := strings.Join(strings.Fields(string(out)), " "); err != nil || got != c.want || errOut.Len() > 0 {
			t.Errorf("%q: got %q, want %q; %v %s", c.line, got, c.want, err, errOut.String())
		}
	}
}

// TestCompletionScripts: the scripts of zsh and fish call the same program.
func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	for shell, want := range map[string]string{
		"bash": `complete -- "\$\{words\[@\]\}"(?s:.*)\ncomplete -o default -F _refold refold\n$`,
		"zsh":  `^#compdef refold\n(?s:.*) complete -- "\$\{\(@\)words\[2,CURRENT\]\}"(?s:.*)\ncompdef _refold refold\n$`,
		"fish": `\$words\[1\] complete -- \$words\[2\.\.-1\] "\$\(commandline -ct\)"(?s:.*)\ncomplete -c refold -f -a '\(__refold_complete\)'\n$`,
	} {
		var out text
		if status := Main(t.Context(), []string{"completion", shell}, nil, &out, io.Discard); status != 0 {
			t.Errorf("%s: status %d", shell, status)
		}
		like(t, shell, out.String(), want)
	}
}

// TestSignalEndsContextWithoutFailure: daemons in this program end with status
// 0 when a signal stops them while they start, whichever of the two errors they
// get.
func TestSignalEndsContextWithoutFailure(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("connect: %w", stoppedBy(syscall.SIGTERM))
	if !errors.Is(err, context.Canceled) || statusOf(endedBy(syscall.SIGTERM)) != 143 {
		t.Errorf("%v is no end of a context, or its status is not 143", err)
	}
}

func endedBy(s syscall.Signal) context.Context {
	ctx, stop := context.WithCancelCause(context.Background())
	stop(stoppedBy(s))
	return ctx
}
