package cli

// The commands in the READMEs of examples/workspace and examples/skills run
// line by line, and print what the READMEs show. … stands for anything on a
// line.

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/spacefiles"
)

// step is a command of a README, and what it prints.
type step struct{ command, want string }

// stepsOf returns the commands of a README: lines of code that begin with $, and
// the lines of code below each.
func stepsOf(t *testing.T, file string) (steps []step) {
	t.Helper()
	readme, err := os.ReadFile(file)
	bustest.OK(t, err)
	within := false // of what a command prints, in which a line may be empty
	for line := range strings.Lines(string(readme)) {
		code, is := strings.CutPrefix(strings.TrimRight(line, "\n"), "    ")
		command, isCommand := strings.CutPrefix(code, "$ ")
		switch {
		case isCommand && is:
			steps, within = append(steps, step{command: command}), true
		case within && (is || line == "\n"):
			steps[len(steps)-1].want += code + "\n"
		default:
			within = false
		}
	}
	return steps
}

// pattern is what an output must look like.
func (s step) pattern() *regexp.Regexp {
	text := regexp.QuoteMeta(strings.TrimRight(s.want, "\n"))
	return regexp.MustCompile(`^` + strings.ReplaceAll(text, "…", ".*") + `\n?$`)
}

// argument is one word of a command line.
var argument = regexp.MustCompile(`"([^"]*)"|(\S+)`)

// arguments splits a command line.
func arguments(line string) (args []string) {
	for _, m := range argument.FindAllStringSubmatch(line, -1) {
		args = append(args, m[1]+m[2])
	}
	return args
}

func TestExampleWorkspace(t *testing.T) {
	t.Parallel()
	runReadme(t, "workspace", 15, "refold space sync c1 desk --dry")
}

// examples/skills: the same.
func TestExampleSkills(t *testing.T) {
	t.Parallel()
	runReadme(t, "skills", 8)
}

// examples/long-conversation: the same.
func TestExampleLongConversation(t *testing.T) {
	t.Parallel()
	runReadme(t, "long-conversation", 8)
}

// examples/observability: the same.
func TestExampleObservability(t *testing.T) {
	t.Parallel()
	runReadme(t, "observability", 4)
}

// runReadme runs what the README of an example says, which has at least so many
// commands. Those in failing end with an exit status, and so do those that print
// an error.
func runReadme(t *testing.T, example string, least int, failing ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	root, tmp := filepath.Join("..", "..", ".."), t.TempDir()
	here := strings.NewReplacer("/tmp/", tmp+"/", "examples/", filepath.Join(root, "examples")+"/").Replace
	as, stop := "", func() {}
	defer func() { stop() }()
	all := stepsOf(t, filepath.Join(root, "examples", example, "README.md"))
	if len(all) < least {
		t.Fatalf("the README has %d commands", len(all))
	}
	for _, s := range all {
		program, rest, _ := strings.Cut(s.command, " ")
		if program != "refold" {
			if out, err := exec.CommandContext(ctx, "sh", "-c", here(s.command)).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v: %s", s.command, err, out)
			}
			continue
		}
		args := arguments(here(rest))
		if args[0] == "dev" {
			as, stop = startDev(ctx, t, args)
			continue
		}
		if as != "" {
			args = append([]string{"--context", as}, args...)
		}
		var out, errOut text
		status := Main(ctx, args, strings.NewReader(""), &out, &errOut)
		want := 0
		if slices.Contains(failing, s.command) || strings.Contains(s.want, "\nrefold: ") {
			want = statusFailed
		}
		shown, told := out.String(), errOut.String() // of a run the README shows the answer alone
		if is := s.pattern(); status != want || !is.MatchString(shown+told) && (args[2] != "run" || !is.MatchString(shown)) {
			t.Errorf("%s: status %d, want %d; it prints\n%s%swant\n%s", s.command, status, want, shown, told, s.want)
		}
	}
}

// startDev runs refold dev until stop is called. as is the context of its administrator.
func startDev(ctx context.Context, t *testing.T, args []string) (as string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	var out, errOut text
	ended := make(chan int, 1)
	go func() { ended <- Main(ctx, append(args, "--port", "0"), nil, &out, &errOut) }()
	return out.shows(t, `NATS_CONTEXT='(.+)'`)[1], func() {
		cancel()
		if status := <-ended; status != 0 {
			t.Errorf("dev: status %d: %s", status, errOut.String())
		}
	}
}

// block is a block of code in a document: what stands behind its language, and its
// lines.
type block struct{ name, content string }

// blocksOf returns the blocks of a document that have a name.
func blocksOf(t *testing.T, file string) (blocks []block) {
	t.Helper()
	text, err := os.ReadFile(file)
	bustest.OK(t, err)
	for _, m := range regexp.MustCompile("(?ms)^```[a-z]+ (\\S+)\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, block{m[1], m[2]})
	}
	return blocks
}

// dev accepts the example folder of docs/workspaces.md, and the other files in
// it are valid.
func TestWorkspacesDocumentHasValidFiles(t *testing.T) {
	t.Parallel()
	files, seen := map[string]string{}, map[string]int{}
	for _, b := range blocksOf(t, filepath.Join("..", "..", "..", "docs", "workspaces.md")) {
		switch seen[b.name]++; b.name {
		case "grants":
			var grants map[string]any
			bustest.OK(t, json.Unmarshal([]byte(b.content), &grants))
			grants["v"], grants["rules"], grants["tools"] = 1, 1, []any{}
			record, err := json.Marshal(grants)
			bustest.OK(t, err)
			runs(t, 0, "install", file(t, string(record)), "--dry-run")
		case "spaces.yaml":
			if _, err := spacefiles.LoadConfig(file(t, b.content)); err != nil {
				t.Errorf("%v\n%s", err, b.content)
			}
		case "catalog":
			dir := folder(t, "support", map[string]string{"agent.workspace.json": `{"v": 1, "tools": {"default": "c.json"}}`, "c.json": b.content, "tools/shell.json": `{"name": "shell"}`})
			runs(t, 0, "space", "check", dir)
		default:
			files[b.name] = b.content
		}
	}
	if len(files) != 5 || seen["grants"] != 1 || seen["spaces.yaml"] != 2 || seen["catalog"] != 1 {
		t.Fatalf("the document has %v", seen)
	}
	out, errOut := runs(t, 0, "install", "--builtin", "--dry-run", "--space", "support="+folder(t, "support", files))
	like(t, "the example", out+errOut, `^valid: .*, workspace support 1\.0\.0, rules 1; nothing is published\n$`)
}
