package docs_test

// The daemons are started as `refold bridge serve` and `refold actor serve`, or as
// the binaries refold-bridge and refold-session-actor. A program called bridge is
// somebody else's on many systems: iproute2 installs /usr/sbin/bridge.

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// wrongNames match a line that tells people to run a daemon by a name that is not
// its own, or to build one under such a name.
var wrongNames = []*regexp.Regexp{
	regexp.MustCompile(`(?:^|[^\w/.-])(?:\./|(?:/\w+)*/?s?bin/)?(?:bridge|session-actor)[ \t]+--?[a-z]`),
	regexp.MustCompile(`s?bin/(?:bridge|session-actor)\b`),
	regexp.MustCompile(`^(?: {4,}|\t+|\s*\$ )(?:\w+=\S+ )*(?:bridge|session-actor)\s*(?:$|#|&|\|)`),
	regexp.MustCompile(`(?i:ENTRYPOINT|CMD|command:|argv:|args:)\s*\[\s*"(?:bridge|session-actor)"`),
	regexp.MustCompile(`\b(?:[Ss]tart|[Rr]estart|[Rr]un|exec|sudo|nohup|command -v) (?:` + "`?)(?:bridge|session-actor)(?:`|$|[ ,.;:\"])"),
	regexp.MustCompile(`(?:ExecStart|exec:)\s*[=:]?\s*(?:bridge|session-actor)\b`),
	regexp.MustCompile("`(?:bridge|session-actor)`"),
	regexp.MustCompile(`go install \S*cmd/(?:\.\.\.|bridge|session-actor)`),
	regexp.MustCompile(`go build .*-o \S*/ \S*cmd/(?:\.\.\.|bridge|session-actor)`),
}

// notPrograms match what has the same names and is no program: the Go package, and
// the kind in the subjects of heartbeats.
var notPrograms = regexp.MustCompile("[Pp]ackage `bridge`|packages? .*`bridge`|in `bridge`|Users of `bridge`|kind,? `session-actor` or `bridge`|iproute2's `bridge`")

// hasWrongName reports whether a line tells people to run a daemon by a wrong name.
func hasWrongName(line string) bool {
	line = notPrograms.ReplaceAllString(line, "")
	for _, wrong := range wrongNames {
		if wrong.MatchString(line) {
			return true
		}
	}
	return false
}

func TestWrongNamesAreFound(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"    bridge --model openai":                                 true,
		"$ OPENAI_API_KEY=x bridge --model openai":                  true,
		"`bridge --tools host` serves them":                         true,
		"no bridge serves it: start bridge --model openai":          true,
		"    session-actor --http 127.0.0.1:9464":                   true,
		"    session-actor     # in another terminal":               true,
		"start session-actor":                                       true,
		"then run `session-actor`":                                  true,
		"`bridge` serves them":                                      true,
		`ENTRYPOINT ["bridge"]`:                                     true,
		"  command: [\"session-actor\", \"--replicas\", \"3\"]":     true,
		"ExecStart=/usr/local/bin/bridge --model openai":            true,
		"ExecStart=bridge --model openai":                           true,
		"./bridge --model openai":                                   true,
		"    go install ./cmd/...":                                  true,
		"go build -trimpath -o bin/ ./cmd/...":                      true,
		"go install github.com/refold/refold/cmd/bridge@latest":     true,
		"    refold bridge serve --model openai":                    false,
		"refold-bridge --model openai":                              false,
		"    refold-session-actor     # in another terminal":        false,
		"    go run ./cmd/bridge --model openai":                    false,
		"    refold bridge doctor --json":                           false,
		"go build -o /usr/local/bin/refold-bridge ./cmd/bridge":     false,
		"start a bridge, or run another session-actor":              false,
		"package `bridge` serves tools":                             false,
		"heartbeats; kind `session-actor` or `bridge`":              false,
		"  image: refold/bridge":                                    false,
		"session-actor: fold, then publish":                         false,
		"| `refold-bridge` | calls models |":                        false,
		"target: bridge-js -- node bridge.js":                       false,
		"    nats micro stats refold-bridge    counters and caches": false,
	} {
		if got := hasWrongName(line); got != want {
			t.Errorf("%q: got %t, want %t", line, got, want)
		}
	}
}

// TestNobodyIsToldToRunBridge: no document, script, compose file, help text or
// error tells people to run a program called bridge or session-actor.
func TestNobodyIsToldToRunBridge(t *testing.T) {
	t.Parallel()
	read := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); name == "node_modules" || name == "bin" || path != "." && strings.HasPrefix(name, ".") {
				return filepath.SkipDir
			}
			return nil
		}
		switch name := d.Name(); {
		case strings.HasSuffix(name, "_test.go"):
			return nil
		case slices.Contains(strings.Fields(".go .md .yml .yaml .sh .json .js .service .conf .toml .txt"), filepath.Ext(name)), filepath.Ext(name) == "":
		default:
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		read++
		for i, line := range strings.Split(string(text), "\n") {
			if hasWrongName(line) {
				t.Errorf("%s:%d: name the program refold-bridge or refold-session-actor, or the command that starts it: %s", path, i+1, strings.TrimSpace(line))
			}
		}
		return nil
	})
	if err != nil || read < 500 {
		t.Errorf("read %d files: %v", read, err)
	}
}
