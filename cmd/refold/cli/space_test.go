package cli

// refold space: folders are checked without a server; a session syncs,
// compares, applies and detaches what a bridge reads from a folder; failures
// are reported with what to do.

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/internal/bus/bustest"
)

// folder writes files into a folder of one test and returns its path.
func folder(t *testing.T, name string, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	for path, content := range files {
		put(t, dir, path, content)
	}
	return dir
}

// put writes one file of a folder.
func put(t *testing.T, dir, path, content string) {
	t.Helper()
	full := filepath.Join(dir, filepath.FromSlash(path))
	bustest.OK(t, os.MkdirAll(filepath.Dir(full), 0o750))
	bustest.OK(t, os.WriteFile(full, []byte(content), 0o600))
}

// support is a workspace with one of everything.
func support() map[string]string {
	return map[string]string{
		"agent.workspace.json": `{"v": 1, "name": "support", "version": "1.4.2",
  "prompts": {"default": "prompts/default.json", "short": "prompts/short.md"},
  "tools": {"default": "tools/default.json"},
  "context": {"docs": ["docs/*.md"]}
}`,
		"prompts/default.json": `{"parts": ["prompts/base.md", {"context": "docs"}, {"role": "user", "text": "Hi"}, {"role": "assistant", "text": "Hello"}]}`,
		"prompts/base.md":      "You help {{session}} in {{fact.region}}.\n",
		"prompts/short.md":     "Be short.\n",
		"tools/default.json":   `{"tools": ["crm.lookup"]}`,
		"docs/a.md":            "Ann\n",
	}
}

// spaceRecord has a grant, and two tools of a bridge.
const spaceRecord = `{"v":1,"rules":1,"config":{"provider":"p","model":"m"},"spaces":[{"space":"support","target":"files"},{"space":"odd","target":"nobody","may":["prompt"]}],"tools":[
	{"tool_id":"crm.lookup","tool_name":"lookup","args_schema":{"type":"object"},"executor":{"kind":"effect","target":"crm"}},
	{"tool_id":"crm.pay","tool_name":"pay","args_schema":{"type":"object"},"executor":{"kind":"effect","target":"crm"}}]}`

// runs runs a command that needs no server.
func runs(t *testing.T, status int, args ...string) (out, errOut string) {
	t.Helper()
	var o, e text
	if got := Main(t.Context(), args, strings.NewReader(""), &o, &e); got != status {
		t.Errorf("%q: got status %d, want %d\n%s%s", args, got, status, o.String(), e.String())
	}
	return o.String(), e.String()
}

// serve runs a bridge until the test ends.
func (w *world) serve(serve func(*bridge.Bridge) error) {
	w.t.Helper()
	b, err := bridge.Connect(w.ctx, bridge.Options{URL: w.node.URL()})
	bustest.OK(w.t, err)
	bustest.OK(w.t, serve(b))
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(w.ctx)
	go func() { ended <- b.Run(ctx) }()
	w.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			w.t.Errorf("bridge: %v", err)
		}
		b.Close()
	})
}

func TestSpaceCheckPrintsTheHash(t *testing.T) {
	t.Parallel()
	dir := folder(t, "any", support())
	out, errOut := runs(t, 0, "space", "check", dir)
	like(t, "valid", out, `^[0-9a-f]{64}  support 1\.4\.2: 5 files \(\d+ bytes\), 2 prompt packs, 1 catalog, 1 context group, 0 skills\n$`)
	if errOut != "" {
		t.Errorf("it warns: %q", errOut)
	}
	if again, _ := runs(t, 0, "space", "check", dir, "--name", "other"); again != out {
		t.Errorf("a name beside that of the index: got %q, want %q", again, out)
	}
	put(t, dir, "docs/unused.txt", "nobody names this")
	if again, _ := runs(t, 0, "space", "check", dir); again != out {
		t.Errorf("a file that nothing names: got %q, want %q", again, out)
	}
	put(t, dir, "docs/a.md", "Bob\n")
	if again, _ := runs(t, 0, "space", "check", dir); again == out {
		t.Error("another content has the same hash")
	}
}

