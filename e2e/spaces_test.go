package e2e_test

// Workspaces with real processes: a folder and a bucket are synced, staged and
// applied; a bridge dies while it reads one; one has no reader; a program has
// its own reader; a record has a manifest. Then all sources and all blobs are
// removed, and the log folds to the same bytes.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
)

// spaceRecord is a record with two tools and these grants.
func spaceRecord(grants ...any) object {
	return object{"v": 1, "rules": 1, "tools": list{tool("lookup", nil), tool("pay", nil)}, "config": scripted, "spaces": grants}
}

// supportFiles are a workspace: a prompt, a catalog of one tool, a context file.
func supportFiles() map[string]string {
	return map[string]string{
		"agent.workspace.json": `{
  "v": 1, "name": "support",
  "prompts": {"default": "prompts/default.json"},
  "tools": {"default": "tools/default.json"},
  "context": {"docs": ["docs/*.md"]}
}`,
		"prompts/default.json": `["prompts/system.md"]`,
		"prompts/system.md":    "You help customers of shop one. This is {{session}}, run {{run}}.\n",
		"tools/default.json":   `["lookup"]`,
		"docs/refunds.md":      "# Refunds\n\nWithin 30 days.\n",
	}
}

// editedSupport are the files after an edit: other words, another tool.
func editedSupport() map[string]string {
	files := supportFiles()
	files["prompts/system.md"] = "You help customers of shop two.\n"
	files["tools/default.json"] = `["pay"]`
	files["docs/refunds.md"] = "# Refunds\n\nWithin 60 days.\n"
	return files
}

// supportScript lists, searches and reads context files in the first run, reads
// one in the second, and does so in the third with another prompt and catalog.
const supportScript = `
turns:
  - shown:
      system: ["You help customers of shop one. This is s1, run r1."]
      tools: {include: [lookup, workspace_list, workspace_read, workspace_search], exclude: [pay]}
    calls:
      - {tool: workspace_list, arguments: {path_glob: "docs/**"}}
      - {tool: workspace_search, arguments: {pattern: "Within [0-9]+"}}
      - {tool: workspace_read, arguments: {path: docs/refunds.md}}
      - {tool: workspace_read, arguments: {path: prompts/system.md}}
  - shown:
      results:
        - {tool: workspace_list, error: false, text: ['"path":"docs/refunds.md","size":27,"media_type":"text/markdown","space":"support"']}
        - {tool: workspace_search, error: false, text: ["docs/refunds.md:3: Within 30 days."]}
        - {tool: workspace_read, error: false, text: ["Within 30 days."]}
        - {tool: workspace_read, error: true, text: [invalid_arguments, there is no context file]}
    say: Within 30 days.
  - shown:
      system: ["You help customers of shop one. This is s1, run r2."]
      tools: {include: [lookup], exclude: [pay]}
    calls: [{tool: workspace_read, arguments: {path: docs/refunds.md}}]
  - shown: {results: [{tool: workspace_read, error: false, text: ["Within 30 days."], lacks: "60"}]}
    say: Still within 30 days.
  - shown:
      system: ["You help customers of shop two."]
      tools: {include: [pay, workspace_read], exclude: [lookup]}
    calls: [{tool: workspace_read, arguments: {path: docs/refunds.md}}]
  - shown: {results: [{tool: workspace_read, error: false, text: ["Within 60 days."]}]}
    say: Within 60 days.
`

