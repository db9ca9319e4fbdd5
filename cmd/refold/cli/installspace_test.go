package cli

// refold install --space and refold dev --workspace: a fresh session starts
// with a workspace whose files are already stored. refold prompt and tools read
// only the log and the blob store.

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus/bustest"
)

func TestInstallStoresManifestsOfTheRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir, record := folder(t, "any", support()), file(t, spaceRecord)
	hash, _ := runs(t, 0, "space", "check", dir)
	hash = hash[:64]
	out, errOut := runs(t, 0, "install", record, "--space", "support="+dir, "--dry-run")
	like(t, "dry", out+errOut, `^valid: hash [0-9a-f]{64}, 2 tools, \d+ profiles?, workspace support 1\.4\.2, rules 1; nothing is published\n$`)
	out, errOut = w.does(0, "install", record, "--space", "support="+dir)
	like(t, "published", out+errOut, `^published at \d+: hash [0-9a-f]{64}, 2 tools, .*, workspace support 1\.4\.2; sessions that have an event`)
	w.prints(0, `^nothing published: the record at \d+ is the same`, "install", record, "--space", "support="+dir)
	ref, err := codec.ParseRef("sha256-" + hash)
	bustest.OK(t, err)
	if _, err := w.Blob(w.ctx, ref); err != nil {
		t.Errorf("the manifest is not stored: %v", err)
	}

	w.says(session.DoorIn, "s1", session.TypeRunRequested, `{"input":{"text":"hi"}}`)
	w.reaches("s1", "its turn is asked", turnOf("r1t1"))
	if v := w.view("s1"); v.Workspace == nil || v.Workspace.Hash != hash || v.Turn.Base != "catalog" || len(v.Turn.Prompt.Parts) != 4 {
		t.Errorf("the view: got %+v of %+v", v.Turn, v.Workspace)
	}

	// Alone it goes into the record that there is, and only new sessions get it.
	put(t, dir, "docs/a.md", "other\n")
	out, _ = w.does(0, "install", "--space", "support="+dir)
	like(t, "alone", out, `^published at`)
	shown, _ := w.does(0, "install", "--show")
	like(t, "the rest of the record stays", shown, `(?s)"manifest": \{.*"target": "files".*"space": "odd"`)
	if v := w.view("s1"); v.Workspace.Hash != hash {
		t.Error("the session that is there has another workspace now")
	}
}

func TestInstallRefusesAFolder(t *testing.T) {
	t.Parallel()
	files := support()
	files["prompts/base.md"] = "{{who}}"
	broken, fine, record := folder(t, "any", files), folder(t, "any", support()), file(t, spaceRecord)
	out, errOut := runs(t, statusFailed, "install", record, "--dry-run", "--space", "support="+broken)
	like(t, "broken", out+errOut, `^.*prompts/base\.md:1: unknown_variable: .*\nrefold: .*any: 1 problem\n$`)
	_, errOut = runs(t, statusFailed, "install", record, "--dry-run", "--space", "other="+fine)
	like(t, "another name", errOut, `^refold: .*: its index calls the space support, not other: use that name\n$`)
	_, errOut = runs(t, statusFailed, "install", record, "--dry-run", "--space", "support="+fine, "--space", "odd="+folder(t, "odd", map[string]string{"AGENTS.md": "x"}))
	like(t, "two", errOut, `refold: .*record\.json: install record: spaces\[1\]\.manifest: a record brings one workspace`)
	_, errOut = runs(t, statusFailed, "install", record, "--dry-run", "--space", "support="+filepath.Join(fine, "none"))
	like(t, "no folder", errOut, `none: .*no such file`)
	for _, wrong := range []string{"support", "sup port=" + fine, "refold=" + fine, "support="} {
		_, errOut = runs(t, statusUsage, "install", record, "--space", wrong)
		like(t, wrong, errOut, `--space .*: is NAME=DIR`)
	}
	_, errOut = runs(t, statusUsage, "install", "--show", "--space", "support="+fine)
	like(t, "with --show", errOut, `--space goes with FILE or --builtin, or stands alone`)
	_, errOut = runs(t, statusUsage, "install", "--dry-run", "--space", "support="+fine)
	like(t, "dry alone", errOut, `--dry-run goes with FILE or --builtin`)

	// A catalog that names what nobody binds is a warning, or refused by the policy.
	put(t, fine, "tools/default.json", `["crm.refund"]`)
	out, errOut = runs(t, 0, "install", record, "--dry-run", "--space", "support="+fine)
	like(t, "warn", errOut+out, `^refold: warning: catalogs\[0\]\.tools\[0\]: unknown_tool: .*\nvalid: `)
	_, errOut = runs(t, statusFailed, "install", file(t, strings.Replace(spaceRecord, `"rules":1`, `"rules":1,"policy":{"coverage":"fail"}`, 1)), "--dry-run", "--space", "support="+fine)
	like(t, "fail", errOut, `install record: spaces: support: catalogs\[0\]\.tools\[0\]: catalog default names "crm\.refund"`)
}