// What a record refuses is reported with what the folder itself has wrong, and with
// the places in its files.
func TestSpaceCheckReportsProblemsOfTheRecordToo(t *testing.T) {
	t.Parallel()
	files := support()
	files["agent.workspace.json"] = `{"v": 1, "name": "support",
  "tools": {"default": "tools/default.json"},
  "context": {"docs": ["docs/*.md",
    "nothing/*.md"]},
  "skills": ["skils/*/SKILL.md"]
}`
	files["tools/default.json"] = `{"tools": [
  "crm.lookup",
  "lookup",
  {"tool": "crm.pay", "args_schema": {"$ref": "https://example.com/s.json"}},
  {"tool": "pay", "args_schema": {"properties": {"a": {"pattern": "(?=a)"}}}},
  "crm.nosuch"
 ],
 "tool_choice": "crm.pay"}`
	dir := folder(t, "support", files)
	record := file(t, strings.Replace(spaceRecord, `"rules":1,`, `"rules":1,"policy":{"coverage":"fail"},`, 1))
	out, _ := runs(t, statusFailed, "space", "check", dir, "--record", record)
	for _, want := range []string{
		`agent\.workspace\.json:4: context\.docs\[1\]: missing_file: "nothing/\*\.md" matches no file`,
		`agent\.workspace\.json:5: skills\[0\]: missing_file: "skils/\*/SKILL\.md" matches no file`,
		`tools/default\.json:3: .*: duplicate: catalog default names crm\.lookup twice: as "crm\.lookup", and as "lookup"`,
		`tools/default\.json:4: tools\[2\]\.args_schema: bad_schema: .*\$ref`,
		`tools/default\.json:5: tools\[3\]\.args_schema: bad_schema: `,
		`tools/default\.json:6: .*: unknown_tool: catalog default names "crm\.nosuch", which the registry does not bind`,
		`tools/default\.json:8: .*: unknown_tool: `,
	} {
		like(t, "problem", out, `(?m)`+want)
	}
}

func TestSpaceCheckReportsAllProblems(t *testing.T) {
	t.Parallel()
	files := support()
	files["prompts/base.md"] = "a\n{{fact.}}\n{{who}}\n"
	files["tools/default.json"] = "{\n \"tools\": [],\n \"color\": 1\n}"
	dir := folder(t, "any", files)
	out, errOut := runs(t, statusFailed, "space", "check", dir)
	base, tools := filepath.Join(dir, "prompts/base.md"), filepath.Join(dir, "tools/default.json")
	like(t, "problems", out, `^`+base+`:2: unknown_variable: .*\n`+base+`:3: unknown_variable: there is no variable "who".*\n`+tools+`:3: color: unknown_field: .*\n$`)
	like(t, "verdict", errOut, `^refold: 3 problems\n$`)

	_, errOut = runs(t, statusUsage, "space", "check", filepath.Join(dir, "none"))
	like(t, "no folder", errOut, `none.*see refold space check --help`)
	out, errOut = runs(t, statusFailed, "space", "check", folder(t, "empty", map[string]string{"x": ""}))
	like(t, "nothing in it", out+errOut, `agent\.workspace\.json: missing_file: .*AGENTS\.md.*\nrefold: 1 problem\n$`)
}

func TestSpaceCheckFindsSecrets(t *testing.T) {
	t.Parallel()
	files := support()
	files["docs/a.md"] = "first\nsk-" + strings.Repeat("a1", 20) + "\n"
	dir := folder(t, "any", files)
	out, errOut := runs(t, statusFailed, "space", "check", dir)
	like(t, "told", out+errOut, `docs/a\.md:2: secret_in_file: .*\nrefold: 1 problem\n$`)
	if strings.Contains(out+errOut, "a1a1") {
		t.Error("it repeats the key")
	}
	runs(t, 0, "space", "check", dir, "--allow-secrets")
}