// folder writes the files of a workspace below dir.
func folder(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// spacesBridge starts a bridge with the spaces of a file, and a model if a script
// is given.
func (s *system) spacesBridge(config, script string, more ...string) *daemon {
	s.t.Helper()
	args := append([]string{"--nats", s.url, "--spaces", writeFile(s.t, "spaces.yaml", config)}, more...)
	if script != "" {
		args = append(args, "--model", "scripted=scripted:"+writeFile(s.t, "script.yaml", script))
	}
	return startDaemon(s.t, "bridge", args...)
}

// sync asks for a sync.
func (s *system) sync(sid, space string, more object) uint64 {
	s.t.Helper()
	data := object{"workspace": space}
	for key, value := range more {
		data[key] = value
	}
	return s.say(session.DoorCtl, sid, session.TypeWorkspaceSyncRequested, data)
}

// apply asks for an apply.
func (s *system) apply(sid string, data object) uint64 {
	s.t.Helper()
	return s.say(session.DoorCtl, sid, session.TypeWorkspaceApplyRequested, data)
}

// nth waits for the nth notice of a type, and decodes its data.
func nth[T any](t *testing.T, e *ear, typ string, n int) (data T) {
	t.Helper()
	until(t, 2*time.Minute, fmt.Sprintf("%s %d", typ, n), func() bool { return e.count(typ) >= n })
	for _, h := range e.all() {
		if h.Type != typ {
			continue
		}
		if n--; n == 0 {
			if err := json.Unmarshal(h.Data, &data); err != nil {
				t.Fatal(err)
			}
			return data
		}
	}
	return data
}

// syncs returns the syncs that were asked of a session.
func (s *system) syncs(sid string) (all []session.Space) {
	s.t.Helper()
	for _, a := range s.asked(session.ClassSpace, sid) {
		var y session.Space
		if err := codec.Unmarshal(a.payload, &y); err != nil {
			s.t.Fatal(err)
		}
		all = append(all, y)
	}
	return all
}

// TestWorkspaceOfAFolder: sync, apply, a run with prompt and tools, an edit and
// a sync, which change nothing, and an apply, which does.
func TestWorkspaceOfAFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder(t, filepath.Join(dir, "support"), supportFiles())
	s := startSystem(t, spaceRecord(object{"space": "support", "target": "files"}))
	s.spacesBridge("targets: {files: {spaces: {support: {dir: "+dir+"/support}}}}\n", supportScript)
	heard := listen(t, s.nc, "refold.out.s1")
	s.sync("s1", "support", object{"apply": "next_run"})
	first := nth[spaces.WorkspaceStaged](t, heard, spaces.NoticeWorkspaceStaged, 1)
	s.run(session.DoorIn, "s1", "How long?", nil)
	s.wantEnd("s1", 1, session.Completed, "")
	if applied := nth[spaces.WorkspaceApplied](t, heard, spaces.NoticeWorkspaceApplied, 1); applied.Hash != first.Hash || first.Outcome != spaces.OutcomeStaged {
		t.Errorf("staged %+v, applied %+v", first, applied)
	}
	s.sync("s1", "support", nil)
	if again := nth[spaces.WorkspaceStaged](t, heard, spaces.NoticeWorkspaceStaged, 2); again.Outcome != spaces.OutcomeUnchanged || again.Hash != first.Hash {
		t.Errorf("without an edit: %+v", again)
	}

	folder(t, filepath.Join(dir, "support"), editedSupport())
	s.sync("s1", "support", object{"dry": true})
	if dry := nth[spaces.WorkspaceStaged](t, heard, spaces.NoticeWorkspaceStaged, 3); dry.Outcome != spaces.OutcomeDry || dry.Hash == first.Hash {
		t.Errorf("dry: %+v", dry)
	}
	s.sync("s1", "support", nil)
	edited := nth[spaces.WorkspaceStaged](t, heard, spaces.NoticeWorkspaceStaged, 4)
	s.run(session.DoorIn, "s1", "How long now?", nil) // what is staged counts for nothing
	s.wantEnd("s1", 2, session.Completed, "")
	s.apply("s1", object{"workspace": "support", "hash": edited.Hash})
	s.run(session.DoorIn, "s1", "And now?", nil)
	s.wantEnd("s1", 3, session.Completed, "")

	folder(t, filepath.Join(dir, "support"), map[string]string{"prompts/system.md": "{{wrong}}", "tools/default.json": "[1]"})
	s.sync("s1", "support", object{"apply": "immediate_if_idle"})
	failed := nth[spaces.WorkspaceFailed](t, heard, spaces.NoticeWorkspaceFailed, 1)
	if failed.Code != "workspace_invalid" || len(failed.Problems) != 2 || failed.Problems[0].File != "prompts/system.md" {
		t.Errorf("broken files: %+v", failed)
	}
	if v := s.view("s1", "the view", func(session.View) bool { return true }); v.Workspace == nil || v.Workspace.Hash != edited.Hash {
		t.Errorf("after a failed sync, %+v is applied, want %s", v.Workspace, edited.Hash)
	}
	s.wantSameWithoutSources("s1", dir)
	if out, errOut, status := run(t, time.Minute, nil, "refold", "--nats", s.url, "prompt", "s1"); status == 0 || !strings.Contains(out, "prompt_missing") {
		t.Errorf("the prompt without its blobs: status %d, %q, %q", status, out, errOut)
	}
}

