//go:build unix

package e2e_test

// Documents that are scripts. A fenced block whose first line is ```console is what
// a person types into one shell, and sees: a line that begins with "$ " is a
// command, the lines below it are what it prints. Any other fenced block whose first
// line has a second word, such as ```go main.go, is a file of that name. They are
// played in order, in an empty folder; every command must succeed.
//
// What differs from run to run is written as …: the rules are in differing. With
// -rewrite the test writes what the commands print into the document; read the diff.
//
// Looking at a session (bin/refold, but not approve) is repeated until it prints what
// the document shows, as a person would who is too early.

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

var rewrite = flag.Bool("rewrite", false, "write what commands print into the documents; then read the diff")

// playWithin is how long one command of a document may take, which may build a program.
const playWithin = 5 * time.Minute

// differing is what differs from run to run, and what a document has in its place.
var differing = []struct {
	what *regexp.Regexp
	is   string
}{
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "…"}, // hashes
	// Durations, which very short calls don't have, and times.
	{regexp.MustCompile(` \([0-9]+ ms\)`), ""},
	{regexp.MustCompile(`(?m)^ +[0-9]+\.[0-9]{3}s`), "   …"},
	{regexp.MustCompile(`\b[0-9]+(\.[0-9]+)? s\b`), "… s"},
	{regexp.MustCompile(`(ok \S+) (\(cached\)|[0-9.]+s)`), "$1 …"},
	{regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}Z`), "…"},
	{regexp.MustCompile(`\b[0-9:]{8}\.[0-9]{3}\b`), "…"},
	// Folders, places in the log, and the definitions that two processes set at once.
	{regexp.MustCompile(`/\S*/refold-demo-[0-9]+/`), "/tmp/refold-demo/"},
	{regexp.MustCompile(`"seq":[0-9]+`), `"seq":…`},
	{regexp.MustCompile(`(session storm)  [0-9]+ events  [0-9]+ effects`), "$1  … events  … effects"},
	// What the shell says of a process that was killed, and go of modules.
	{regexp.MustCompile(`(?m)^bash: .* Killed .*\n`), ""},
	{regexp.MustCompile(`(?m)^go: .*\n(\t.*\n)*`), ""},
}

// part is a block of a document: a file, or commands.
type part struct {
	file, text string
	steps      []typed
}

// typed is a command and what the document says that it prints.
type typed struct{ command, prints string }

// partsOf returns the blocks of a document that are played.
func partsOf(text string) (parts []part) {
	for i, fenced := range strings.Split("\n"+text, "\n```") {
		if i%2 == 0 {
			continue
		}
		info, body, _ := strings.Cut(fenced, "\n")
		kind, file, isFile := strings.Cut(info, " ")
		switch {
		case kind == "console":
			parts = append(parts, part{steps: stepsOf(body + "\n")})
		case isFile:
			parts = append(parts, part{file: file, text: body + "\n"})
		}
	}
	return parts
}

// stepsOf returns the commands of a block. A command goes on after a line that ends
// with a backslash.
func stepsOf(block string) (steps []typed) {
	open := false
	for line := range strings.Lines(block) {
		last := len(steps) - 1
		command, begins := strings.CutPrefix(line, "$ ")
		switch {
		case begins:
			steps = append(steps, typed{command: command})
		case open:
			steps[last].command += line
		case last >= 0:
			steps[last].prints += line
			continue
		}
		open = strings.HasSuffix(line, "\\\n")
	}
	return steps
}

// player plays a document in a shell.
type player struct {
	t     *testing.T
	dir   string
	here  *strings.Replacer // from the document's names to those of the test
	there *strings.Replacer // and back
	stdin *os.File
	out   *output
	count int
}