func TestSpaceCheckAgainstARecord(t *testing.T) {
	t.Parallel()
	dir, record := folder(t, "any", support()), file(t, spaceRecord)
	runs(t, 0, "space", "check", dir, "--record", record)
	out, errOut := runs(t, statusFailed, "space", "check", dir, "--record", file(t, `{"v":1,"rules":1,"tools":[]}`))
	like(t, "no grant", out, `^[0-9a-f]{64}  support`)
	like(t, "no grant", errOut, `^refold: no grant of the record trusts this manifest: no grant is about "support"\n$`)
	_, errOut = runs(t, statusFailed, "space", "check", dir, "--record", file(t, strings.Replace(spaceRecord, `"target":"files"`, `"digests":["`+strings.Repeat("0", 64)+`"]`, 1)))
	like(t, "another digest", errOut, `trusts this manifest: the manifest is none of the grant's digests`)
	_, errOut = runs(t, statusFailed, "space", "check", dir, "--record", file(t, `{`))
	like(t, "a broken record", errOut, `^refold: .*record\.json: install record: `)

	// What the policy decides over a tool that nobody binds.
	put(t, dir, "tools/default.json", `["crm.lookup", "crm.refund"]`)
	out, errOut = runs(t, 0, "space", "check", dir, "--record", record)
	like(t, "warn", errOut, `^refold: warning: .*/tools/default\.json:1: catalogs\[0\]\.tools\[1\]: unknown_tool: catalog default names "crm\.refund"`)
	like(t, "warn", out, `^[0-9a-f]{64}  support`)
	fail := file(t, strings.Replace(spaceRecord, `"rules":1`, `"rules":1,"policy":{"coverage":"fail"}`, 1))
	out, errOut = runs(t, statusFailed, "space", "check", dir, "--record", fail)
	like(t, "fail", out+errOut, `^.*/tools/default\.json:1: catalogs\[0\]\.tools\[1\]: unknown_tool: .*\nrefold: 1 problem\n$`)

	// What the grant does not allow is told beside it.
	odd := folder(t, "odd", map[string]string{"AGENTS.md": "x", "tools/a.json": `{"tool": "crm.lookup", "description": "other"}`})
	out, errOut = runs(t, statusFailed, "space", "check", odd, "--record", record)
	like(t, "may", out, `^words: not_granted: .*rewords\n$`)
	like(t, "no index", errOut, `refold: warning: .*odd/agent\.workspace\.json: no_index`)
}

func TestSpaceIndexWritesScan(t *testing.T) {
	t.Parallel()
	dir := folder(t, "scanned", map[string]string{"AGENTS.md": "Be brief.\n", "tools/a.json": `["crm.lookup"]`})
	before, errOut := runs(t, 0, "space", "check", dir)
	like(t, "a scan warns", errOut, `no_index: .*refold space index DIR`)
	index, _ := runs(t, 0, "space", "index", dir)
	like(t, "index", index, `(?s)^\{\n  "v": 1,.*"AGENTS\.md".*"tools/a\.json".*\}\n$`)
	put(t, dir, "agent.workspace.json", index)
	after, errOut := runs(t, 0, "space", "check", dir)
	if errOut != "" || after[64:] != before[64:] || after == before {
		t.Errorf("with the index: got %q and %q, want %q under another hash, since it was not scanned", after, errOut, before)
	}
	_, errOut = runs(t, statusFailed, "space", "index", dir)
	like(t, "there is one", errOut, `^refold: .*there is agent\.workspace\.json already: edit it`)
	_, errOut = runs(t, statusFailed, "space", "index", folder(t, "empty", map[string]string{"x": ""}))
	like(t, "nothing", errOut, `nothing that a scan finds: tools/\*\.json, AGENTS\.md`)
}

