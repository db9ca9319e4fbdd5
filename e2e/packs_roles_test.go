package e2e_test

// Publishers and readers of spaces have the rights that they need and no
// others.

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/refold/refold/actors/spaces"
)

const packRoles = `
tenants:
  refold:
    session-actors: [actor]
    admins: [admin]
    operators: [operator]
    publishers: [ci]
    space-readers: {spaces: [files]}
    buckets: {spaces: [FILES]}
`

// TestPacksHaveTheirRights: on generated roles a publisher publishes a pack
// twice, and a reader reads it, and a workspace from a bucket.
func TestPacksHaveTheirRights(t *testing.T) {
	t.Parallel()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	key, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	g := writeRoles(t, packRoles)
	g.startServer()
	s := g.start(spaceRecord(
		object{"space": "support", "target": "files"},
		object{"space": "crm", "kind": "pack", "target": "files", "sources": list{"package"}, "keys": list{key}},
	))
	dir := t.TempDir()
	folder(t, dir, map[string]string{
		"agent.workspace.json":    `{"v": 1, "kind": "pack", "name": "crm", "version": "1.4.2", "bindings": "b.json", "skills": ["skills/refunds/SKILL.md"]}`,
		"b.json":                  `{"tools": [{"tool_id": "crm.find", "tool_name": "crm_find", "args_schema": {"type": "object"}, "executor": {"kind": "effect", "target": "crm-v1"}}]}`,
		"skills/refunds/SKILL.md": "---\nname: refunds\ndescription: How to refund.\n---\nAsk first.\n",
	})
	publish := []string{"pack", "publish", dir, "--key", writeFile(t, "seed", string(seed)+"\n")}
	g.refold("ci", 0, nil, publish...)
	g.refold("ci", 0, nil, publish...)
	g.refold("ci", 0, nil, "pack", "list")
	g.refold("operator", 0, nil, "pack", "list")

	js, err := jetstream.New(s.nc)
	if err != nil {
		t.Fatal(err)
	}
	store, err := js.CreateObjectStore(t.Context(), jetstream.ObjectStoreConfig{Bucket: "FILES"})
	if err != nil {
		t.Fatal(err)
	}
	objects(t, store, "support/", supportFiles())
	heard := listen(t, s.nc, "refold.out.s1")
	config := "targets: {files: {spaces: {support: {bucket: FILES, prefix: support/}, '*': {packs: true}}}}\n"
	startDaemon(t, "bridge", g.daemon("spaces", "--spaces", writeFile(t, "spaces.yaml", config))...)
	s.sync("s1", "support", nil)
	if staged := nth[spaces.WorkspaceStaged](t, heard, spaces.NoticeWorkspaceStaged, 1); staged.Workspace != "support" {
		t.Errorf("from a bucket: got %+v", staged)
	}
	s.sync("s1", "crm", object{"version": "1"})
	if staged := nth[spaces.WorkspaceStaged](t, heard, spaces.NoticeWorkspaceStaged, 2); staged.Workspace != "crm" || staged.Version != "1.4.2" {
		t.Errorf("a published pack: got %+v", staged)
	}
	g.wantNone()
}