// wantSameWithoutSources removes a folder and all blobs, and checks that sessions
// fold to the same bytes, and that the session-actor begins again with them.
func (s *system) wantSameWithoutSources(sid, dir string) {
	s.t.Helper()
	s.folded()
	before := s.view(sid, "the view", func(session.View) bool { return true })
	want := verifyAll(s.t, s.url)
	if err := os.RemoveAll(dir); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for name := range s.js.ObjectStoreNames(ctx).Name() {
		stream, err := s.js.Stream(ctx, "OBJ_"+name)
		if err != nil {
			s.t.Fatal(err)
		}
		if err := stream.Purge(ctx); err != nil {
			s.t.Fatal(err)
		}
	}
	if got := verifyAll(s.t, s.url); got != want {
		s.t.Errorf("without sources and blobs, the replay says\n%s, before\n%s", got, want)
	}
	s.actor.kill()
	s.actor.start()
	if after := s.view(sid, "the view again", func(v session.View) bool { return v.Seq >= before.Seq }); after.Hash != before.Hash {
		s.t.Errorf("the session-actor begins again with %s, had %s", after.Hash, before.Hash)
	}
}

// TestAttackLostManifest: somebody with all rights has purged the manifest that a
// session has applied, or its bytes. The session's own tools need it: it is made again
// from the log, and stored.
func TestAttackLostManifest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder(t, dir, map[string]string{"agent.workspace.json": `{"v": 1, "context": {"docs": ["docs/*.md"]}}`, "docs/refunds.md": "Within 30 days.\n"})
	s := startSystem(t, spaceRecord(object{"space": "support"}))
	config, script := "targets: {support: {spaces: {support: {dir: "+dir+"}}}}\n", "turns:"+strings.Repeat(`
  - calls: [{tool: workspace_list, arguments: {}}, {tool: workspace_read, arguments: {path: docs/refunds.md}}]
  - shown: {results: [{tool: workspace_list, error: false, text: ["docs/refunds.md"]}, {tool: workspace_read, error: false, text: ["Within 30 days."]}]}
    say: Within 30 days.`, 2)
	reader := s.spacesBridge(config, script)
	heard := listen(t, s.nc, "refold.out.s1")
	s.sync("s1", "support", object{"apply": "next_run"})
	staged := nth[spaces.WorkspaceStaged](t, heard, spaces.NoticeWorkspaceStaged, 1)
	stream, err := s.js.Stream(t.Context(), "OBJ_REFOLD_BLOBS")
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := codec.ParseHash(staged.Hash)
	if err != nil {
		t.Fatal(err)
	}
	subject := blobSubject(codec.Ref{Hash: manifest})
	description, err := stream.GetLastMsgForSubject(t.Context(), subject)
	if err != nil {
		t.Fatal(err)
	}
	var info struct{ Nuid string }
	if err := json.Unmarshal(description.Data, &info); err != nil {
		t.Fatal(err)
	}
	for run, lost := range []string{subject, "$O.REFOLD_BLOBS.C." + info.Nuid} {
		reader.kill() // it may have read the manifest
		if err := stream.Purge(t.Context(), jetstream.WithPurgeSubject(lost)); err != nil {
			t.Fatal(err)
		}
		reader = s.spacesBridge(config, script)
		s.run(session.DoorIn, "s1", "How long?", nil)
		s.wantEnd("s1", uint32(run+1), session.Completed, "")
		if _, err := stream.GetLastMsgForSubject(t.Context(), subject); err != nil {
			t.Errorf("the manifest after run %d: %v; want it stored again", run+1, err)
		}
	}
}