// The life of a workspace, as an operator sees it.
func TestSpaceIsSyncedAppliedAndDetached(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.does(0, "install", file(t, spaceRecord))
	dir := folder(t, "any", support())
	w.serve(func(b *bridge.Bridge) error { return b.Space("files", bridge.Folder{Dir: dir}) })

	w.prints(statusFailed, `^refold: session s1: the log holds no event`, "space", "apply", "s1")
	w.prints(statusFailed, `(?s)^support 1\.4\.2 would be staged: manifest ([0-9a-f]{64}); the session has none\n.*  added    docs/a\.md\n.*  added    catalog default\n`, "space", "sync", "s1", "support", "--dry")
	w.prints(0, `^support 1\.4\.2 is staged: manifest [0-9a-f]{64} \(y2\)\n  refold space diff s1 shows what is new; refold space apply s1 applies it\n$`, "space", "sync", "s1", "support")
	w.prints(0, `^support: nothing would change: manifest [0-9a-f]{64} is staged\n$`, "space", "sync", "s1", "support", "--dry")
	w.prints(0, `(?s)^support 1\.4\.2 is staged \([0-9a-f]{12}\), no workspace is applied\n  added    docs/a\.md\n.*  changed  version: none to "1\.4\.2"\n`, "space", "diff", "s1")
	w.prints(statusFailed, `^refold: rejected: stale: .*\n  another manifest is staged by now: refold space diff s1\n$`, "space", "apply", "s1", "--hash", strings.Repeat("0", 64))
	w.prints(statusFailed, `^refold: rejected: workspace_invalid: .*no prompt pack "none-such"\n`, "space", "apply", "s1", "--prompt-pack", "none-such")
	w.prints(0, `^support 1\.4\.2 is pending: manifest [0-9a-f]{64}; it is applied when the next run starts\n$`, "space", "apply", "s1")
	w.prints(0, `^support 1\.4\.2 is unchanged: manifest [0-9a-f]{64} \(y4\)\n  it is applied when the next run starts\n$`, "space", "sync", "s1", "support")
	w.prints(0, `^support 1\.4\.2 is pending \([0-9a-f]{12}\), no workspace is applied\n`, "space", "diff", "s1", "support")

	w.says(session.DoorIn, "s1", session.TypeRunRequested, `{"input":{"text":"hi"}}`)
	w.reaches("s1", "the workspace is applied", func(v session.View) bool { return v.Workspace != nil && v.Turn != nil })
	w.prints(statusFailed, `^refold: no workspace is staged or pending in session s1: refold space sync s1 SPACE\n$`, "space", "diff", "s1")

	put(t, dir, "docs/a.md", "Ann and Bob\n")
	put(t, dir, "docs/b.md", "Bob\n")
	put(t, dir, "tools/default.json", `{"tools": ["crm.pay", {"tool": "crm.lookup", "description": "Look."}]}`)
	w.prints(statusFailed, `^support 1\.4\.2 would be staged: .*; support 1\.4\.2 is applied \([0-9a-f]{12}\)\n`+
		`  changed  docs/a\.md: 4 to 12 bytes\n  added    docs/b\.md\n`+
		`  changed  catalog default: \+crm\.pay, reworded crm\.lookup\n  changed  context group docs: docs/a\.md to docs/a\.md, docs/b\.md\n$`,
		"space", "sync", "s1", "support", "--dry")
	w.prints(0, `^support 1\.4\.2 is staged: .*\n  it is applied before the next turn\n(unserved: s1 waits for llm/p .*\n)?$`, "space", "sync", "s1", "support", "--apply", "next_step_boundary", "--prompt-pack", "short")
	w.settle("s1", "r1t1", map[string]any{"text": map[string]any{"text": "hello"}})
	w.reaches("s1", "the run is over", func(v session.View) bool { return v.Run == nil })
	put(t, dir, "tools/default.json", `{"tools": ["crm.pay"]}`)
	w.prints(0, `is staged: .*\n  refold space diff s1 shows`, "space", "sync", "s1", "support", "--only", "tools")
	w.prints(0, `^support 1\.4\.2 is applied: manifest [0-9a-f]{64}\n$`, "space", "apply", "s1", "support", "--mode", "immediate_if_idle")
	w.prints(0, `^support is detached; no workspace is applied\n$`, "space", "detach", "s1", "support")
	w.prints(statusFailed, `^refold: rejected: unknown_space: .*\n  refold view s1 shows`, "space", "detach", "s1", "support")
	w.prints(statusFailed, `^refold: rejected: nothing_staged: .*\n  read it first: refold space sync s1 SPACE\n$`, "space", "apply", "s1")
	w.prints(0, `state [0-9a-f]{64}\n$`, "replay", "s1", "--verify")
}

func TestSpaceSyncReportsFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.does(0, "install", file(t, strings.Replace(spaceRecord, `"rules":1`, `"rules":1,"policy":{"coverage":"fail"}`, 1)))
	files := support()
	files["prompts/base.md"] = "{{who}}\n\n{{what}}\n"
	files["tools/default.json"] = `["crm.refund"]`
	dir := folder(t, "any", files)
	w.serve(func(b *bridge.Bridge) error { return b.Space("files", bridge.Folder{Dir: dir}) })
	w.prints(statusFailed, `^prompts/base\.md:1: unknown_variable: .*\nprompts/base\.md:3: unknown_variable: .*\n`+
		`session s1 is new: this opens it\nrefold: support is not staged: workspace_invalid: .*\n  correct it, try it with refold space check, and sync again; what session s1 has applied stays\n$`, "space", "sync", "s1", "support")
	put(t, dir, "prompts/base.md", "fine\n")
	w.prints(statusFailed, `^catalogs\[0\]\.tools\[0\]: unknown_tool: catalog default names "crm\.refund".*\nrefold: support is not staged: workspace_invalid`, "space", "sync", "s1", "support")
	put(t, dir, "tools/default.json", `["crm.lookup"]`)
	w.prints(statusFailed, `^refold: support is not staged: version_unknown: .*\n  the file of refold bridge serve --spaces lists`, "space", "sync", "s1", "support", "--version", "v9")
	w.prints(statusFailed, `(?s)^support 1\.4\.2 is staged: .*refold: support is not applied: workspace_invalid: tool_catalog: .*no catalog "big"`,
		"space", "sync", "s1", "support", "--apply", "next_run", "--tool-catalog", "big")
	w.prints(statusFailed, `^refold: rejected: unknown_space: .*no grant is about "other".*\n.*refold install --space`, "space", "sync", "s1", "other")
	for want, args := range map[string][]string{
		`--only words: prompts, tools, context or skills`:    {"--only", "words"},
		`--apply soon: next_run, next_step_boundary or`:      {"--apply", "soon"},
		`--dry stages nothing: leave out --apply and --only`: {"--dry", "--apply", "next_run"},
		`--prompt-pack and --tool-catalog go with --apply`:   {"--prompt-pack", "short"},
	} {
		w.prints(statusUsage, want, append([]string{"space", "sync", "s1", "support"}, args...)...)
	}
	w.prints(statusUsage, `--mode soon: next_run`, "space", "apply", "s1", "--mode", "soon")

	// Nobody reads it: that is told while the command waits, and it can be left.
	waiting := w.begin("", "space", "sync", "s1", "odd")
	waiting.err.shows(t, `unserved: s1 waits for space/nobody \(y\d+\): start refold bridge serve --spaces FILE`)
	waiting.stop()
	if _, errOut := w.end(waiting, statusInterrupted); !strings.HasSuffix(errOut, "refold: stopped; the sync continues: refold tail s1 --all --follow prints its end\n") {
		t.Errorf("it prints %q", errOut)
	}
	waiting = w.begin("", "space", "sync", "s1", "odd", "--version", "2")
	w.reaches("s1", "the sync is open", func(v session.View) bool { return len(v.Syncs) == 1 && v.Syncs[0].Effect == "y6" })
	w.does(0, "space", "detach", "s1", "odd")
	if _, errOut := w.end(waiting, statusFailed); !strings.Contains(errOut, "refold: odd is not staged: cancelled: the space was detached\n") {
		t.Errorf("detached meanwhile: it prints %q", errOut)
	}
}
