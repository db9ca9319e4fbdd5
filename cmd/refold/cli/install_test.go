package cli

// refold install: what it publishes and when it publishes nothing; its output
// can be published again.

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
)

// builtinHash is the hash of the built-in record.
func builtinHash(t *testing.T) string {
	t.Helper()
	install, err := session.ParseInstall(session.BuiltinInstall())
	bustest.OK(t, err)
	return install.Hash.String()
}

// file writes a file for one test.
func file(t *testing.T, content string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "record.json")
	bustest.OK(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// like reports on an output that does not look as it should.
func like(t *testing.T, what, got, pattern string) {
	t.Helper()
	if !regexp.MustCompile(pattern).MatchString(got) {
		t.Errorf("%s: got %q, want %s", what, got, pattern)
	}
}

func TestInstallPublishesWhatIsNew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	last := func() uint64 {
		t.Helper()
		seq, err := w.LastEvent(w.ctx)
		bustest.OK(t, err)
		return seq
	}
	out, errOut := w.does(0, "install", "--builtin")
	like(t, "published", out+errOut, `^published at 2: hash `+builtinHash(t)+`, 15 tools, 3 profiles; sessions that have an event keep the record that they pinned\n$`)

	// What is shown is the same record, however it is written.
	shown, told := w.does(0, "install", "--show")
	like(t, "told", told, `^sequence 2, hash `+builtinHash(t)+`\n$`)
	like(t, "shown", shown, `(?s)^\{\n  "config": \{\n    "context": \{\}\n  \},\n  "default_profile": .*"rules": 1,.*\}\n$`)
	for _, again := range []string{file(t, shown), file(t, string(session.BuiltinInstall()))} {
		out, errOut = w.does(0, "install", again)
		like(t, "again", out+errOut, `^nothing published: the record at 2 is the same: hash `+builtinHash(t)+`, 15 tools`)
	}
	if got := last(); got != 2 {
		t.Errorf("the log ends at %d, want 2: nothing new was published", got)
	}

	// A changed one on standard input; then the former one again, which is new again.
	changed := strings.Replace(shown, `"context": {}`, `"provider": "p", "model": "m"`, 1)
	out, _ = w.end(w.begin(changed, "install", "-"), 0)
	like(t, "changed", out, `^published at 3: hash [0-9a-f]{64}, 15 tools`)
	out, _ = w.does(0, "install", "--builtin")
	like(t, "changed back", out, `^published at 4: hash `+builtinHash(t))
}

// A rule for a name that no tool has is published, with a warning: a misspelt
// name guards nothing.
func TestInstallWarnsOfRulesForNoTool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	record := `{"v":1,"rules":1,"policy":{"approval":[{"decision":"deny","tools":["rm","fs.rm","delete","fs.rn"]},{"decision":"ask"},{"decision":"ask","tools":["later"]}]},"tools":[
		{"tool_id":"fs.rm","tool_name":"rm","alternates":[{"tool_name":"delete","args_schema":{"type":"object"}}],"args_schema":{"type":"object","required":["p"]},"executor":{"kind":"effect","target":"fs"}}]}`
	const want = `^warning: policy\.approval\[0\]\.tools\[3\]: no tool of the record has the tool_id or tool_name "fs\.rn": .*\n` +
		`warning: policy\.approval\[2\]\.tools\[0\]: no tool of the record has the tool_id or tool_name "later": .*\n$`
	for _, args := range [][]string{{"install", "--dry-run"}, {"install"}} {
		out, errOut := w.does(0, append(args, file(t, record))...)
		like(t, "warnings", errOut, want)
		like(t, "told", out, `^(valid|published at 2): .*1 tools`)
	}
	_, errOut := w.does(0, "install", "--builtin")
	like(t, "the built-in record", errOut, `^$`)
}

// A fault is reported with its path, and nothing is published.
func TestInstallRefusesAFault(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, c := range map[string]struct{ record, want string }{
		"no record":      {"hello", `record.json: install record: `},
		"a profile":      {`{"v":1,"rules":1,"tools":[],"profiles":[{"profile":"a","tools":["nothing"]}]}`, `profiles\[0\].*nothing`},
		"a config":       {`{"v":1,"rules":1,"tools":[],"config":{"provider":"p","model":"m","disable":["x"]}}`, `config\.disable\[0\].*"x"`},
		"an ingress":     {`{"v":1,"rules":1,"tools":[],"policy":{"ingress":["colour"]}}`, `policy\.ingress\[0\].*"colour"`},
		"later rules":    {`{"v":1,"rules":900,"tools":[]}`, `rules 900, .*upgrade`},
		"an unknown key": {`{"v":1,"rules":1,"tools":[],"tolls":[]}`, `tolls`},
	} {
		path := file(t, c.record)
		for _, args := range [][]string{{"install", path}, {"install", "--dry-run", path}, {"tools", "check", path}} {
			out, errOut := w.does(statusFailed, args...)
			if like(t, name, errOut, `^refold: .*`+c.want+`.*\n$`); out != "" {
				t.Errorf("%s: it prints %q", name, out)
			}
		}
	}
	if last, err := w.LastEvent(w.ctx); err != nil || last != 1 {
		t.Errorf("the log ends at %d (%v), want 1: nothing was published", last, err)
	}
}