// A new space gets the settings of a matching wildcard grant.
func TestInstallCopiesWildcardGrant(t *testing.T) {
	t.Parallel()
	b := &bundled{name: "support-eu"}
	dir := folder(t, "support-eu", map[string]string{"AGENTS.md": "x"})
	built, err := readFolder(t.Context(), dir, "")
	bustest.OK(t, err)
	b.built = built
	record, err := b.into([]byte(`{"v":1,"rules":1,"tools":[],"spaces":[{"space":"a"},{"space":"support-*","target":"files","may":["prompt"]}]}`))
	bustest.OK(t, err)
	install, err := session.ParseInstall(record)
	bustest.OK(t, err)
	g := install.Record.Spaces
	if len(g) != 3 || g[1].Space != "support-eu" || g[1].Target != "files" || len(g[1].May) != 1 || len(g[1].Manifest) == 0 || g[2].Space != "support-*" || g[2].Manifest != nil {
		t.Errorf("got grants %+v", g)
	}
}

func TestPromptShowsWhatATurnShowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := folder(t, "any", support())
	record := strings.Replace(spaceRecord, `"model":"m"`, `"model":"m","system":"Be kind."`, 1)
	w.does(0, "install", file(t, record), "--space", "support="+dir)
	w.says(session.DoorCtl, "s1", session.TypeFactsSet, `{"facts":{"region":"EU"}}`)
	w.prints(statusFailed, `^refold: session s1 has not published a turn yet\n$`, "prompt", "s1")
	w.says(session.DoorIn, "s1", session.TypeRunRequested, `{"input":{"text":"hi"}}`)
	w.reaches("s1", "its turn is asked", turnOf("r1t1"))
	want := `^turn r1t1 of session s1: \d+ bytes of text in 4 parts and 0 images before the transcript; prompt_mark [0-9a-f]{64}\n` +
		`\n--- system text of the config or the step, 8 bytes\nBe kind\.\n` +
		`\n--- system, support prompts/base\.md, sha256-[0-9a-f]{64}, 19 bytes\nYou help s1 in EU\.\n` +
		`\n--- document, support docs/a\.md, sha256-[0-9a-f]{64}, \d+ bytes\n<document path="docs/a\.md">\nAnn\n</document>\n` +
		`\n--- user, support prompts/default\.json#2, sha256-[0-9a-f]{64}, 2 bytes\nHi\n` +
		`\n--- assistant, support prompts/default\.json#3, .*\nHello\n$`
	w.prints(0, want, "prompt", "s1")
	w.settle("s1", "r1t1", map[string]any{"text": map[string]any{"text": "hello"}})
	w.prints(0, want, "prompt", "s1", "r1t1")
	w.prints(statusFailed, `^refold: session s1 has no turn r1t2; it has r1t1\n$`, "prompt", "s1", "r1t2")
	w.prints(statusUsage, `a turn has a name such as r1t2`, "prompt", "s1", "r1")
	w.prints(0, `(?m)^turn r1t1 .*: tools of the catalog, registry [0-9a-f]{64}\nworkspace: support 1\.4\.2 \([0-9a-f]{12}\), prompt pack default, catalog default\n`, "tools", "s1", "--turn", "r1t1")
	w.prints(0, `pay \(crm\.pay\): hidden, step 1: the catalog's list leaves it out\n$`, "why", "s1", "pay", "--turn", "r1t1")
	w.prints(statusFailed, `turn r1t1 knows no tool "refund"; it knows .*; workspace support has no tools of its own: the install record binds the tools that its catalogs name\n$`, "why", "s1", "refund")

	// The blob of a part is gone: the rest is shown, and a replay needs none.
	ref := codec.RefOf([]byte("Ann\n"))
	w.deletes(ref)
	w.prints(statusFailed, `(?s)base\.md.*\n--- document, support docs/a\.md, .*, prompt_missing: the store does not have it\n.*Hello\nrefold: 1 part missing in the blob store: restore it`, "prompt", "s1")
	w.prints(0, `^replay: identical`, "replay", "s1", "--verify")
}

func TestPromptOfASessionWithoutOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.says(session.DoorIn, "s1", session.TypeRunRequested, `{"input":{"text":"hi"}}`)
	w.reaches("s1", "its turn is asked", turnOf("r1t1"))
	w.prints(0, `^turn r1t1 of session s1: 0 bytes of text in 0 parts and 0 images before the transcript; nothing comes before the transcript\n$`, "prompt", "s1")
	w.prints(statusFailed, `the log holds no event of this session`, "prompt", "none")
	w.prints(statusFailed, `the log holds no event of this session`, "space", "diff", "none")
}

func TestToolsCheckCountsReaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := folder(t, "any", support())
	put(t, dir, "tools/default.json", `["crm.lookup", "crm.refund"]`)
	w.does(0, "install", file(t, spaceRecord), "--space", "support="+dir)
	w.serve(func(b *bridge.Bridge) error { return b.Space("nobody", bridge.Folder{Dir: dir}) })
	out, errOut := w.does(0, "tools", "check", "--within", "0s")
	like(t, "rows", out, `(?m)^workspace support +space/files +no bridge: sessions start with the record's manifest, and can't sync it; catalog default names "crm\.refund"`)
	like(t, "rows", out, `(?m)^workspace odd +space/nobody +1 bridge\n`)
	like(t, "tally", out, `\nNOT covered: [01] of \d+ tools, 0 of 1 in the config, 1 of 2 workspaces, for the record at`)
	like(t, "warnings", errOut, `catalog default names "crm\.refund".*: add the tool to the install record, or take it out of the catalog \(workspace support\)`)
	like(t, "the session's own tools", errOut, `tool/refold: no bridge serves it: start any bridge`)
	w.does(statusFailed, "tools", "check", "--within", "0s", "--coverage", "fail")
	w.deletes(codec.RefOf([]byte("Ann\n")))
	w.says(session.DoorIn, "s1", session.TypeRunRequested, `{"input":{"text":"hi"}}`)
	out, _ = w.does(0, "tools", "check", "--session", "s1", "--within", "0s")
	like(t, "of a session", out, `(?m)^workspace support .*1 file not stored: refold install --space support=DIR, or sync it; catalog default names`)
}