// play plays a document, in which names stand for others here: pairs of both.
func play(t *testing.T, file string, names ...string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	back := make([]string, 0, len(names))
	for i := 0; i < len(names); i += 2 {
		back = append(back, names[i+1], names[i])
	}
	p := &player{t: t, dir: t.TempDir(), out: &output{}, here: strings.NewReplacer(names...), there: strings.NewReplacer(back...)}
	p.start()
	var played strings.Builder // the document with what the commands print
	left, commands := string(text), 0
	for _, block := range partsOf(string(text)) {
		if block.file != "" {
			if err := os.WriteFile(filepath.Join(p.dir, block.file), []byte(p.here.Replace(block.text)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range block.steps {
			commands++
			got := p.run(s)
			if got != s.prints && !*rewrite {
				t.Fatalf("%s: $ %sprints\n%swant\n%s", file, s.command, got, s.prints)
			}
			before, after, _ := strings.Cut(left, "$ "+s.command+s.prints)
			played.WriteString(before + "$ " + s.command + got)
			left = after
		}
	}
	if commands == 0 {
		t.Fatalf("%s has no commands", file)
	}
	if played.WriteString(left); played.String() != string(text) {
		if err := os.WriteFile(file, []byte(played.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// start starts the shell. What it and its processes leave is ended with the test:
// they are one group.
func (p *player) start() {
	p.t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		p.t.Fatal(err)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		p.t.Fatal(err)
	}
	shell := exec.Command("bash")
	shell.Dir, shell.Stdin, shell.Stdout, shell.Stderr = p.dir, read, p.out, p.out
	shell.Env = append(os.Environ(), "REFOLD="+root, "GOPROXY=off", "GOSUMDB=off", "GOWORK=off")
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	shell.WaitDelay = time.Second
	if err := shell.Start(); err != nil {
		p.t.Fatal(err)
	}
	read.Close()
	p.stdin = write
	p.t.Cleanup(func() {
		write.Close()
		_ = syscall.Kill(-shell.Process.Pid, syscall.SIGKILL)
		_ = shell.Wait()
		if p.t.Failed() {
			p.t.Logf("%s", tail(p.out.String(), 4000))
		}
	})
}

// run types a command, and returns what it prints, as the document writes it.
func (p *player) run(s typed) (prints string) {
	p.t.Helper()
	command := p.here.Replace(s.command)
	looks := strings.HasPrefix(s.command, "bin/refold ") && !strings.Contains(s.command, " approve ")
	deadline := time.Now().Add(playWithin)
	for {
		var status string
		prints, status = p.typeIn(command)
		// What is written is not what a look that is too early shows.
		shows := prints == s.prints || *rewrite && !strings.HasPrefix(prints, "no call")
		over := !looks || time.Now().After(deadline)
		switch {
		case status == "0" && (shows || over):
			return prints
		case over:
			p.t.Fatalf("$ %sstatus %s, and it prints\n%s", s.command, status, prints)
		}
	}
}

// typeIn types a command and waits for its end.
func (p *player) typeIn(command string) (prints, status string) {
	p.t.Helper()
	p.count++
	mark := fmt.Sprintf("-- %d ended:", p.count)
	before := len(p.out.String())
	// What the command reads is not the rest of the script.
	if _, err := fmt.Fprintf(p.stdin, "{ %s} </dev/null\necho '%s' $?\n", command, mark); err != nil {
		p.t.Fatal(err)
	}
	var ended bool
	until(p.t, playWithin, "the end of "+command, func() bool {
		prints, status, ended = strings.Cut(p.out.String()[before:], mark)
		return ended && strings.HasSuffix(status, "\n")
	})
	prints = p.there.Replace(prints)
	for _, d := range differing {
		prints = d.what.ReplaceAllString(prints, d.is)
	}
	return inOrder(prints), strings.TrimSpace(status)
}

// inOrder sorts lines about calls that ran concurrently, which end in any order: those
// that stand together and say that a call succeeded.
func inOrder(prints string) string {
	lines := strings.SplitAfter(prints, "\n")
	for i := 0; i < len(lines); {
		n := i
		for n < len(lines) && strings.HasPrefix(lines[n], "   …    succeeded ") {
			n++
		}
		slices.Sort(lines[i:n])
		i = max(n, i+1)
	}
	return strings.Join(lines, "")
}