// The record that sessions pin is not always the newest message: sessions
// ignore an invalid one, published by other means.
func TestInstallShowsAndListsRecords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.does(0, "install", "--builtin")
	for _, payload := range []string{`{"v":1,"rules":1}x`, `{"v":1,"rules":1,"tools":[{"tool_id":"!"}]}`} {
		if _, _, err := w.bus.PublishInstall(w.ctx, []byte(payload), false); err != nil {
			t.Fatal(err)
		}
	}
	out, _ := w.does(0, "install", "--list")
	day := `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`
	like(t, "list", out, `^SEQ +TIME +HASH +TOOLS +PROFILES +RULES +NOTE\n`+
		`1 +`+day+` +[0-9a-f]{64} +0 +0 +1\n`+
		`2 +`+day+` +`+builtinHash(t)+` +15 +3 +1 +new sessions pin it\n`+
		`3 +`+day+` +- +- +- +- +no session pins it: install record: .*\n`+
		`4 +`+day+` +[0-9a-f]{64} +- +- +- +no session pins it: install record: .*tools\[0\].*\n$`)
	out, errOut := w.does(0, "install", "--builtin")
	like(t, "same as the pinned one", out+errOut, `^nothing published: the record at 2 is the same`)

	shown, _ := w.does(0, "install", "--show")
	for _, args := range [][]string{{"--seq", "2"}, {"--hash", builtinHash(t)[:8]}} {
		if got, _ := w.does(0, append([]string{"install", "--show"}, args...)...); got != shown {
			t.Errorf("%v: it shows another record than without it: %q", args, got)
		}
	}
	first, _ := w.does(0, "install", "--show", "--seq", "1")
	like(t, "the first", first, `"tools": \[\]`)
	_, errOut = w.does(0, "install", "--show", "--seq", "4")
	like(t, "a faulty one", errOut, `^sequence 4, hash [0-9a-f]{64}\nrefold: warning: install record: .*tools\[0\]`)
	for want, args := range map[string][]string{
		"the record at 3: install record":                     {"--seq", "3"},
		"no install record is at 9: refold install --list":    {"--seq", "9"},
		"no install record has the hash 123z: refold install": {"--hash", "123z"},
		"no install record has the hash 00000000: refold ins": {"--hash", "00000000"}, // the one that can't be read has none
	} {
		_, errOut := w.does(statusFailed, append([]string{"install", "--show"}, args...)...)
		like(t, "show", errOut, want)
	}
}

// A record of a later release is pinned, though not by this one.
func TestRecordOfLaterRulesIsNewest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, _, err := w.bus.PublishInstall(w.ctx, []byte(`{"v":1,"rules":900,"colours":3}`), false); err != nil {
		t.Fatal(err)
	}
	out, _ := w.does(0, "install", "--list")
	like(t, "list", out, `\n2 +\S+ +[0-9a-f]{64} +- +- +900 +new sessions pin it\n$`)
	out, errOut := w.does(0, "install", "--show")
	like(t, "show", out, `"colours": 3`)
	like(t, "show", errOut, `^sequence 2, hash [0-9a-f]{64}\nrefold: warning: .*rules 900`)
	_, errOut = w.does(statusFailed, "tools", "check")
	like(t, "check", errOut, `^refold: the record at 2: .*rules 900, .*upgrade`)
	out, _ = w.does(0, "install", "--builtin")
	like(t, "going back", out, `^published at 3: `)
}

// Two records whose hashes have a common prefix are not confused.
func TestAmbiguousHashPrefixIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	byFirst := map[byte]string{}
	for turns := 1; ; turns++ {
		record := fmt.Sprintf(`{"v":1,"rules":1,"tools":[],"config":{"provider":"p","model":"m","turns_max":%d}}`, turns)
		install, err := session.ParseInstall([]byte(record))
		bustest.OK(t, err)
		first := install.Hash.String()[0]
		other, taken := byFirst[first]
		if byFirst[first] = record; !taken {
			continue
		}
		w.does(0, "install", file(t, record))
		w.does(0, "install", file(t, other))
		_, errOut := w.does(statusFailed, "install", "--show", "--hash", string(first))
		like(t, "ambiguous", errOut, `begin with `+string(first)+`: give more of it
$`)
		_, errOut = w.does(0, "install", "--show", "--hash", install.Hash.String())
		like(t, "unambiguous", errOut, `^sequence 2, hash `+install.Hash.String())
		return
	}
}

// Without streams the error names what is missing.
func TestInstallWithoutStreams(t *testing.T) {
	t.Parallel()
	var out, errOut text
	node := bustest.Server(t)
	for _, args := range [][]string{{"install", "--builtin"}, {"install", "--list"}, {"install", "--show"}, {"tools", "check"}} {
		if status := Main(t.Context(), append([]string{"--nats", node.URL()}, args...), nil, &out, &errOut); status != statusFailed {
			t.Errorf("%v: status %d, %q", args, status, out.String())
		}
	}
	for line := range strings.Lines(errOut.String()) {
		like(t, "no streams", line, "start a session-actor once")
	}
}