// Under policy.coverage fail the fold decides at the sync, at the apply, at the
// boundary, and when a registry is set. The commands report each.
func TestCommandsReportCoverageFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := folder(t, "any", support())
	w.does(0, "install", file(t, strings.Replace(spaceRecord, `"rules":1`, `"rules":1,"policy":{"coverage":"fail"}`, 1)))
	w.serve(func(b *bridge.Bridge) error { return b.Space("files", bridge.Folder{Dir: dir}) })
	const pay = `{"tools":[{"tool_id":"crm.pay","tool_name":"pay","args_schema":{"type":"object"},"executor":{"kind":"effect","target":"crm"}}]}`
	const uncovered = `catalog default names "crm\.lookup", which the registry does not bind`

	// Staged, and the registry changes: the apply is refused.
	w.does(0, "space", "sync", "s1", "support")
	w.says(session.DoorCtl, "s1", session.TypeToolRegistrySet, pay)
	w.prints(statusFailed, `^refold: rejected: workspace_invalid: .*`+uncovered+`\n  what is applied and staged stays as it is`, "space", "apply", "s1")
	w.prints(0, `^support 1\.4\.2 is staged`, "space", "diff", "s1")
	w.prints(statusFailed, `(?s)^catalogs\[0\]\.tools\[0\]: unknown_tool: `+uncovered+`\nrefold: support is not staged: workspace_invalid`, "space", "sync", "s1", "support")

	// Pending, and the registry changes: it fails at the boundary, and the run goes on.
	w.does(0, "space", "sync", "s2", "support", "--apply", "next_run")
	w.says(session.DoorCtl, "s2", session.TypeToolRegistrySet, pay)
	w.says(session.DoorIn, "s2", session.TypeRunRequested, `{"input":{"text":"hi"}}`)
	w.reaches("s2", "its turn is asked", turnOf("r1t1"))
	if v := w.view("s2"); v.Workspace != nil || len(v.Pending) != 0 || v.Turn.Base != "profile" {
		t.Errorf("the boundary: got %+v under %+v", v.Turn, v.ViewSpaces)
	}
	w.prints(0, `run requested: hi\n.*  support failed: workspace_invalid: .*`+uncovered, "replay", "s2", "--events")

	// Applied: a registry that uncovers it is refused.
	w.does(0, "space", "sync", "s3", "support", "--apply", "immediate_if_idle")
	w.says(session.DoorCtl, "s3", session.TypeToolRegistrySet, pay)
	w.prints(0, `  y1 support 1\.4\.2: staged [0-9a-f]{12}\n.*  support 1\.4\.2 is applied: [0-9a-f]{12}, immediate_if_idle\n.*ToolRegistrySet refused: invalid_registry: .*crm\.lookup`, "replay", "s3", "--events")
	tail := w.begin("", "tail", "s3", "--all", "--follow")
	tail.out.shows(t, `WorkspaceApplied support 1\.4\.2 is applied: [0-9a-f]{12}, immediate_if_idle\n`)
	tail.stop()
	w.end(tail, statusInterrupted)
}

func TestDevGivesEverySessionTheFolder(t *testing.T) {
	t.Parallel()
	dir, data := folder(t, "support", map[string]string{"AGENTS.md": "Version one.\n"}), t.TempDir()
	for n, want := range []string{"Version one.", "Version three."} {
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		var out, errOut text
		ended := make(chan int, 1)
		go func() {
			ended <- Main(ctx, []string{"dev", "--dir", data, "--port", "0", "--workspace", dir}, nil, &out, &errOut)
		}()
		as := out.shows(t, `NATS_CONTEXT='(.+)'`)[1]
		like(t, "banner", out.String(), `Workspace: support: 1 file \(\d+ bytes\), 1 prompt pack, .*from .*support\. Sessions that open from now on start with it\.\nAfter an edit:  refold space sync SESSION support --apply next_run`)
		asks := func(status int, want string, args ...string) {
			t.Helper()
			var said text
			if got := Main(ctx, append([]string{"--context", as}, args...), nil, &said, &said); got != status {
				t.Errorf("%q: got status %d, want %d: %s", args, got, status, said.String())
			}
			like(t, strings.Join(args, " "), said.String(), want)
		}
		sid := []string{"first", "second"}[n]
		asks(0, "", "run", sid, "hi")
		asks(0, want, "prompt", sid)
		put(t, dir, "AGENTS.md", []string{"Version two.\n", "Version four.\n"}[n])
		asks(0, want, "prompt", sid) // nothing polls
		asks(0, `is staged: .*\n  it is applied when the next run starts`, "space", "sync", sid, "support", "--apply", "next_run")
		asks(0, "", "run", sid, "again")
		asks(0, []string{"Version two", "Version four"}[n], "prompt", sid)
		put(t, dir, "AGENTS.md", "Version three.\n") // a restart gives it to new sessions
		stop()
		if status := <-ended; status != 0 {
			t.Errorf("dev: status %d: %s", status, errOut.String())
		}
	}
	put(t, dir, "AGENTS.md", "{{who}}")
	var out, errOut text
	if status := Main(t.Context(), []string{"dev", "--dir", data, "--port", "0", "--workspace", dir}, nil, &out, &errOut); status != statusFailed {
		t.Errorf("a broken folder: status %d", status)
	}
	like(t, "a broken folder", out.String()+errOut.String(), `AGENTS\.md:1: unknown_variable: .*\nrefold: warning: .*no_index.*\nrefold: dev: --workspace .*support: 1 problem\n$`)
}