// objects puts the files of a workspace into an object store.
func objects(t *testing.T, store jetstream.ObjectStore, prefix string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if _, err := store.PutBytes(t.Context(), prefix+name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWorkspaceOfABucket: the files are objects, a version is a prefix. It is
// applied at once while no run is active, else before the next turn.
func TestWorkspaceOfABucket(t *testing.T) {
	t.Parallel()
	s := startSystem(t, spaceRecord(object{"space": "support", "target": "shared"}))
	var store jetstream.ObjectStore
	until(t, time.Minute, "an object store", func() (made bool) {
		var err error
		store, err = s.js.CreateOrUpdateObjectStore(t.Context(), jetstream.ObjectStoreConfig{Bucket: "AGENT_FILES"})
		return err == nil
	})
	objects(t, store, "shared/", supportFiles())
	objects(t, store, "shared/v2/", editedSupport())
	s.spacesBridge("targets: {shared: {spaces: {support: {bucket: AGENT_FILES, prefix: shared/}}}}\n", `
turns:
  - shown: {system: ["shop one"], tools: {include: [lookup], exclude: [pay]}}
    calls: [{tool: lookup, arguments: {}}, {tool: workspace_read, arguments: {path: docs/refunds.md}}]
  - shown:
      system: ["shop two"]
      tools: {include: [pay], exclude: [lookup]}
      results: [{tool: lookup, error: false}, {tool: workspace_read, error: false, text: ["Within 30 days."]}]
    calls: [{tool: workspace_read, arguments: {path: docs/refunds.md}}]
  - shown: {results: [{tool: workspace_read, error: false, text: ["Within 60 days."]}]}
    say: Within 60 days.
`)
	l := &lab{hold: map[string]chan struct{}{"lookup": make(chan struct{})}}
	s.tools(l)
	heard := listen(t, s.nc, "refold.out.s1")
	s.sync("s1", "support", object{"apply": "immediate_if_idle"})
	applied := nth[spaces.WorkspaceApplied](t, heard, spaces.NoticeWorkspaceApplied, 1)
	s.run(session.DoorIn, "s1", "How long?", nil)
	until(t, time.Minute, "a call that waits", func() bool { return l.ran() == "lookup" })
	s.sync("s1", "support", object{"apply": "next_step_boundary", "version": "v2"})
	staged := nth[spaces.WorkspaceStaged](t, heard, spaces.NoticeWorkspaceStaged, 2)
	if staged.Hash == applied.Hash || heard.count(spaces.NoticeWorkspaceApplied) != 1 {
		t.Errorf("applied %s, then staged %s, while a batch is open", applied.Hash, staged.Hash)
	}
	s.view("s1", "the pending workspace", func(v session.View) bool { return len(v.Pending) == 1 })
	close(l.hold["lookup"])
	s.wantEnd("s1", 1, session.Completed, "")
	if second := nth[spaces.WorkspaceApplied](t, heard, spaces.NoticeWorkspaceApplied, 2); second.Hash != staged.Hash || second.Mode != spaces.ModeNextStep {
		t.Errorf("applied in mid-run: %+v, want %s", second, staged.Hash)
	}
	s.sync("s1", "support", object{"version": "v3"})
	if failed := nth[spaces.WorkspaceFailed](t, heard, spaces.NoticeWorkspaceFailed, 1); failed.Code != "version_unknown" {
		t.Errorf("a version that is not there: %+v", failed)
	}
	for _, asked := range s.generations("s1") {
		if len(asked.Prompt) != 1 || asked.PromptMark.IsZero() {
			t.Errorf("%s: prompt %+v, mark %s", asked.Effect, asked.Prompt, asked.PromptMark)
		}
	}
	s.wantSameWithoutSources("s1", t.TempDir())
}

// TestBridgeKilledWhileItReads: another one reads the whole space again, and
// the session gets one result.
func TestBridgeKilledWhileItReads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := map[string]string{"agent.workspace.json": `{"v": 1, "context": {"docs": ["docs/*"]}}`}
	for i := range 900 {
		files[fmt.Sprintf("docs/%d.md", i)] = fmt.Sprintf("# %d\n", i)
	}
	folder(t, dir, files)
	s := startSystem(t, spaceRecord(object{"space": "support"}))
	config := "targets: {support: {spaces: {support: {dir: " + dir + "}}}}\n"
	first := s.spacesBridge(config, "")
	heard := listen(t, s.nc, "refold.out.s1")
	blobs := func() int {
		stream, err := s.js.Stream(t.Context(), "OBJ_REFOLD_BLOBS")
		if err != nil {
			return 0
		}
		return int(stream.CachedInfo().State.NumSubjects) // two a file, and more for descriptors
	}
	s.folded()
	before := blobs()
	s.sync("s1", "support", object{"apply": "immediate_if_idle"})
	until(t, time.Minute, "some files are stored", func() bool { return blobs() >= before+20 })
	first.kill()
	if n := blobs(); n > before+1700 || heard.count(spaces.NoticeWorkspaceStaged) > 0 {
		t.Fatalf("%d subjects of blobs, %d before: the bridge was killed too late to tell anything", n, before)
	}
	s.spacesBridge(config, "")
	applied := nth[spaces.WorkspaceApplied](t, heard, spaces.NoticeWorkspaceApplied, 1)
	s.folded()
	if heard.count(spaces.NoticeWorkspaceStaged) != 1 || heard.count(spaces.NoticeWorkspaceFailed) != 0 || len(s.syncs("s1")) != 1 {
		t.Errorf("notices: %+v", heard.all())
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	store, err := s.js.ObjectStore(ctx, s.names.BlobsBucket())
	if err != nil {
		t.Fatal(err)
	}
	if manifest, err := store.GetBytes(ctx, "sha256-"+applied.Hash); err != nil || codec.Sum(manifest).String() != applied.Hash {
		t.Errorf("the manifest is not stored: %v", err)
	}
	verifyAll(t, s.url)
}

// TestNobodyReadsASpace: the view reports it, and the sync ends by its
// deadline, without a run.
func TestNobodyReadsASpace(t *testing.T) {
	t.Parallel()
	s := startSystem(t, spaceRecord(object{"space": "support", "target": "files", "run_ms": 10_000}))
	heard := listen(t, s.nc, "refold.out.s1")
	s.sync("s1", "support", nil)
	v := s.view("s1", "that nobody serves the target", func(v session.View) bool { return slices.Contains(v.Unserved, "space/files") })
	if len(v.Syncs) != 1 || v.Syncs[0].Effect != "y1" || v.Run != nil {
		t.Errorf("the view has syncs %+v, run %+v", v.Syncs, v.Run)
	}
	if failed := nth[spaces.WorkspaceFailed](t, heard, spaces.NoticeWorkspaceFailed, 1); failed.Code != session.CodeDeadlineExceeded || failed.Effect != "y1" {
		t.Errorf("got %+v", failed)
	}
	verifyAll(t, s.url)
}

// mine is a reader of a program's own.
type mine struct{}

func (mine) ReadSpace(_ context.Context, r executor.SpaceRequest) (executor.SpaceContent, error) {
	switch r.Version {
	case "none":
		return executor.SpaceContent{}, &executor.Error{Code: "version_unknown", Detail: "there is no version none"}
	case "broken":
		panic("a mistake")
	case "bytes":
		return executor.SpaceContent{Files: fstest.MapFS{"agent.workspace.json": {Data: []byte("\xff{")}}}, nil
	case "":
		files := fstest.MapFS{}
		for name, text := range supportFiles() {
			files[name] = &fstest.MapFile{Data: []byte(text)}
		}
		return executor.SpaceContent{Files: fs.FS(files), Revision: "r7", Source: "factory"}, nil
	}
	return executor.SpaceContent{}, errors.New("the wiki does not answer")
}

// TestCustomSpaceReader: a program serves a target with package bridge; its
// failures are reported and change nothing.
func TestCustomSpaceReader(t *testing.T) {
	t.Parallel()
	s := startSystem(t, spaceRecord(object{"space": "support", "target": "wiki"}))
	s.serve(func(b *bridge.Bridge) error { return b.Space("wiki", mine{}) })
	heard := listen(t, s.nc, "refold.out.s1")
	s.sync("s1", "support", object{"apply": "immediate_if_idle"})
	staged := nth[spaces.WorkspaceStaged](t, heard, spaces.NoticeWorkspaceStaged, 1)
	if staged.Revision != "r7" || staged.Hash != nth[spaces.WorkspaceApplied](t, heard, spaces.NoticeWorkspaceApplied, 1).Hash {
		t.Errorf("staged %+v", staged)
	}
	for i, c := range []struct{ version, code string }{
		{"none", "version_unknown"}, {"broken", "space_unreadable"}, {"bytes", "workspace_invalid"}, {"other", "space_unreadable"},
	} {
		s.sync("s1", "support", object{"version": c.version, "apply": "immediate_if_idle"})
		if failed := nth[spaces.WorkspaceFailed](t, heard, spaces.NoticeWorkspaceFailed, i+1); failed.Code != c.code {
			t.Errorf("version %s: got %+v, want %s", c.version, failed, c.code)
		}
	}
	if v := s.view("s1", "the view", func(session.View) bool { return true }); v.Workspace == nil || v.Workspace.Hash != staged.Hash {
		t.Errorf("applied is %+v", v.Workspace)
	}
	verifyAll(t, s.url)
}

// TestManifestInTheRecord: a fresh session's first turn has the prompt and the
// tools of a manifest in the record. No bridge reads a space, and the files
// were stored before the record was published.
func TestManifestInTheRecord(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "support")
	folder(t, dir, supportFiles())
	s := startSystem(t, spaceRecord(object{"space": "support", "target": "nobody"}))
	s.models(strings.ReplaceAll(supportScript, "s1", "s2"), "scripted")
	s.folded() // the first record is there
	if out, errOut, status := run(t, time.Minute, nil, "refold", "--nats", s.url, "install", "--space", "support="+dir); status != 0 {
		t.Fatalf("status %d\n%s%s", status, out, errOut)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	s.run(session.DoorIn, "s2", "How long?", nil)
	s.wantEnd("s2", 1, session.Completed, "")
	if n := len(s.syncs("s2")); n != 0 {
		t.Errorf("%d syncs were asked", n)
	}
	if v := s.at("s2", 1); v.Workspace == nil || v.Workspace.Space != "support" {
		t.Errorf("applied is %+v", v.Workspace)
	}
	s.wantSameWithoutSources("s2", t.TempDir())
}

// spaceRoles are the users of a deployment with a reader of spaces.
const spaceRoles = `
tenants:
  refold:
    session-actors: [actor]
    admins: [admin]
    models: {models: [openai]}
    tools: {tools: [host, host-w1, refold]}
    space-readers: {spaces: [files]}
`

// TestSpacesHaveTheirRights: on generated roles one bridge reads folders,
// another serves the session tools, and neither needs more than it may do.
func TestSpacesHaveTheirRights(t *testing.T) {
	t.Parallel()
	g := writeRoles(t, spaceRoles)
	g.startServer()
	s := g.start(spaceRecord(object{"space": "support", "target": "files"}))
	dir := t.TempDir()
	folder(t, dir, editedSupport())
	heard := listen(t, s.nc, "refold.out.s1")
	s.sync("s1", "support", object{"apply": "immediate_if_idle"})
	config := "targets: {files: {spaces: {support: {dir: " + dir + "}}}}\n"
	startDaemon(t, "bridge", g.daemon("spaces", "--spaces", writeFile(t, "spaces.yaml", config))...)
	startDaemon(t, "bridge", g.daemon("tools", "--tools", "host", "--workdir", t.TempDir(), "--worker", "w1")...)
	startDaemon(t, "bridge", g.daemon("models", "--model", "openai=scripted:"+writeFile(t, "script.yaml", `
turns:
  - calls: [{tool: workspace_read, arguments: {path: docs/refunds.md}}]
  - shown: {system: [shop two], results: [{tool: workspace_read, error: false, text: ["Within 60 days."]}]}
    say: Within 60 days.
`))...)
	nth[spaces.WorkspaceApplied](t, heard, spaces.NoticeWorkspaceApplied, 1)
	s.run(session.DoorIn, "s1", "How long?", object{"provider": "openai", "model": "m"})
	s.wantEnd("s1", 1, session.Completed, "")
	verifyAll(t, g.url)
	g.wantNone()
}
